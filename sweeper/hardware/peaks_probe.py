"""Worker: what a device's memory and arithmetic reach, measured with torch. A script of its own.

    python -P peaks_probe.py identify
    python -P peaks_probe.py cpu | cuda

It is started with the engine's interpreter, which has torch, and imports nothing of sweeper. Its
answer is one JSON line, the last on standard output: `identify` tells torch's version without
loading it; a measurement tells peaks; either says ``{"missing": "torch"}`` where there is none.

Every figure is the best of many repeats, because a peak is asked for and a neighbour on the machine
only ever slows a repeat down.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

CPU_BUDGET_S = 0.15
CUDA_BUDGET_S = 0.5
"""Time for one figure, warm-up not counted."""

CPU_BUFFER_BYTES = 256 * 2**20
CUDA_BUFFER_BYTES = 2**30
"""Far above what caches hold; a smaller buffer would measure those."""

LARGEST_CPU_MATRIX = 2048
SLOW_PRODUCT_S = 0.1
"""A product that takes longer is the last: twice the width takes eight times as long."""

LARGEST_CUDA_MATRIX = 8192
_CACHES = Path("/sys/devices/system/cpu")


def main(argv: list[str]) -> int:
    """Print one JSON line; 0 unless the measurement itself broke."""
    try:
        version = importlib.metadata.version("torch")
    except importlib.metadata.PackageNotFoundError:
        print(json.dumps({"missing": "torch"}))
        return 0
    answer: dict[str, Any] = {"torch": version}
    if argv[0] != "identify":
        answer |= measure(argv[0])
    print(json.dumps(answer))
    return 0


def measure(device: str) -> dict[str, Any]:
    """Peaks of one device: GB/s, TFLOP/s by precision, MiB of cache."""
    import torch

    if device == "cuda" and not torch.cuda.is_available():
        return {"missing": "cuda"}
    if device == "cpu":
        torch.set_num_threads(len(os.sched_getaffinity(0)))
    halves = [torch.bfloat16, torch.float16] if device == "cuda" else [torch.bfloat16]
    return {
        "bandwidth_gbs": bandwidth(torch, device) / 1e9,
        "tflops_bf16": max(matmul(torch, device, dtype) for dtype in halves) / 1e12,
        "tflops_float32": matmul(torch, device, torch.float32) / 1e12,
        "cache_mib": cuda_cache(torch) if device == "cuda" else cpu_caches(),
    }


def bandwidth(torch: Any, device: str) -> float:
    """Bytes a second of a large copy or a large read, whichever is faster.

    A copy moves each byte twice. Decoding reads weights and writes next to nothing, and on many
    processors reading alone is faster.
    """
    size = CUDA_BUFFER_BYTES if device == "cuda" else CPU_BUFFER_BYTES
    source = torch.empty(size // 4, dtype=torch.float32, device=device).fill_(1.0)
    target = torch.empty_like(source).fill_(0.0)
    copy = size * 2 / best_s(torch, device, lambda: target.copy_(source))
    read = size / best_s(torch, device, source.sum)
    return max(copy, read)


def matmul(torch: Any, device: str, dtype: Any) -> float:
    """FLOP/s of the best square product, from small to large.

    Sizes grow only while they stay cheap: a processor without the precision takes minutes for
    what another does in milliseconds.
    """
    largest = LARGEST_CUDA_MATRIX if device == "cuda" else LARGEST_CPU_MATRIX
    size, best = (1024 if device == "cuda" else 128), 0.0
    while size <= largest:
        left = torch.randn(size, size, device=device).to(dtype)
        seconds = best_s(torch, device, partial(torch.matmul, left, left))
        best = max(best, 2 * size**3 / seconds)
        if device == "cpu" and seconds > SLOW_PRODUCT_S:
            break
        size *= 2
    return best


def best_s(torch: Any, device: str, run: Callable[[], Any]) -> float:
    """Shortest time of one run in seconds; on a GPU runs are timed in blocks, launches overlap."""
    inner, budget_s = (10, CUDA_BUDGET_S) if device == "cuda" else (1, CPU_BUDGET_S)
    wait = torch.cuda.synchronize if device == "cuda" else _nothing
    run()
    wait()
    best, started = float("inf"), time.perf_counter()
    while best == float("inf") or time.perf_counter() - started < budget_s:
        before = time.perf_counter()
        for _ in range(inner):
            run()
        wait()
        best = min(best, (time.perf_counter() - before) / inner)
    return best


def _nothing() -> None:
    """A processor has finished when the call returns."""


def cuda_cache(torch: Any) -> float | None:
    """Second-level cache of the first GPU in MiB."""
    size = getattr(torch.cuda.get_device_properties(0), "L2_cache_size", None)
    return size / 2**20 if size else None


def cpu_caches() -> float | None:
    """Data caches of the processors this process may use in MiB, each counted once."""
    found: dict[tuple[str, str], float] = {}
    for cpu in os.sched_getaffinity(0):
        for index in (_CACHES / f"cpu{cpu}" / "cache").glob("index*"):
            try:
                kind, level, shared, size = (
                    (index / name).read_text(encoding="ascii").strip()
                    for name in ("type", "level", "shared_cpu_list", "size")
                )
            except OSError:
                continue
            if kind != "Instruction" and size.endswith("K"):
                found[level, shared] = float(size[:-1]) / 1024
    return sum(found.values()) or None


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
