"""How a deployment stores weights and cache, and which deployments differ in nothing else. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from sweeper.trial.outcome import TrialOutcome

QUANTIZATION, NONE = "quantization", "none"
SETTING = "quantize."
"""Begins the names of a recipe's searched fields."""

_PRECISIONS = ("kv_cache_dtype", "dtype")
# A model is split over as many devices, and what is left of them is as large.
_SPLIT = ("tensor_parallel_size", "pipeline_parallel_size", "data_parallel_size")
_LIMITS = (
    "gpu_memory_utilization",
    "flag.kv_cache_memory_bytes",
    "flag.num_gpu_blocks_override",
    "env.VLLM_CPU_KVCACHE_SPACE",
)


def is_storage(name: str) -> bool:
    """Whether a parameter says how weights or cache are stored."""
    return name == QUANTIZATION or name in _PRECISIONS or name.startswith(SETTING)


def quantization_of(outcome: TrialOutcome) -> str:
    """The value of `quantization`, ``none`` for the model as it is."""
    return str(outcome.deployment.get(QUANTIZATION) or NONE)


def label_of(outcome: TrialOutcome) -> str:
    """``w4a16 group_size=32 kv_cache_dtype=fp8``: all that says how it stores."""
    names = sorted(n for n in outcome.deployment if is_storage(n) and n != QUANTIZATION)
    words = [f"{name.removeprefix(SETTING)}={outcome.deployment[name]}" for name in names]
    return " ".join([quantization_of(outcome), *words])


def as_split(a: TrialOutcome, b: TrialOutcome) -> bool:
    """True if two deployments split the model over as many devices."""
    return _same(a, b, _SPLIT)


def under_one_limit(a: TrialOutcome, b: TrialOutcome) -> bool:
    """True if two deployments may take as much memory, on as many devices."""
    return _same(a, b, (*_SPLIT, *_LIMITS))


def otherwise_alike(a: TrialOutcome, b: TrialOutcome) -> bool:
    """True if two deployments differ in nothing but how they store."""
    return _same(a, b, (n for n in {*a.deployment, *b.deployment} if not is_storage(n)))


def _same(a: TrialOutcome, b: TrialOutcome, names: Iterable[str]) -> bool:
    return all(a.deployment.get(name) == b.deployment.get(name) for name in names)
