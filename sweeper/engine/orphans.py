"""What a killed tuner leaves running, and how the next one removes it.

A launch is noted in a small file before its process is started and until its last process has
ended. If the tuner is killed in between, the file stays, and the next run ends what it names: only
processes that carry the launch's token or write to its log, that were noted (pid and start tick,
same boot), or that descend from or share the session of such a process. Nothing else is touched.

Call these only while holding the study's lock, or that of the devices of the launch, so that no
living tuner owns it.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from sweeper.engine import procfs
from sweeper.engine.family import Family
from sweeper.engine.procfs import Identity
from sweeper.engine.protocol import StopFailure

TERM_PATIENCE_S = 10.0


class LaunchRecord:
    """The note of a running launch; written atomically."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def write(self, family: Family) -> None:
        """Note the token, the leader and all members seen."""
        note = {
            "token": family.token,
            "boot_id": procfs.boot_id(),
            "tuner_pid": os.getpid(),
            "tuner": _identity_of(os.getpid()),
            "leader": list(family.leader) if family.leader is not None else None,
            "processes": sorted(list(member) for member in family.known),
            "log": str(family.log_path) if family.log_path is not None else None,
        }
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(
            "w", dir=self.path.parent, prefix=f".{self.path.name}.", delete=False
        ) as file:
            json.dump(note, file)
            file.flush()
            os.fsync(file.fileno())
        Path(file.name).replace(self.path)

    def read(self) -> Family | None:
        """The launch that was noted; None if there is no (readable) note."""
        try:
            note = json.loads(self.path.read_text())
            return _family(note)
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def tuner_lives(self) -> bool:
        """True if the tuner that wrote the note runs, and is not this process."""
        try:
            note = json.loads(self.path.read_text())
            pid, ticks = (int(part) for part in note["tuner"])
            same_boot = note["boot_id"] == procfs.boot_id()
        except (OSError, ValueError, KeyError, TypeError):
            return False
        return same_boot and pid != os.getpid() and procfs.is_living(Identity(pid, ticks))

    def remove(self) -> None:
        """Forget the launch, and what a tuner that was killed while it wrote left of a note."""
        self.path.unlink(missing_ok=True)
        for torn in self.path.parent.glob(f".{self.path.name}.*"):
            torn.unlink(missing_ok=True)


def reap(record_path: Path) -> list[int]:
    """End what is left of the launch noted in a file, and remove the file.

    Args:
        record_path: file given to the launch as `record_path`; it need not exist.

    Returns:
        Pids that were ended, ascending.

    Raises:
        StopFailure: some outlived even KILL; the note stays.
    """
    record = LaunchRecord(record_path)
    family = record.read()
    ended: list[int] = []
    if family is not None:
        alive = family.living()
        left = family.end(TERM_PATIENCE_S)
        if left:
            raise outlived(left, "an earlier launch")
        ended = sorted(member.pid for member in alive)
    record.remove()
    return ended


def outlived(left: Iterable[Identity], what: str) -> StopFailure:
    """What is to be raised for processes that outlived KILL."""
    pids = ", ".join(str(member.pid) for member in sorted(left))
    return StopFailure(
        f"processes {pids} of {what} outlived SIGKILL",
        "they are stuck in the kernel (driver or disk); free the device before going on",
    )


def _identity_of(pid: int) -> list[int] | None:
    process = procfs.read(pid)
    return None if process is None else list(process.identity)


def _family(note: dict[str, Any]) -> Family:
    is_earlier_boot = note["boot_id"] != procfs.boot_id()
    log_path = Path(note["log"]) if note.get("log") else None  # an older tuner noted none
    if is_earlier_boot:
        # Pids of another boot name other processes now; the token still tells for certain.
        return Family(str(note["token"]), log_path=log_path)
    leader = note["leader"]
    return Family(
        str(note["token"]),
        Identity(int(leader[0]), int(leader[1])) if leader is not None else None,
        [Identity(int(pid), int(ticks)) for pid, ticks in note["processes"]],
        log_path,
    )
