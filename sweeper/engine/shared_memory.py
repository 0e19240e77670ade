"""Files in shared memory that a launch leaves when it is killed, and their removal.

The kernel gives back everything of a dead process but these. A file is removed only if it is one of
the launch for certain: it was not there before, a process of the launch was seen to use it, it is
this user's own, and no living process uses it now. Others' files, and files that merely appeared
meanwhile, are left alone.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from sweeper.engine import procfs

FOLDER = Path("/dev/shm")
_PROC = Path("/proc")


@dataclass
class SharedMemory:
    """What one launch uses in shared memory.

    Attributes:
        before: names that were there before the launch.
        used: names that its processes were seen to use.
    """

    before: frozenset[str] = frozenset()
    used: set[str] = field(default_factory=set)

    @classmethod
    def now(cls) -> SharedMemory:
        """Begin to watch, before a launch is started."""
        return cls(frozenset(_names()))

    def look(self, pids: Iterable[int]) -> None:
        """Note what these processes of the launch use now."""
        for pid in pids:
            self.used |= _used_by(pid) - self.before

    def remove_left(self) -> list[str]:
        """Remove what is left, once all processes of the launch are dead. Returns the names."""
        left = self.used & set(_names())
        if not left:
            return []
        for pid, process in procfs.table().items():
            if process.is_stuck:
                return []  # what it uses may never be told
            left -= _used_by(pid)
        removed = []
        for name in sorted(left):
            path = FOLDER / name
            with contextlib.suppress(OSError):
                found = path.lstat()
                if stat.S_ISREG(found.st_mode) and found.st_uid == os.getuid():
                    path.unlink()
                    removed.append(name)
        return removed


def _names() -> list[str]:
    try:
        return os.listdir(FOLDER)  # noqa: PTH208 - names, and no objects for what others have there
    except OSError:
        return []


def _used_by(pid: int) -> set[str]:
    """Names of files in shared memory that a process has mapped or open."""
    prefix = f"{FOLDER}/"
    found: set[str] = set()
    process = procfs.read(pid)
    if process is None or process.is_stuck:
        return found  # reading its maps might never end
    with contextlib.suppress(OSError):
        maps = (_PROC / str(pid) / "maps").read_text(errors="replace")
        found |= {
            line[line.index(prefix) + len(prefix) :] for line in maps.splitlines() if prefix in line
        }
    with contextlib.suppress(OSError):
        for entry in (_PROC / str(pid) / "fd").iterdir():
            with contextlib.suppress(OSError):
                target = str(entry.readlink())
                if target.startswith(prefix):
                    found.add(target.removeprefix(prefix))
    return {name for name in found if "/" not in name and not name.endswith(" (deleted)")}
