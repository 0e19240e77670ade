"""At most one launch at a time on a device, whoever starts it and from whatever folder.

One file a device, locked by the kernel and dropped by it with its owner, so that a killed tuner
never leaves a stale lock. Files are locked in the order of their names, so that two tuners with
overlapping sets cannot wait for each other. They are opened without following links and are never
removed: deleting one would let two processes hold two files of one name.

Descriptors are not inherited by programs that are started (O_CLOEXEC), so a server that outlives
its tuner does not keep the lock; what it leaves is found by the note of its launch.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import stat
import time
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sweeper.errors import EngineError

POLL_S = 0.2
_MAX_NOTE_BYTES = 4096


class DeviceBusyError(EngineError):
    """Another tuner's launch holds a device, and did not let it go in time."""


class DeviceLock:
    """The devices of one launch.

    Args:
        devices: their names, any order; none takes no lock at all.
        folder: where lock files of this machine are.
        note: who holds the lock, for those who wait; the pid and the time are added.
    """

    def __init__(self, devices: Iterable[str], folder: Path, note: Mapping[str, str]) -> None:
        self._paths = {name: lock_path(folder, name) for name in sorted(set(devices))}
        self._note = note
        self._held: list[int] = []

    def acquire(self, wait_s: float, tell: Callable[[str], None]) -> None:
        """Take all devices, waiting for each.

        Args:
            wait_s: how long, for all together; 0 does not wait.
            tell: told once of each owner that is waited for.

        Raises:
            DeviceBusyError: somebody still holds a device after `wait_s`; names device and owner.
            EngineError: a lock file cannot be made or opened.
        """
        deadline = time.monotonic() + wait_s
        try:
            for device, path in self._paths.items():
                self._held.append(self._take(device, path, deadline, wait_s, tell))
        except BaseException:
            self.release()
            raise

    def release(self) -> None:
        """Let all devices go."""
        while self._held:
            descriptor = self._held.pop()
            with contextlib.suppress(OSError):
                os.ftruncate(descriptor, 0)
            os.close(descriptor)

    def _take(
        self,
        device: str,
        path: Path,
        deadline: float,
        wait_s: float,
        tell: Callable[[str], None],
    ) -> int:
        told = ""
        while (descriptor := _try(path)) is None:
            owner = owner_of(path)
            if time.monotonic() >= deadline:
                raise DeviceBusyError(
                    f"device {device} is in use by {owner}, and was not let go in {wait_s:g} s",
                    "wait for that launch or stop it, give this study other devices "
                    "(CUDA_VISIBLE_DEVICES), or raise engine.device_wait_s",
                )
            if owner != told:
                tell(f"waiting for device {device}: in use by {owner}")
                told = owner
            time.sleep(min(POLL_S, max(0.0, deadline - time.monotonic())))
        since = datetime.now(UTC).isoformat(timespec="seconds")
        note = json.dumps({"pid": os.getpid(), "since": since, **self._note}).encode()
        with contextlib.suppress(OSError):  # a full disk, or a file of another user: no note then
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, note[:_MAX_NOTE_BYTES], 0)
        return descriptor


def lock_path(folder: Path, device: str) -> Path:
    """The lock file of a device."""
    return folder / f"sweeper-device-{re.sub(r'[^A-Za-z0-9_.-]', '_', device)}.lock"


def owner_of(path: Path) -> str:
    """Who says that it holds a lock file, one line."""
    try:
        with os.fdopen(_open(path), "rb") as file:
            note: Any = json.loads(file.read(_MAX_NOTE_BYTES))
        parts = [f"process {int(note['pid'])}"]
        parts += [f"study {note['study']}"] if note.get("study") else []
        parts += [f"since {note['since']}"] if note.get("since") else []
        return ", ".join(parts)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return "another process"


def _try(path: Path) -> int | None:
    """The descriptor of the file, locked; None if somebody else has it."""
    try:
        descriptor = _open(path)
    except OSError as problem:
        raise EngineError(
            f"cannot open the lock file {path} ({problem.strerror or problem})",
            "remove what is in its place, or name another folder for all tuners of this machine "
            "with the environment variable SWEEPER_RUNTIME_DIR",
        ) from problem
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # Somebody may have removed the file between its opening and its locking.
        if _same_file(descriptor, path):
            return descriptor
    except BlockingIOError:
        pass
    except BaseException:
        os.close(descriptor)
        raise
    os.close(descriptor)
    return None


def _open(path: Path) -> int:
    """Open a lock file, made if it is not there; a regular file with one name, not a link.

    It may be another user's. Then it is opened without O_CREAT, which the kernel refuses for
    others' files in a folder that everybody may write to, and for reading if there is no more.
    """
    flags = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
    try:
        descriptor = os.open(path, flags)
    except FileNotFoundError:
        try:
            descriptor = os.open(path, flags | os.O_CREAT | os.O_EXCL, 0o666)
            os.fchmod(descriptor, 0o666)  # whatever the umask says: all users are to lock it
        except FileExistsError:
            descriptor = os.open(path, flags)
    except PermissionError:
        descriptor = os.open(path, flags & ~os.O_RDWR | os.O_RDONLY)
    found = os.fstat(descriptor)
    if not stat.S_ISREG(found.st_mode) or found.st_nlink > 1:
        os.close(descriptor)
        raise OSError("it is not a plain file of its own")
    return descriptor


def _same_file(descriptor: int, path: Path) -> bool:
    try:
        there = path.lstat()
    except OSError:
        return False
    here = os.fstat(descriptor)
    return (here.st_dev, here.st_ino) == (there.st_dev, there.st_ino)
