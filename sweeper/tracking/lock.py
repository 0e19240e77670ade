"""Locks between processes: one tuner a study, one maker of a shared database.

The kernel drops a lock with its owner, so a killed tuner never leaves a stale one behind.
"""

from __future__ import annotations

import fcntl
import json
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any

from sweeper.errors import ConfigError, StudyError


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
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(descriptor)
            raise self._refusal(error) from error
        self._descriptor = descriptor
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
        os.ftruncate(self._descriptor, 0)
        os.close(self._descriptor)
        self._descriptor = None

    def is_held(self) -> bool:
        """True if some tuner, this process included, works on the study now."""
        try:
            descriptor = os.open(self.path, os.O_RDWR | os.O_CLOEXEC)
        except OSError:
            return False
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
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
        who = (
            f"process {owner.get('pid')} on {owner.get('host')} since {owner.get('since')}"
            if owner
            else "another process"
        )
        return StudyError(
            f"study {self.path.parent.name!r} is in use by {who}",
            "wait for it or stop it, or give this run another name with study=NAME",
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


def _open(path: Path) -> int:
    """Open a lock file. Not inherited by children, so that a server cannot keep the lock."""
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise ConfigError(
            f"cannot make the lock file {path} ({error.strerror or error})",
            "make its folder writable, or name another one with studies_dir=/path/to/folder",
        ) from error


def _me() -> dict[str, Any]:
    since = datetime.now(UTC).isoformat(timespec="seconds")
    return {"pid": os.getpid(), "host": socket.gethostname(), "since": since}
