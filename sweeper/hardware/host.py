"""The machine around the devices: processor, cores and memory this process may really use.

A container's limits count, not the machine's size. Both generations of control groups are read; the
tightest limit on the way from the process's own group up to the root applies.
"""

from __future__ import annotations

import math
import os
import platform
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_GIB = 2**30
_FEATURES = ("avx2", "avx512f", "avx512_bf16", "avx512_vnni", "amx_tile", "amx_bf16", "amx_int8")


@dataclass(frozen=True)
class Host:
    """What this process may use.

    Attributes:
        cpu_model: processor name.
        cpu_cores: cores by affinity and quota.
        cpu_features: vector extensions of an x86 processor, see `HardwareFacts`.
        memory_gib: the smaller of machine and container limit.
        free_memory_gib: available within both.
    """

    cpu_model: str
    cpu_cores: int
    cpu_features: tuple[str, ...]
    memory_gib: float
    free_memory_gib: float


def read_host(root: Path = Path("/")) -> Host:
    """Read this machine. `root` stands before /proc and /sys (for tests)."""
    import psutil

    memory = psutil.virtual_memory()
    total, free = float(memory.total), float(memory.available)
    limit, used = _memory_limit(root)
    if limit is not None and limit < total:
        total, free = limit, min(free, max(0.0, limit - used))
    return Host(
        cpu_model=_cpu_model(root),
        cpu_cores=_cores(root),
        cpu_features=_features(root),
        memory_gib=total / _GIB,
        free_memory_gib=free / _GIB,
    )


def _cores(root: Path) -> int:
    allowed = len(os.sched_getaffinity(0))
    quotas = [quota for quota in map(_quota_of, _groups(root, "cpu")) if quota is not None]
    return max(1, min([allowed, *(math.ceil(quota) for quota in quotas)]))


def _memory_limit(root: Path) -> tuple[float | None, float]:
    """Tightest memory limit in bytes (None if unlimited), and what is used of it."""
    limits: list[tuple[float, float]] = []
    for folder in _groups(root, "memory"):
        for limit_name, used_name in (
            ("memory.max", "memory.current"),
            ("memory.limit_in_bytes", "memory.usage_in_bytes"),
        ):
            limit = _number(folder / limit_name)
            if limit is not None:
                limits.append((limit, (_number(folder / used_name) or 0.0) - _file_cache(folder)))
    return min(limits, default=(None, 0.0), key=lambda pair: pair[0] or 0.0)


def _file_cache(folder: Path) -> float:
    """Bytes of file cache the kernel would give back (they count as used, but are not taken)."""
    for line in _lines(folder / "memory.stat"):
        name, _, value = line.partition(" ")
        if name in {"inactive_file", "total_inactive_file"} and value.isdigit():
            return float(value)
    return 0.0


def _quota_of(folder: Path) -> float | None:
    """Cores granted by quota / period, None if unlimited."""
    fields = " ".join(_lines(folder / "cpu.max")).split()
    if len(fields) == 2 and fields[0] != "max":
        return float(fields[0]) / float(fields[1])
    quota, period = _number(folder / "cpu.cfs_quota_us"), _number(folder / "cpu.cfs_period_us")
    return quota / period if quota and period and quota > 0 else None


def _groups(root: Path, controller: str) -> Iterator[Path]:
    """Folders of this process's control group and its ancestors, for one controller."""
    for line in _lines(root / "proc/self/cgroup"):
        number, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if number == "0":
            base = root / "sys/fs/cgroup"
        elif controller in controllers.split(","):
            base = root / "sys/fs/cgroup" / controller
        else:
            continue
        # Inside a container the path may be the host's; walking up finds what is mounted here.
        folder = base / path.strip().lstrip("/")
        while folder != base:
            yield folder
            folder = folder.parent
        yield base


def _cpu_model(root: Path) -> str:
    for line in _lines(root / "proc/cpuinfo"):
        name, _, value = line.partition(":")
        if name.strip() in {"model name", "Model"}:
            return value.strip()
    return platform.processor() or platform.machine()


def _features(root: Path) -> tuple[str, ...]:
    for line in _lines(root / "proc/cpuinfo"):
        name, _, value = line.partition(":")
        if name.strip() == "flags":
            flags = set(value.split())
            return tuple(feature for feature in _FEATURES if feature in flags)
    return ()


def _number(path: Path) -> float | None:
    try:
        return float(path.read_text().strip())
    except (OSError, ValueError):  # absent, or "max"
        return None


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(errors="replace").splitlines()
    except OSError:
        return []
