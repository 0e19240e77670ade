"""NVIDIA GPUs as NVML reports them. No torch: asking must not start a CUDA context."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

T = TypeVar("T")

_GIB = 2**30


@dataclass(frozen=True)
class Gpu:
    """One GPU: name, memory in GiB, free memory in GiB, compute capability."""

    name: str
    memory_gib: float
    free_memory_gib: float
    compute_capability: tuple[int, int] | None


@dataclass(frozen=True)
class Holder:
    """A process that holds device memory; `gib` is None where the driver does not tell."""

    pid: int
    name: str
    gib: float | None


@dataclass(frozen=True)
class GpuMemory:
    """Memory of one GPU at one moment, in GiB, and who holds it as far as that can be seen."""

    uuid: str
    total_gib: float
    free_gib: float
    holders: tuple[Holder, ...]


@dataclass(frozen=True)
class Driver:
    """The driver's version, the CUDA version it offers, and the GPUs this process may use."""

    version: str
    cuda: str | None
    gpus: tuple[Gpu, ...]


def read_driver() -> Driver | None:
    """Ask NVML; None where there is no library, no driver or no visible GPU."""
    driver = _ask(_read)
    return driver if driver is not None and driver.gpus else None


def read_memory(setting: str | None) -> tuple[GpuMemory, ...] | None:
    """Memory of the GPUs that a process may use, and its holders.

    Args:
        setting: the process's CUDA_VISIBLE_DEVICES, None if it is not set.

    Returns:
        One entry a GPU; None if NVML cannot be asked, or does not know one of them.
    """
    return _ask(
        lambda nvml: tuple(
            _memory(nvml, _handle(nvml, entry))
            for entry in visible(nvml.nvmlDeviceGetCount(), setting)
        )
    )


def _ask(question: Callable[[Any], T]) -> T | None:
    """Put one question to NVML; None where there is no library, no driver or no answer."""
    try:
        import pynvml
    except ImportError:
        return None
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return None
    try:
        return question(pynvml)
    except pynvml.NVMLError:
        return None
    finally:
        pynvml.nvmlShutdown()


def visible(count: int, setting: str | None) -> list[int | str]:
    """GPUs named by CUDA_VISIBLE_DEVICES: indices or UUIDs, in order.

    As in CUDA, the first entry that is not a GPU ends the list, and an unset variable means all.
    """
    if setting is None:
        return list(range(count))
    chosen: list[int | str] = []
    for entry in (part.strip() for part in setting.split(",")):
        if entry.isdigit() and int(entry) < count:
            chosen.append(int(entry))
        elif entry.startswith(("GPU-", "MIG-")):
            chosen.append(entry)
        else:
            break
    return chosen


def _read(nvml: Any) -> Driver:
    chosen = visible(nvml.nvmlDeviceGetCount(), os.environ.get("CUDA_VISIBLE_DEVICES"))
    return Driver(
        version=_text(nvml.nvmlSystemGetDriverVersion()),
        cuda=_cuda_version(_or_none(nvml, nvml.nvmlSystemGetCudaDriverVersion)),
        gpus=tuple(_gpu(nvml, _handle(nvml, entry)) for entry in chosen),
    )


def _handle(nvml: Any, entry: int | str) -> Any:
    if isinstance(entry, int):
        return nvml.nvmlDeviceGetHandleByIndex(entry)
    # CUDA takes a UUID by any unique beginning, NVML only in full.
    for index in range(nvml.nvmlDeviceGetCount()):
        handle = nvml.nvmlDeviceGetHandleByIndex(index)
        if _text(nvml.nvmlDeviceGetUUID(handle)).startswith(entry):
            return handle
    return nvml.nvmlDeviceGetHandleByUUID(entry)


def _gpu(nvml: Any, handle: Any) -> Gpu:
    memory = nvml.nvmlDeviceGetMemoryInfo(handle)
    # A MIG slice may not tell its capability; then it is left open rather than guessed.
    capability = _or_none(nvml, lambda: nvml.nvmlDeviceGetCudaComputeCapability(handle))
    return Gpu(
        name=_text(nvml.nvmlDeviceGetName(handle)),
        memory_gib=memory.total / _GIB,
        free_memory_gib=memory.free / _GIB,
        compute_capability=(int(capability[0]), int(capability[1])) if capability else None,
    )


def _memory(nvml: Any, handle: Any) -> GpuMemory:
    memory = nvml.nvmlDeviceGetMemoryInfo(handle)
    ask = (nvml.nvmlDeviceGetComputeRunningProcesses, nvml.nvmlDeviceGetGraphicsRunningProcesses)
    # A process with both kinds of work is listed twice, with the same figure.
    held = {
        process.pid: process.usedGpuMemory
        for question in ask
        for process in _or_none(nvml, partial(question, handle)) or ()
    }
    return GpuMemory(
        uuid=_text(nvml.nvmlDeviceGetUUID(handle)),
        total_gib=memory.total / _GIB,
        free_gib=memory.free / _GIB,
        holders=tuple(
            Holder(pid, _process_name(pid), None if used is None else used / _GIB)
            for pid, used in sorted(held.items())
        ),
    )


def _process_name(pid: int) -> str:
    """As the kernel calls it; a process outside our container has no name here."""
    try:
        return (Path("/proc") / str(pid) / "comm").read_text(errors="replace").strip()
    except OSError:
        return "not visible here"


def _cuda_version(number: Any) -> str | None:
    """NVML writes 12.4 as 12040."""
    return f"{int(number) // 1000}.{int(number) % 1000 // 10}" if number else None


def _or_none(nvml: Any, ask: Callable[[], Any]) -> Any:
    try:
        return ask()
    except nvml.NVMLError:
        return None


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)
