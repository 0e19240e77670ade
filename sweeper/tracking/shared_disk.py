"""Do locks on a file system reach beyond this machine? Read from the kernel's table of mounts."""

from __future__ import annotations

import os
from pathlib import Path

_NETWORK = {"nfs", "nfs4", "cifs", "smb3", "lustre", "ceph", "gpfs", "beegfs", "9p", "afs"}
_LOCAL_LOCKS = {"nolock", "local_lock=all", "local_lock=flock", "nobrl", "localflock"}


def locks_stay_here(path: Path, mounts: str | None = None) -> bool:
    """True if another machine sees the file but not the locks on it.

    Args:
        path: a file or folder, absolute.
        mounts: content of ``/proc/self/mountinfo``; None reads it.
    """
    kind, options = _mount_of(os.path.realpath(path), _mounts() if mounts is None else mounts)
    return kind in _NETWORK and bool(_LOCAL_LOCKS & options)


def is_network(path: Path, mounts: str | None = None) -> bool:
    """True if the file system is a server's. Arguments as for `locks_stay_here`."""
    return _mount_of(os.path.realpath(path), _mounts() if mounts is None else mounts)[0] in _NETWORK


def _mounts() -> str:
    try:
        return Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _mount_of(path: str, mounts: str) -> tuple[str, set[str]]:
    """(type, options) of the file system a path lies on; later mounts hide earlier ones."""
    best, kind, options = "", "", set[str]()
    for line in mounts.splitlines():
        left, separator, right = line.partition(" - ")
        fields, kinds = left.split(), right.split()
        if not separator or len(fields) < 6 or len(kinds) < 3:
            continue
        point = fields[4].replace("\\040", " ")
        inside = path == point or path.startswith(point.rstrip("/") + "/")
        if inside and len(point) >= len(best):
            best, kind = point, kinds[0]
            options = {*fields[5].split(","), *kinds[2].split(",")}
    return kind, options
