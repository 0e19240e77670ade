"""Looks at the machine. Every look may fail, and then the fact is None."""

from __future__ import annotations

import os
import platform
import resource
import shutil
import sys
import tempfile
import time
from pathlib import Path

from sweeper.doctor.facts import UNLIMITED, HostFacts, Room
from sweeper.hardware.host import read_host

_GIB = 2**30
_CONTAINER_MARKS = ("docker", "kubepods", "containerd", "libpod", "lxc")


def look(studies: Path) -> HostFacts:
    """The machine as this process sees it; `studies` is where studies will lie."""
    host = read_host()
    low_high = _text(Path("/proc/sys/net/ipv4/ip_local_port_range")).split()
    return HostFacts(
        system=platform.system(),
        python=sys.version_info[:3],
        unmet=unmet(),
        in_container=in_container(),
        cpu_model=host.cpu_model,
        cpu_cores=host.cpu_cores,
        cpu_features=host.cpu_features,
        machine=platform.machine(),
        memory_gib=host.memory_gib,
        free_memory_gib=host.free_memory_gib,
        shared_memory=room(Path("/dev/shm")),
        overcommit=_number(Path("/proc/sys/vm/overcommit_memory")),
        max_files=_hard_limit(resource.RLIMIT_NOFILE),
        max_tasks=_max_tasks(),
        ports=int(low_high[1]) - int(low_high[0]) + 1 if len(low_high) == 2 else None,
        loopback_error=_loopback_error(),
        encoding=getattr(sys.stdout, "encoding", None) or "utf-8",
        clock_ahead_s=_clock_ahead_s(),
        disk_clock_s=_disk_clock_s(studies),
        clock_source=_text(_CLOCK).strip() or None,
        compiler=_compiler(),
    )


def room(path: Path) -> Room | None:
    """Of the disk that a path lies on, or will lie on."""
    try:
        found = os.statvfs(nearest(path))
    except OSError:
        return None
    # File systems without a table of inodes say 0 of 0.
    inodes = found.f_favail if found.f_files else None
    block = found.f_frsize
    return Room(found.f_blocks * block / _GIB, found.f_bavail * block / _GIB, inodes)


def nearest(path: Path) -> Path:
    """The path, or the nearest folder above it that exists."""
    absolute = path.absolute()
    return next(place for place in (absolute, *absolute.parents) if os.path.lexists(place))


def in_container() -> bool:
    """Whether this is a container, by the marks that runtimes leave."""
    if Path("/.dockerenv").exists() or Path("/run/.containerenv").exists():
        return True
    if "KUBERNETES_SERVICE_HOST" in os.environ:
        return True
    groups = _text(Path("/proc/1/cgroup"))
    return any(mark in groups for mark in _CONTAINER_MARKS)


def unmet() -> tuple[str, ...] | None:
    """What the installed sweeper depends on and this environment lacks, in words."""
    from importlib import metadata

    try:
        from packaging.requirements import Requirement
    except ImportError:
        return ("packaging is missing",)
    try:
        wanted = metadata.requires("sweeper")
    except metadata.PackageNotFoundError:
        return None
    lacking = []
    for requirement in map(Requirement, wanted or ()):
        if requirement.marker is not None and not requirement.marker.evaluate({"extra": ""}):
            continue
        try:
            version = metadata.version(requirement.name)
        except metadata.PackageNotFoundError:
            lacking.append(f"{requirement.name} is missing")
            continue
        if not requirement.specifier.contains(version, prereleases=True):
            lacking.append(f"{requirement.name} {version} is not {requirement.specifier}")
    return tuple(lacking)


def _hard_limit(which: int) -> int | None:
    """The limit that a process may raise itself to."""
    hard = resource.getrlimit(which)[1]
    return UNLIMITED if hard == resource.RLIM_INFINITY else hard


def _max_tasks() -> int | None:
    """The smaller of the user's limit and the container's."""
    # One's own group is shown at the root inside a container, and by its path on a host.
    lines = _text(Path("/proc/self/cgroup")).splitlines()
    own = next((line[3:].strip("/") for line in lines if line.startswith("0::")), "")
    groups = Path("/sys/fs/cgroup")
    told = (groups / own / "pids.max", groups / "pids.max", groups / "pids" / "pids.max")
    limits = [number for path in told if (number := _number(path)) is not None]
    user = _hard_limit(resource.RLIMIT_NPROC)
    return min([*limits, *([user] if user is not None else [])], default=None)


def _loopback_error() -> str:
    from sweeper.engine.ports import free_port

    try:
        free_port()
    except OSError as error:
        return error.strerror or str(error)
    return ""


def _clock_ahead_s() -> float | None:
    """How far the newest of our own files is in the future."""
    try:
        newest = max(path.stat().st_mtime for path in Path(__file__).parents[1].glob("*.py"))
    except (OSError, ValueError):
        return None
    return newest - time.time()


def _disk_clock_s(studies: Path) -> float | None:
    """What a file that is made now is dated, less what this machine's clock says."""
    try:
        with tempfile.TemporaryFile(dir=nearest(studies)) as file:
            file.write(b"x")
            file.flush()
            return os.fstat(file.fileno()).st_mtime - time.time()
    except OSError:
        return None


def _compiler() -> str | None:
    named = os.environ.get("CC")
    for name in ([named] if named else []) + ["gcc", "cc", "clang"]:
        if found := shutil.which(name.split()[0] if name.split() else name):
            return found
    return None


_CLOCK = Path("/sys/devices/system/clocksource/clocksource0/current_clocksource")


def _number(path: Path) -> int | None:
    text = _text(path).strip()
    return int(text) if text.isdigit() else None


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
