"""NVIDIA GPUs as NVML reports them. No torch: asking must not start a CUDA context."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

_GIB = 2**30


@dataclass(frozen=True)
class Gpu:
    """One GPU: name, memory in GiB, free memory in GiB, compute capability."""

    name: str
    memory_gib: float
    free_memory_gib: float
    compute_capability: tuple[int, int] | None


@dataclass(frozen=True)
class Driver:
    """The driver's version, the CUDA version it offers, and the GPUs this process may use."""

    version: str
    cuda: str | None
    gpus: tuple[Gpu, ...]


def read_driver() -> Driver | None:
    """Ask NVML; None where there is no library, no driver or no visible GPU."""
    try:
        import pynvml
    except ImportError:
        return None
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return None
    try:
        driver = _read(pynvml)
    except pynvml.NVMLError:
        return None
    finally:
        pynvml.nvmlShutdown()
    return driver if driver.gpus else None


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
