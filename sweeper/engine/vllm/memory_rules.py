"""vLLM's error texts about memory, and what their figures teach. Pure."""

from __future__ import annotations

import math
import re

from sweeper.engine.rules import Learnt, Rule, groups, number, rule
from sweeper.verdicts import Verdict

CAPACITY = Verdict.CAPACITY
INFRA = Verdict.INFRA

FOREIGN_SHARE = 0.05
FOREIGN_GIB = 1.0
"""What driver and own context may hold of a device, the larger of the two; more is another's."""
BOGUS_GRAPH_GIB = 64.0
"""CUDA graphs take a few GiB; an estimate beyond this is a bug of the profiler."""

_LOWER_MEMORY = (
    "lower gpu_memory_utilization, max_num_seqs or max_num_batched_tokens, or spread the "
    "model over more devices"
)
_MORE_KV = (
    "raise gpu_memory_utilization, lower max_model_len, quantize weights or KV cache, or use more "
    "devices"
)
_FOREIGN = "another process holds memory of the device: end it, or lower gpu_memory_utilization"

_FIGURE = r"(\d[\d.,]{0,17})"
_UNITS_GIB = {"B": 2.0**-30, "KiB": 2.0**-20, "MiB": 2.0**-10, "GiB": 1.0, "TiB": 2.0**10}
_OOM_AMOUNTS = tuple(
    (name, re.compile(label + " " + _FIGURE + r" (B|KiB|MiB|GiB|TiB)\b"))
    for name, label in [
        ("tried_gib", "[Tt]ried to allocate"),
        ("device_memory_gib", "total capacity of"),
        ("free_gib", "of which"),
        ("own_gib", "this process has"),
    ]
)
_OOM_OTHER = re.compile(rf"\bProcess \d{{1,10}} has {_FIGURE} (B|KiB|MiB|GiB|TiB) memory in use")


def _gib(amount: str, unit: str) -> float | None:
    try:
        return round(number(amount.rstrip(".,")) * _UNITS_GIB[unit], 4)
    except ValueError:
        return None


def _is_foreign(foreign_gib: float, total_gib: float) -> bool:
    return foreign_gib > max(FOREIGN_SHARE * total_gib, FOREIGN_GIB)


def _share(free_gib: float, total_gib: float) -> float | None:
    """The share of a device that is free, rounded down: more would not fit."""
    return math.floor(free_gib / total_gib * 1e4) / 1e4 if total_gib > 0 else None


def _learn_oom(match: re.Match[str]) -> Learnt:
    """Amounts of PyTorch's out-of-memory text, where it tells them."""
    learnt: Learnt = {}
    for name, pattern in _OOM_AMOUNTS:
        found = pattern.search(match.string)
        if found is not None and (amount := _gib(*found.groups())) is not None:
            learnt[name] = amount
    others = [_gib(*found) for found in _OOM_OTHER.findall(match.string)]
    # In a container the own process is listed among the others, under its number outside.
    if "own_gib" in learnt and any(others):
        learnt["foreign_gib"] = round(sum(amount or 0.0 for amount in others), 4)
    return learnt


def _judge_oom(learnt: Learnt, log_text: str) -> tuple[Verdict, str] | None:
    capturing = max(log_text.rfind("Capturing CUDA graph"), log_text.rfind("capture_model"))
    if capturing >= 0 and "Graph capturing finished" not in log_text:
        learnt["stage"] = "graph_capture"
    total_gib = learnt.get("device_memory_gib", 0.0)
    if _is_foreign(learnt.get("foreign_gib", 0.0), total_gib):
        return INFRA, _FOREIGN
    return None


def _judge_kv_size(learnt: Learnt, log_text: str) -> tuple[Verdict, str] | None:
    """A cache of a size that was asked for grows by that alone."""
    if "'kv_cache_memory_bytes':" not in log_text:
        return None
    return CAPACITY, "raise kv_cache_memory_bytes, or lower max_model_len"


def _judge_no_cache(learnt: Learnt, log_text: str) -> tuple[Verdict, str] | None:
    """A graph estimate larger than the device says more of the profiler than of the deployment."""
    estimate = re.search(r"Estimated CUDA graph memory: (\d{1,9}(?:\.\d{1,9})?) GiB", log_text)
    if estimate is None:
        return None
    graphs_gib = float(estimate.group(1))
    learnt["estimated_graph_memory_gib"] = graphs_gib
    device = re.search(
        r"Free memory on device[^(]{0,60}\([\d.]{1,12}/(\d{1,9}(?:\.\d{1,9})?) GiB\)", log_text
    )
    limit_gib = float(device.group(1)) if device is not None else BOGUS_GRAPH_GIB
    if graphs_gib <= limit_gib:
        return None
    return INFRA, (
        "vLLM's estimate of its CUDA graphs exceeds the device, which is a fault of the estimate: "
        "set env.VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS=0"
    )


def learn_free(match: re.Match[str]) -> Learnt:
    """Free and total memory of a device, and the share that may be asked of it."""
    learnt = groups(
        device=str,
        free_gib=float,
        total_gib=float,
        gpu_memory_utilization=float,
        asked_gib=float,
    )(match)
    share = _share(learnt.get("free_gib", 0.0), learnt.get("total_gib", 0.0))
    if share is not None:
        learnt["max_gpu_memory_utilization"] = share
    return learnt


def _judge_free_memory(learnt: Learnt, log_text: str) -> tuple[Verdict, str] | None:
    """Without foreign memory on the device, the share asked for is simply too large."""
    total_gib = learnt.get("total_gib", 0.0)
    if _is_foreign(total_gib - learnt.get("free_gib", 0.0), total_gib):
        return None
    return CAPACITY, "lower gpu_memory_utilization below the share of the device that is free"


def _learn_tokens(match: re.Match[str]) -> Learnt:
    learnt = groups(max_model_len=int, kv_cache_tokens=int)(match)
    # One request may have as many tokens as the whole cache holds.
    return {**learnt, "estimated_max_model_len": learnt.get("kv_cache_tokens", 0)}


MEMORY = (
    Rule(
        "no_kv_memory",
        re.compile(r"No available memory for the cache blocks"),
        CAPACITY,
        _MORE_KV,
        "0.11, 0.32, 0.33; until 0.11 only the first sentence",
        judge=_judge_no_cache,
    ),
    Rule(
        "kv_too_small_for_max_model_len",
        re.compile(
            r"To serve at least one request with the models?'?s? max seq len "
            r"\((?P<max_model_len>\d+)\),? "
            r"\((?P<needed_kv_gib>[\d.]+) GiB KV cache is needed, which is larger than the "
            r"available KV cache memory \((?P<kv_cache_memory_gib>[\d.]+) GiB\)"
            r"(?:.*estimated maximum model length is (?P<estimated_max_model_len>\d+))?"
        ),
        CAPACITY,
        _MORE_KV,
        '0.11, 0.32, 0.33; 0.11 writes "models\'s"',
        groups(
            max_model_len=int,
            needed_kv_gib=float,
            kv_cache_memory_gib=float,
            estimated_max_model_len=int,
        ),
        _judge_kv_size,
    ),
    Rule(
        "kv_too_small_for_max_model_len",
        re.compile(
            r"max seq len \((?P<max_model_len>\d+)\) is larger than the maximum number of tokens "
            r"that can be stored in KV cache \((?P<kv_cache_tokens>\d+)\)"
        ),
        CAPACITY,
        _MORE_KV,
        "0.6",
        _learn_tokens,
    ),
    rule(
        "kv_too_small_for_max_model_len",
        r"Cannot auto-fit max_model_len: not enough GPU memory",
        CAPACITY,
        _MORE_KV,
        "0.32",
    ),
    rule(
        "too_few_state_blocks",
        r"max_num_seqs \((?P<max_num_seqs>\d+)\) exceeds available Mamba cache blocks "
        r"\((?P<highest_max_num_seqs>\d+)\)",
        CAPACITY,
        "lower max_num_seqs to the number of blocks, or raise gpu_memory_utilization",
        "0.32",
        max_num_seqs=int,
        highest_max_num_seqs=int,
    ),
    Rule(
        "device_memory_taken",
        re.compile(
            r"Free memory on device (?:(?P<device>\S{1,40}) )?"
            r"\((?P<free_gib>[\d.]+)/(?P<total_gib>[\d.]+) GiB\) on startup is less than "
            r"(?:desired GPU memory utilization|the engine's budget.{0,80}?) "
            r"\((?P<gpu_memory_utilization>[\d.]+), (?P<asked_gib>[\d.]+) GiB\)"
        ),
        INFRA,
        _FOREIGN,
        "0.11 without, 0.32 and 0.33 with the device's name",
        learn_free,
        _judge_free_memory,
    ),
    rule(
        "device_memory_changed",
        r"Error in memory profiling\. Initial free memory (?P<free_gib>[\d.]+) GiB, current free "
        r"memory (?P<free_later_gib>[\d.]+) GiB",
        INFRA,
        "another process gave device memory back while vLLM measured its own: let nothing else "
        "start or end on the device",
        "0.32",
        free_gib=float,
        free_later_gib=float,
    ),
    rule(
        "warm_up_out_of_memory",
        r"CUDA out of memory occurred when warming up (?:sampler|pooler)\b.{0,60}? with "
        r"(?P<max_num_seqs>\d+) dummy requests",
        CAPACITY,
        "lower max_num_seqs or gpu_memory_utilization",
        "0.32",
        max_num_seqs=int,
    ),
    Rule(
        "device_out_of_memory",
        re.compile(
            r"\bOutOfMemoryError\b(?!: Task was killed)"
            r"|(?:CUDA|HIP|XPU) out of memory|CUDA error: out of memory"
            r"|Cuda failure (?:\d{1,4} )?'out of memory'|cudaErrorMemoryAllocation"
            r"|CUDA_ERROR_OUT_OF_MEMORY|CUBLAS_STATUS_ALLOC_FAILED|hipErrorOutOfMemory"
        ),
        CAPACITY,
        _LOWER_MEMORY,
        "any",
        _learn_oom,
        _judge_oom,
    ),
)
