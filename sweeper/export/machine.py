"""What a deployment asks of the machine it runs on: devices, memory, patience. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from sweeper.export.bundle import ExportInput

_SIZES = ("tensor_parallel_size", "pipeline_parallel_size", "data_parallel_size")
PROBE_PERIOD_S = 10
_MIN_START_S, _MIN_DOWNLOAD_S = 600, 1800
_START_MARGIN = 4
"""A start on another machine, with cold caches, may take this many times as long."""
_DRAIN_S = (5, 300)
_CORES_PER_GPU, _MEMORY_PER_GPU_GIB = 2, 8


def gpu_count(source: ExportInput) -> int:
    """GPUs of one server: tp * pp * dp, 0 on a CPU."""
    return 0 if source.measured_on.on_cpu else math.prod(degrees(source.public_flags).values())


def degrees(flags: Mapping[str, Any]) -> dict[str, int]:
    """Tensor, pipeline and data parallel sizes, 1 where none is set."""
    return {name: _size(flags.get(name, 1)) for name in _SIZES}


def _size(value: Any) -> int:
    return value if isinstance(value, int) and value > 0 else 1


def shm_gib(source: ExportInput) -> int:
    """Shared memory for the processes of a server, GiB: two for each, more than they take."""
    return 2 * max(1, math.prod(degrees(source.public_flags).values()))


def cpu_cores(source: ExportInput) -> int:
    """Cores to ask for: those of the machine of a CPU study, else an estimate."""
    known = source.measured_on.cpu_cores
    if source.measured_on.on_cpu and known is not None:
        return known
    return 2 + _CORES_PER_GPU * max(1, gpu_count(source))


def memory_gib(source: ExportInput) -> int:
    """Host memory to ask for, GiB: that of the machine of a CPU study, else an estimate."""
    on = source.measured_on
    if on.on_cpu and on.host_memory_gib is not None:
        return max(1, math.floor(on.host_memory_gib))
    return _MEMORY_PER_GPU_GIB * max(1, gpu_count(source)) + shm_gib(source)


def start_attempts(source: ExportInput) -> int:
    """Probes to wait for a start, one every `PROBE_PERIOD_S`; longer where weights are fetched."""
    least = _MIN_START_S if source.model_path.startswith("/") else _MIN_DOWNLOAD_S
    measured = _START_MARGIN * (source.measured_on.ready_s or 0.0)
    return math.ceil(max(least, measured) / PROBE_PERIOD_S)


def drain_s(source: ExportInput) -> int:
    """How long to go on serving once told to stop: twice the end-to-end P95."""
    measured = source.recommendation.point.get("e2e_p95_ms")
    wanted = 0 if measured is None else math.ceil(2 * float(measured) / 1000)
    return min(max(wanted, _DRAIN_S[0]), _DRAIN_S[1])


def notes(source: ExportInput) -> list[str]:
    """What of it was measured and what was not, for a comment."""
    on = source.measured_on
    if on.on_cpu:
        share = source.public_flags.get("gpu_memory_utilization", "its default share")
        return [
            "CPU and memory are those of the machine it was measured on. vLLM takes "
            f"gpu-memory-utilization ({share}) of the memory limit, on a CPU too: another limit "
            "gives another KV cache.",
            "vLLM starts a thread for each core that it may run on: give it whole cores (a cpuset; "
            "in Kubernetes the static CPU manager), not a share of time on all of them.",
        ]
    return [
        "The GPUs are tp * pp * dp. What it takes of the host was not measured, and is estimated: "
        "two cores and 8 GiB a GPU, two cores more, and room for the shared memory."
    ]
