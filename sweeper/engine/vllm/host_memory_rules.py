"""vLLM's error texts about the memory of a machine whose processor it runs on. Pure.

On a CPU gpu_memory_utilization is a share of the machine's memory. vLLM takes the process's memory
off it (weights, working memory) and makes the rest the KV cache:

    asked = share x total        KV cache = asked - used        must be > 0 and <= free
"""

from __future__ import annotations

import math
import re

from sweeper.engine.rules import Learnt, Rule, groups
from sweeper.engine.vllm.memory_rules import learn_free
from sweeper.verdicts import Verdict

CAPACITY = Verdict.CAPACITY
INFRA = Verdict.INFRA

_IS_A_SHARE = " (on a CPU it is the share of the machine's memory)"
_LARGER_HOST_SHARE = (
    "raise gpu_memory_utilization (on a CPU it is the share of the machine's memory, and weights "
    "and working memory are taken off it first), or use a smaller model"
)
_NODE = r"Available memory on node \d+ \((?P<free_gib>[\d.]+)/(?P<total_gib>[\d.]+) GiB\) "

IDLE_TAKEN_SHARE = 0.15
IDLE_TAKEN_GIB = 4.0
"""What an idle machine may have in use when a worker on its CPU asks for memory, the larger of the
two: the operating system, and the engine's own processes with Python and torch in each (2 GiB were
seen in all). What would have fit beside that fails only because other programs hold memory now,
which says nothing of the deployment; what would not have fit is the deployment's."""


def _learn_free_host(match: re.Match[str]) -> Learnt:
    """Like `learn_free`; no limit is learnt of a moment in which others held memory."""
    learnt = learn_free(match)
    total_gib = learnt.get("total_gib", 0.0)
    if learnt.get("free_gib", 0.0) < _idle_gib(total_gib):
        learnt.pop("max_gpu_memory_utilization", None)
    return learnt


def _learn_host_share(match: re.Match[str]) -> Learnt:
    """The share of a CPU's memory that was asked for, and what of it was in use already."""
    learnt = groups(free_gib=float, total_gib=float, asked_gib=float, kv_cache_memory_gib=float)(
        match
    )
    if "asked_gib" in learnt and "kv_cache_memory_gib" in learnt:
        learnt["used_gib"] = round(learnt["asked_gib"] - learnt["kv_cache_memory_gib"], 2)
    return learnt


def _judge_host_share(learnt: Learnt, log_text: str) -> tuple[Verdict, str] | None:
    """The smallest share that leaves something for the cache, as advice."""
    total_gib, used_gib = learnt.get("total_gib", 0.0), learnt.get("used_gib", 0.0)
    if total_gib <= 0 or used_gib >= total_gib:
        return CAPACITY, "use a smaller model: its weights and working memory fill the machine"
    share = math.ceil(used_gib / total_gib * 100) / 100
    return CAPACITY, f"{_LARGER_HOST_SHARE}; they took {used_gib} GiB, a share of {share}"


def _judge_host_memory(learnt: Learnt, log_text: str) -> tuple[Verdict, str] | None:
    """What an idle machine would have had is no fault of the deployment, see `IDLE_TAKEN_GIB`."""
    total_gib, free_gib = learnt.get("total_gib", 0.0), learnt.get("free_gib", 0.0)
    shared = "gpu_memory_utilization" in learnt or "kv_cache_memory_gib" in learnt
    lower = "gpu_memory_utilization" if shared else "kv_cache_memory_bytes"
    if float(learnt.get("asked_gib") or total_gib) > _idle_gib(total_gib):
        share = learnt.get("max_gpu_memory_utilization")
        fits = f"; a share of {math.floor(share * 100) / 100} is free" if share else ""
        return CAPACITY, f"lower {lower}{_IS_A_SHARE if shared else ''}{fits}"
    return INFRA, (
        f"other programs hold memory of this machine ({free_gib} of {total_gib} GiB are free): end "
        f"them or wait, or lower {lower}"
    )


def _idle_gib(total_gib: float) -> float:
    return total_gib - max(IDLE_TAKEN_SHARE * total_gib, IDLE_TAKEN_GIB)


HOST_MEMORY: tuple[Rule, ...] = (
    Rule(
        "host_share_not_free",
        re.compile(
            _NODE + r"on startup is less than desired CPU memory utilization "
            r"\((?P<gpu_memory_utilization>[\d.]+), (?P<asked_gib>[\d.]+) GiB\)"
        ),
        CAPACITY,
        f"lower gpu_memory_utilization{_IS_A_SHARE}",
        "0.32, CPU",
        _learn_free_host,
        _judge_host_memory,
    ),
    Rule(
        "no_kv_memory",
        re.compile(
            _NODE + r"on kv cache allocation is less than requested memory for kv "
            r"\((?P<kv_cache_memory_gib>(?:-[\d.]+|0\.0+))/(?P<asked_gib>[\d.]+) GiB\)"
        ),
        CAPACITY,
        _LARGER_HOST_SHARE,
        "0.32, CPU; the text speaks of too little free memory, whichever of the two it is",
        _learn_host_share,
        _judge_host_share,
    ),
    Rule(
        "host_memory_taken",
        re.compile(
            _NODE + r"on kv cache allocation is less than requested memory for kv "
            r"\((?P<kv_cache_memory_gib>[\d.]+)/(?P<asked_gib>[\d.]+) GiB\)"
        ),
        CAPACITY,
        f"lower gpu_memory_utilization{_IS_A_SHARE}",
        "0.32, CPU",
        _learn_host_share,
        _judge_host_memory,
    ),
    Rule(
        "kv_cache_larger_than_free",
        re.compile(
            _NODE + r"on kv cache allocation is less than requested memory for kv "
            r"\((?P<asked_gib>[\d.]+) GiB\)"
        ),
        CAPACITY,
        "lower kv_cache_memory_bytes (or env.VLLM_CPU_KVCACHE_SPACE)",
        "0.32, CPU",
        groups(free_gib=float, total_gib=float, asked_gib=float),
        _judge_host_memory,
    ),
)
