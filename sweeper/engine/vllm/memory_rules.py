"""vLLM's error texts about memory, and what their figures teach. Pure."""

from __future__ import annotations

import re

from sweeper.engine.diagnosis import Learnt, Rule, groups, number, rule
from sweeper.verdicts import Verdict

CAPACITY = Verdict.CAPACITY
INFRA = Verdict.INFRA

FOREIGN_SHARE = 0.05
"""Share of a device that its own driver and context may hold; more is another process's."""
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


def _gib(amount: str, unit: str) -> float:
    factor = {"B": 2.0**-30, "KiB": 2.0**-20, "MiB": 2.0**-10, "GiB": 1.0, "TiB": 2.0**10}[unit]
    return round(number(amount) * factor, 4)


def _learn_oom(match: re.Match[str]) -> Learnt:
    """Amounts of PyTorch's out-of-memory text, where it tells them."""
    learnt: Learnt = {}
    for name, label in [
        ("tried_gib", r"Tried to allocate"),
        ("device_memory_gib", r"total capacity of"),
        ("free_gib", r"of which"),
    ]:
        found = re.search(label + r" ([\d.,]*\d) (B|KiB|MiB|GiB|TiB)", match.string)
        if found is not None:
            learnt[name] = _gib(found.group(1), found.group(2))
    return learnt


def _judge_oom(learnt: Learnt, log_text: str) -> None:
    capturing = max(log_text.rfind("Capturing CUDA graph"), log_text.rfind("capture_model"))
    if capturing >= 0 and "Graph capturing finished" not in log_text:
        learnt["stage"] = "graph_capture"


def _judge_no_cache(learnt: Learnt, log_text: str) -> tuple[Verdict, str] | None:
    """A graph estimate larger than the device says more of the profiler than of the deployment."""
    estimate = re.search(r"Estimated CUDA graph memory: ([\d.]+) GiB", log_text)
    if estimate is None:
        return None
    graphs_gib = float(estimate.group(1))
    learnt["estimated_graph_memory_gib"] = graphs_gib
    device = re.search(r"Free memory on device[^(]*\([\d.]+/([\d.]+) GiB\)", log_text)
    limit_gib = float(device.group(1)) if device is not None else BOGUS_GRAPH_GIB
    if graphs_gib <= limit_gib:
        return None
    return INFRA, (
        "vLLM's estimate of its CUDA graphs exceeds the device, which is a fault of the estimate: "
        "set env.VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS=0"
    )


def _judge_free_memory(learnt: Learnt, log_text: str) -> tuple[Verdict, str] | None:
    """Without foreign memory on the device, the share asked for is simply too large."""
    free, total = float(learnt["free_gib"]), float(learnt["total_gib"])
    learnt["max_gpu_memory_utilization"] = round(free / total, 4)
    if total - free > FOREIGN_SHARE * total:
        return None
    return CAPACITY, "lower gpu_memory_utilization below the share of the device that is free"


def _learn_host_memory(match: re.Match[str]) -> Learnt:
    learnt = groups(free_gib=float, total_gib=float)(match)
    learnt["max_gpu_memory_utilization"] = round(
        float(learnt["free_gib"]) / float(learnt["total_gib"]), 4
    )
    return learnt


MEMORY = (
    Rule(
        "no_kv_memory",
        re.compile(r"No available memory for the cache blocks"),
        CAPACITY,
        _MORE_KV,
        "all; from 0.12 on with an explanation after the first sentence",
        judge=_judge_no_cache,
    ),
    rule(
        "kv_too_small_for_max_model_len",
        r"To serve at least one request with the models?'s? max seq len "
        r"\((?P<max_model_len>\d+)\),? "
        r"\((?P<needed_kv_gib>[\d.]+) GiB KV cache is needed, which is larger than the "
        r"available KV cache memory \((?P<kv_cache_memory_gib>[\d.]+) GiB\)"
        r"(?:.*estimated maximum model length is (?P<estimated_max_model_len>\d+))?",
        CAPACITY,
        _MORE_KV,
        '0.8 and later; 0.11 writes "models\'s"',
        max_model_len=int,
        needed_kv_gib=float,
        kv_cache_memory_gib=float,
        estimated_max_model_len=int,
    ),
    rule(
        "kv_too_small_for_max_model_len",
        r"max seq len \((?P<max_model_len>\d+)\) is larger than the maximum number of tokens "
        r"that can be stored in KV cache \((?P<estimated_max_model_len>\d+)\)",
        CAPACITY,
        _MORE_KV,
        "0.6 and 0.7",
        max_model_len=int,
        estimated_max_model_len=int,
    ),
    Rule(
        "device_memory_taken",
        re.compile(
            r"Free memory on device (?:(?P<device>\S+) "
            r")?\((?P<free_gib>[\d.]+)/(?P<total_gib>[\d.]+) "
            r"GiB\) on startup is less than (?:desired GPU memory utilization|the engine's "
            r"budget.*?) \((?P<gpu_memory_utilization>[\d.]+), (?P<asked_gib>[\d.]+) GiB\)"
        ),
        INFRA,
        "another process holds memory of the device: end it, or lower gpu_memory_utilization",
        "0.11 without, 0.30 and later with the device's name",
        groups(
            device=str,
            free_gib=float,
            total_gib=float,
            gpu_memory_utilization=float,
            asked_gib=float,
        ),
        _judge_free_memory,
    ),
    Rule(
        "host_memory_taken",
        re.compile(
            r"Available memory on node \d+ \((?P<free_gib>[\d.]+)/(?P<total_gib>[\d.]+) GiB\) on "
            r"(?:startup|kv cache allocation) is less than"
        ),
        CAPACITY,
        "lower gpu_memory_utilization (on a CPU it is the share of the machine's memory), or free "
        "memory of the machine",
        "0.30 and later, CPU",
        _learn_host_memory,
    ),
    Rule(
        "device_out_of_memory",
        re.compile(
            r"OutOfMemoryError|CUDA out of memory|CUDA error: out of memory|HIP out of memory"
        ),
        CAPACITY,
        _LOWER_MEMORY,
        "all",
        _learn_oom,
        _judge_oom,
    ),
    rule(
        "host_out_of_memory",
        r"DefaultCPUAllocator: (?:can't allocate|not enough) memory|^MemoryError|Cannot "
        r"allocate memory",
        CAPACITY,
        _LOWER_MEMORY,
    ),
)
