"""Rules of quantized checkpoints: what engines read of each format, and where they have kernels.

From the sources of vLLM 0.32 and its operators:

    GPTQ                4 and 8 bits without zero points; act order only with one scale a channel
    AWQ                 4 bits
    4-bit weights       on x86 processors one kernel, built with AVX-512 only, for widths of 32; on
                        GPUs padded to what the kernels want
    8-bit weights,      on GPUs; no processor has a kernel for them
      16-bit products
    W8A8 (int8)         on GPUs from 7.5, and on processors in every precision
    W4A8 (int4, int8)   on processors only: one operator of torch, on all of them
    FP8, dynamic        on GPUs from 7.5, without 8-bit products below 8.9; a processor falls back
                        to plain torch, slowly, so nothing is refused

The transformers engine unpacks compressed-tensors as it reads: right for weights, whatever their
bits and the processor, and blind to quantized activations.
"""

from __future__ import annotations

from collections.abc import Callable

from sweeper.estimate.facts import GPTQ_FORMATS, GROUP_QUANTIZED, Context
from sweeper.estimate.shapes import quantized_layers
from sweeper.estimate.violation import Finding
from sweeper.estimate.weights import INT8

TP = "tensor_parallel_size"
COMPRESSED = "compressed-tensors"
TRANSFORMERS = "transformers"
UNPACKED = ("quantization",)
KERNEL_WIDTH = 32
"""Features that the kernel for processors takes at once, inwards and outwards."""

W8A8 = "use quantize=w8a8, or quantize=w4a8 for 4 bits: both run on every processor"


def gptq_readable(c: Context) -> Finding | None:
    """vLLM 0.32 gave up the kernels for odd GPTQ checkpoints."""
    weights = c.weights
    if (
        weights is None
        or not c.is_vllm(since=(0, 32))
        or c.text("quantization") not in GPTQ_FORMATS
    ):
        return None
    if weights.act_order and weights.group_size is not None:
        cause = (
            f"{c.quantization_asked} has act order and groups of {weights.group_size}, and vLLM "
            "reads GPTQ checkpoints with both no longer"
        )
        remedy = "leave act_order out, or use quantize=w4a16, whose act order it reads"
        return cause, remedy, weights.involved("act_order", "group_size")
    if weights.bits in (4, 8) and weights.symmetric:
        return None
    cause = (
        f"{c.quantization_asked} has {weights.bits} bits"
        f"{'' if weights.symmetric else ' and zero points'}, and vLLM reads GPTQ checkpoints of 4 "
        "and 8 bits without zero points"
    )
    return cause, "use a checkpoint of another kind", weights.involved("bits", "symmetric")


def act_order_sharded(c: Context) -> Finding | None:
    """Ranks that hold parts of a layer read beyond their scales (vllm#5596, vllm#7374)."""
    weights = c.weights
    if weights is None or not weights.act_order or weights.group_size is None or c.tp < 2:
        return None
    if c.text("quantization") not in GPTQ_FORMATS or c.is_vllm(since=(0, 32)):
        return None  # refused by itself there
    cause = (
        f"{c.quantization_asked} has act order, which reads illegal memory or gives garbage with "
        f"{TP}={c.tp}"
    )
    remedy = f"leave act_order out, or use {TP}=1"
    return cause, remedy, (*weights.involved("act_order"), TP)


def weight_only_on_cpu(c: Context) -> Finding | None:
    """Processors have one kernel for few-bit weights and 16-bit activations."""
    weights = c.weights
    if weights is None or not _is_weight_only_on_cpu(c):
        return None
    features = c.hardware.cpu_features if c.hardware is not None else ()
    if weights.bits != 4:
        cause = (
            f"{c.quantization_asked} has {weights.bits}-bit weights, and vLLM's kernel for "
            "processors takes 4-bit ones only"
        )
        return cause, W8A8, weights.involved("bits")
    if features and "avx512f" not in features and "avx2" in features:
        cause = (
            f"{c.quantization_asked} has 4-bit weights, and vLLM builds its kernel for them with "
            "AVX-512 only, which this processor lacks"
        )
        return cause, W8A8, ("quantization",)
    return None


def widths_on_cpu(c: Context) -> Finding | None:
    """The same kernel takes features by the 32."""
    weights = c.weights
    if weights is None or not _is_weight_only_on_cpu(c):
        return None
    for layer in quantized_layers(c.model):
        for what, width in (("input", layer.inputs_on(c.tp)), ("output", layer.outputs_on(c.tp))):
            if width is not None and width % KERNEL_WIDTH:
                cause = (
                    f"{c.quantization_asked}: the {layer.name} layer has {width} {what} features "
                    f"a rank, no multiple of the {KERNEL_WIDTH} that vLLM's kernel for processors "
                    "takes"
                )
                involved = ("quantization", TP) if c.tp > 1 else ("quantization",)
                return cause, W8A8, involved
    return None


def four_by_eight_on_gpu(c: Context) -> Finding | None:
    """4-bit weights with 8-bit integer activations have a kernel for processors only."""
    weights = c.weights
    if weights is None or c.text("quantization") != COMPRESSED or not c.is_vllm():
        return None
    if (weights.bits, weights.activations) != (4, INT8) or c.device != "cuda":
        return None
    cause = (
        f"{c.quantization_asked} has 4-bit weights and 8-bit integer activations, for which vLLM "
        "has no kernel on GPUs"
    )
    return cause, "use quantize=w4a16 or quantize=w8a8", ("quantization",)


def unpacked_by_transformers(c: Context) -> Finding | None:
    """The library reads one format here, as weights of full precision."""
    weights = c.weights
    if weights is None or c.engine is None or c.engine.name != TRANSFORMERS:
        return None
    if c.text("quantization") != COMPRESSED:
        cause = (
            f"{c.quantization_asked}: engine=transformers reads quantized checkpoints of the "
            f"format {COMPRESSED} only"
        )
        return cause, "use a recipe of llm-compressor, for example quantize=w4a16", UNPACKED
    if weights.activations is not None:
        cause = (
            f"{c.quantization_asked} has {weights.activations} activations, and "
            "engine=transformers unpacks the weights and leaves activations as they are: its "
            "quality would not be what was measured"
        )
        return cause, "judge it with engine=vllm", UNPACKED
    return None


def _is_weight_only_on_cpu(c: Context) -> bool:
    weights = c.weights
    is_format = c.text("quantization") in GROUP_QUANTIZED | {COMPRESSED}
    return (
        weights is not None
        and is_format
        and c.is_vllm()
        and c.device == "cpu"
        and weights.activations is None
    )


CHECKPOINT_RULES: dict[str, Callable[[Context], Finding | None]] = {
    "gptq_readable": gptq_readable,
    "act_order_sharded": act_order_sharded,
    "weight_only_on_cpu": weight_only_on_cpu,
    "widths_on_cpu": widths_on_cpu,
    "four_by_eight_on_gpu": four_by_eight_on_gpu,
    "unpacked_by_transformers": unpacked_by_transformers,
}
