"""Looks for GPUs: on the bus, in the kernel, through NVML. No CUDA context is made."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from sweeper.doctor.facts import DeviceFacts, GpuFacts
from sweeper.hardware.nvidia import visible

T = TypeVar("T")

_GIB = 2**30
_MAKERS = {"0x10de": "NVIDIA", "0x1002": "AMD", "0x1da3": "Habana"}
"""Intel's graphics are part of most processors, and are left out."""
_DISPLAY, _ACCELERATOR = "0x03", "0x12"
_VERSION = re.compile(r"(?<![\w.])(\d{3}\.\d+(?:\.\d+)?)(?![\w.])")
_MODES = {1: "exclusive", 2: "prohibited", 3: "exclusive"}


def look(root: Path = Path("/")) -> DeviceFacts:
    """What there is of GPUs. `root` stands before /proc, /sys and /dev (for tests)."""
    setting = os.environ.get("CUDA_VISIBLE_DEVICES")
    module = _VERSION.search(_text(root / "proc/driver/nvidia/version"))
    facts = DeviceFacts(
        on_bus=_on_bus(root),
        nodes=tuple(sorted(path.name for path in (root / "dev").glob("nvidia[0-9]*"))),
        kernel_driver=module.group(1) if module else None,
        setting=setting,
        mps=_has_mps(),
    )
    return _asked(facts)


def _on_bus(root: Path) -> tuple[str, ...] | None:
    """Makers of display and compute devices; None where the bus is not shown."""
    folder = root / "sys/bus/pci/devices"
    if not folder.is_dir():
        return None
    found = []
    for device in folder.iterdir():
        kind, maker = _text(device / "class").strip(), _text(device / "vendor").strip()
        if kind.startswith((_DISPLAY, _ACCELERATOR)) and maker in _MAKERS:
            found.append(_MAKERS[maker])
    return tuple(sorted(found))


def _has_mps() -> bool:
    """A client of the service is told its pipes; its daemon makes them in a fixed place."""
    named = os.environ.get("CUDA_MPS_PIPE_DIRECTORY", "/tmp/nvidia-mps")
    return (Path(named) / "control").exists()


def _asked(facts: DeviceFacts) -> DeviceFacts:
    """The same with what NVML says."""
    try:
        import pynvml as nvml
    except ImportError:
        return replace(facts, nvml_error="nvidia-ml-py is not installed")
    try:
        nvml.nvmlInit()
    except nvml.NVMLError as error:
        return replace(facts, nvml_error=str(error))
    try:
        count = int(nvml.nvmlDeviceGetCount())
        gpus = tuple(_gpu(nvml, nvml.nvmlDeviceGetHandleByIndex(n)) for n in range(count))
        return replace(
            facts,
            driver=_word(nvml.nvmlSystemGetDriverVersion()),
            cuda=_cuda(_or_none(nvml, nvml.nvmlSystemGetCudaDriverVersion)),
            gpus=gpus,
            visible=len(visible(count, facts.setting)),
        )
    except nvml.NVMLError as error:
        return replace(facts, nvml_error=str(error))
    finally:
        nvml.nvmlShutdown()


def _gpu(nvml: Any, handle: Any) -> GpuFacts:
    memory = nvml.nvmlDeviceGetMemoryInfo(handle)
    capability = _or_none(nvml, lambda: nvml.nvmlDeviceGetCudaComputeCapability(handle))
    mode = _or_none(nvml, lambda: nvml.nvmlDeviceGetComputeMode(handle))
    held = _or_none(nvml, lambda: nvml.nvmlDeviceGetComputeRunningProcesses(handle)) or ()
    return GpuFacts(
        name=_word(nvml.nvmlDeviceGetName(handle)),
        total_gib=memory.total / _GIB,
        free_gib=memory.free / _GIB,
        capability=(int(capability[0]), int(capability[1])) if capability else None,
        mig=_slices(nvml, handle),
        compute_mode=_MODES.get(int(mode or 0), "default"),
        holders=tuple(f"{_called(process.pid)} (pid {process.pid})" for process in held),
    )


def _slices(nvml: Any, handle: Any) -> int | None:
    """Slices of a GPU in MIG mode, None outside it."""
    mode = _or_none(nvml, lambda: nvml.nvmlDeviceGetMigMode(handle))
    if not mode or not mode[0]:
        return None
    most = _or_none(nvml, lambda: nvml.nvmlDeviceGetMaxMigDeviceCount(handle)) or 0
    ask = nvml.nvmlDeviceGetMigDeviceHandleByIndex
    return sum(_or_none(nvml, partial(ask, handle, n)) is not None for n in range(int(most)))


def _called(pid: int) -> str:
    return _text(Path("/proc") / str(pid) / "comm").strip() or "a process outside this container"


def _cuda(number: Any) -> str | None:
    """NVML writes 12.4 as 12040."""
    return f"{int(number) // 1000}.{int(number) % 1000 // 10}" if number else None


def _or_none(nvml: Any, ask: Callable[[], T]) -> T | None:
    try:
        return ask()
    except nvml.NVMLError:
        return None


def _word(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
