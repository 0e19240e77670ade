"""Memory rules: what even the smallest sizes of all parts prove to be too large."""

from __future__ import annotations

from collections.abc import Callable

from sweeper.estimate.facts import Context
from sweeper.estimate.memory import DOES_NOT, NO_CALIBRATION, MemoryVerdict, verdict_of
from sweeper.estimate.memory_budget import Budget, budget_of
from sweeper.estimate.memory_measured import with_weights
from sweeper.estimate.memory_part import Part
from sweeper.estimate.memory_weights import weights_part
from sweeper.estimate.violation import Finding

WEIGHTS_FIT, MEMORY_FITS = "weights_fit", "memory_fits"

INVOLVED = (
    "quantization",
    "gpu_memory_utilization",
    "tensor_parallel_size",
    "pipeline_parallel_size",
)
"""Each of these can cure a misfit, so none is to blame alone."""

INVOLVED_WITH_CACHE = (
    *INVOLVED,
    "max_model_len",
    "kv_cache_dtype",
    "max_num_seqs",
    "max_num_batched_tokens",
)


def weights_fit(c: Context) -> Finding | None:
    """Weights of a device against its usable memory. KV cache and activations come on top."""
    if c.model is None or c.hardware is None or c.hardware.memory_gib <= 0 or c.tp < 1 or c.pp < 1:
        return None
    told = c.calibration or NO_CALIBRATION
    weights = with_weights(c, told, [weights_part(c, c.model)])[0]
    budget = budget_of(c, c.hardware)
    if weights.least_gib - told.doubt_gib <= budget.gib.most:
        return None
    loaded = "took" if weights.measured else "need at least"
    cause = (
        f"the weights {loaded} {_size(weights)} GiB a device, "
        f"the engine may use {budget.gib.most:.1f} GiB"
    )
    remedy = "use more devices (tensor_parallel_size), a quantized checkpoint or a smaller model"
    return cause, remedy, INVOLVED


def memory_fits(c: Context) -> Finding | None:
    """All parts at their least, with the KV cache of one sequence, against the usable memory."""
    if c.model is None or c.hardware is None or c.tp < 1 or c.pp < 1:
        return None
    found = verdict_of(c, c.model, c.hardware, c.calibration)
    if found.verdict != DOES_NOT or found.budget is None or weights_fit(c) is not None:
        return None
    return _told(found, found.budget)


def _told(found: MemoryVerdict, budget: Budget) -> Finding:
    parts = ", ".join(
        f"{part.name} {_size(part)}" + " as measured" * part.measured
        for part in found.parts
        if part.least_gib >= 0.005
    )
    if budget.cache_gib is not None:
        cause = (
            f"beside a KV cache of {budget.cache_gib:.2f} GiB: at least {parts} GiB, "
            f"on a device of {budget.gib.most:.1f} GiB"
        )
        return cause, "change kv_cache_memory_bytes, or lower max_model_len", INVOLVED_WITH_CACHE
    cause = (
        f"at least {found.least_needed_gib:.1f} GiB a device are needed ({parts}), "
        f"the engine may use {budget.gib.most:.1f} GiB"
    )
    remedy = (
        "raise gpu_memory_utilization, lower max_model_len, quantize weights or KV cache, or use "
        "more devices"
    )
    return cause, remedy, INVOLVED_WITH_CACHE


def _size(part: Part) -> str:
    return f"{part.least_gib:.1f}" if part.least_gib >= 1 else f"{part.least_gib:.2f}"


MEMORY_RULES: dict[str, Callable[[Context], Finding | None]] = {
    WEIGHTS_FIT: weights_fit,
    MEMORY_FITS: memory_fits,
}
