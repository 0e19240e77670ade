"""The one memory rule that is proven: the weights alone are larger than the engine may use."""

from __future__ import annotations

from collections.abc import Callable

from sweeper.estimate.facts import Context
from sweeper.estimate.memory import memory_estimate
from sweeper.estimate.violation import Finding

INVOLVED = (
    "quantization",
    "gpu_memory_utilization",
    "tensor_parallel_size",
    "pipeline_parallel_size",
)
"""Each of these can cure a misfit, so none is to blame alone."""


def weights_fit(c: Context) -> Finding | None:
    """Weights per device against its usable memory. KV cache and activations come on top."""
    if c.model is None or c.hardware is None or c.tp < 1 or c.pp < 1:
        return None
    estimate = memory_estimate(c.parameters, c.model, c.hardware, c.weights)
    if estimate.verdict != "does_not_fit":
        return None
    usable = estimate.weights_gib + estimate.margin_gib
    cause = (
        f"the weights need {estimate.weights_gib:.1f} GiB a device, "
        f"the engine may use {usable:.1f} GiB"
    )
    remedy = "use more devices (tensor_parallel_size), a quantized checkpoint or a smaller model"
    return cause, remedy, INVOLVED


MEMORY_RULES: dict[str, Callable[[Context], Finding | None]] = {"weights_fit": weights_fit}
