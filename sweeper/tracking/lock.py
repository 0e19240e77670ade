"""Locks between processes: one tuner a study, one maker of a shared database.

The kernel drops a lock with its owner, so a killed tuner never leaves a stale one behind. On a file
system shared by several machines the server of it does; where the mount keeps locks to itself
(``nolock``), a lock file that names another machine is refused, because nothing can tell whether
its tuner still runs.
"""

from __future__ import annotations

import fcntl
import json
import os
import pwd
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any

from sweeper.errors import ConfigError, StudyError
from sweeper.tracking.shared_disk import locks_stay_here

_LOOK_S = 0.05


class StudyLock:
    """Context manager: this process is the only tuner of a study.

    Args:
        path: the lock file. It stays when the lock is dropped: deleting it would let two
            processes hold two different files of one name.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._descriptor: int | None = None

    def __enter__(self) -> StudyLock:
        """Take the lock.

        Raises:
            StudyError: another tuner works on this study; the message names it.
            ConfigError: the lock file cannot be made.
        """
        descriptor = _open(self.path)
        try:
            _take(descriptor)
        except OSError as error:
            os.close(descriptor)
            raise self._refusal(error) from error
        try:
            self._check_other_machine()
        except StudyError:
            os.close(descriptor)
            raise
        self._descriptor = descriptor
        # Who holds it is a courtesy to others; on a full disk the lock holds without.
        with suppress(OSError):
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, json.dumps(_me()).encode(), 0)
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._descriptor is None:
            return
        with suppress(OSError):
            os.ftruncate(self._descriptor, 0)
        os.close(self._descriptor)
        self._descriptor = None

    def is_held(self) -> bool:
        """True if some tuner, this process included, works on the study now."""
        try:
            # Another user's may only be read; a shared lock asks for no more than that.
            descriptor = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return False
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:
            return True
        finally:
            os.close(descriptor)
        return False

    def owner(self) -> dict[str, Any]:
        """What the holder wrote: pid, host, since. Empty if nobody holds it or it is unreadable."""
        try:
            data = json.loads(self.path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return data if isinstance(data, dict) else {}

    def _refusal(self, error: OSError) -> StudyError:
        if not isinstance(error, BlockingIOError):
            return StudyError(
                f"cannot lock {self.path} ({error.strerror or error})",
                "put studies_dir on a file system that supports locks",
            )
        owner = self.owner()
        remedy = "wait for it or stop it, or give this run another name with study=NAME"
        who = _named(owner) if owner else "another process"
        if owner.get("host") == socket.gethostname() and is_suspended(owner.get("pid")):
            who += ", which is suspended"
            remedy = f"let it go on with `kill -CONT {owner['pid']}`, or {remedy}"
        return StudyError(f"study {self.path.parent.name!r} is in use by {who}", remedy)

    def _check_other_machine(self) -> None:
        """The lock is ours; is that worth anything? Raises StudyError if it is not."""
        owner = self.owner()
        if owner.get("host") in {None, socket.gethostname()} or not locks_stay_here(self.path):
            return
        raise StudyError(
            f"{self.path} names {_named(owner)}, and this file system keeps locks to each machine:"
            " whether that tuner still runs cannot be seen from here",
            f"if it does not run any more, delete {self.path} and run the same command again; "
            "mount the file system without nolock or local_lock to be rid of the question",
        )


@contextmanager
def exclusive(path: Path) -> Iterator[None]:
    """Hold a lock file, waiting for it as long as it takes; for short pieces of work."""
    descriptor = _open(path)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _take(descriptor: int) -> None:
    """Lock for oneself alone. Raises OSError; whoever only looks holds it for an instant."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        time.sleep(_LOOK_S)
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _open(path: Path) -> int:
    """Open a lock file. Not inherited by children, so that a server cannot keep the lock."""
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise ConfigError(
            f"cannot make the lock file {path} ({error.strerror or error}{_owned_by(path)})",
            "make its folder writable, or name another one with studies_dir=/path/to/folder",
        ) from error


def _owned_by(path: Path) -> str:
    """``; it belongs to alice`` where the file is somebody else's, empty otherwise."""
    try:
        owner = path.stat().st_uid
        if owner == os.getuid():
            return ""
        name = pwd.getpwuid(owner).pw_name
    except OSError:
        return ""
    except KeyError:
        name = f"user {owner}"
    return f"; it belongs to {name}"


def _named(owner: dict[str, Any]) -> str:
    return f"process {owner.get('pid')} on {owner.get('host')} since {owner.get('since')}"


def is_suspended(pid: object) -> bool:
    """True if a process of this machine was stopped by a signal or a debugger."""
    try:
        text = Path(f"/proc/{int(str(pid))}/stat").read_text(errors="replace")
    except (OSError, ValueError):
        return False
    return text[text.rfind(")") + 2 :][:1] in {"T", "t"}


def _me() -> dict[str, Any]:
    since = datetime.now(UTC).isoformat(timespec="seconds")
    return {"pid": os.getpid(), "host": socket.gethostname(), "since": since}
