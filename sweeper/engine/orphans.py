"""What a killed tuner leaves running, and how the next one removes it.

A launch is noted in a small file before its process is started and until its last process has
ended. If the tuner is killed in between, the file stays, and the next run ends what it names: only
processes that carry the launch's token, that were noted (pid and start tick, same boot), or that
descend from or share the session of such a process. Nothing else is ever touched.

Call these only while holding the study's lock, so that no living tuner owns the launch.
"""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import Any

from sweeper.engine import procfs
from sweeper.engine.family import Family
from sweeper.engine.procfs import Identity

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
            "leader": list(family.leader) if family.leader is not None else None,
            "processes": sorted(list(member) for member in family.known),
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

    def remove(self) -> None:
        self.path.unlink(missing_ok=True)


def reap(record_path: Path) -> list[int]:
    """End what is left of the launch noted in a file, and remove the file.

    Args:
        record_path: file given to the launch as `record_path`; it need not exist.

    Returns:
        Pids that were ended, ascending.
    """
    record = LaunchRecord(record_path)
    family = record.read()
    ended = _end(family) if family is not None else []
    record.remove()
    return ended


def _end(family: Family) -> list[int]:
    alive = family.living()
    left = family.end(TERM_PATIENCE_S)
    return sorted(member.pid for member in alive - left)


def _family(note: dict[str, Any]) -> Family:
    if note["boot_id"] != procfs.boot_id():
        # Pids of another boot name other processes now; the token still tells for certain.
        return Family(str(note["token"]))
    leader = note["leader"]
    return Family(
        str(note["token"]),
        Identity(int(leader[0]), int(leader[1])) if leader is not None else None,
        [Identity(int(pid), int(ticks)) for pid, ticks in note["processes"]],
    )
