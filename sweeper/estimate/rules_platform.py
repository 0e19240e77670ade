"""Rules from the device and the engine's build."""

from __future__ import annotations

from collections.abc import Callable

from sweeper.estimate.facts import GROUP_QUANTIZED, Context
from sweeper.estimate.violation import Finding
from sweeper.models.facts import ModelFacts

ONLINE = frozenset(
    {
        "fp8_per_tensor",
        "fp8_per_block",
        "fp8_per_channel",
        "int8_per_channel_weight_only",
        "nvfp4_per_token",
        "mxfp8",
    }
)
"""vLLM's names for quantizing while loading."""

NOT_BUILT_FOR_CPU = frozenset(
    {"fp8", "fp8_per_tensor", "fp8_per_block", "fp8_per_channel", "nvfp4_per_token", "mxfp8"}
)

EXPERTS_ONLY = "int8_per_channel_weight_only"

MIN_CAPABILITY: dict[str, tuple[int, int]] = {
    **dict.fromkeys(ONLINE | {"fp8", "awq", "auto_awq"}, (7, 5)),
    **dict.fromkeys(("awq_marlin", "gptq_marlin"), (7, 5)),
    **dict.fromkeys(("gptq", "auto_gptq"), (6, 0)),
    # Four-bit floats online run on Blackwell only.
    "nvfp4_per_token": (10, 0),
    "compressed-tensors": (7, 0),
}
"""Least compute capability, from the quantization classes of vLLM 0.32. (fp8 below 8.9 runs
weight-only through Marlin kernels, so it is slower but not refused.)"""

COMPRESSED = "compressed-tensors"
LEAST_OF_SCHEMES = (7, 5)
"""Of the schemes of compressed-tensors that are known here, whatever the class asks."""

HALF_ONLY = ONLINE | GROUP_QUANTIZED | {"fp8"}
"""Methods whose kernels take float16 and bfloat16 activations only."""

_FLOAT32 = ("float32", "float")


def devices_suffice(c: Context) -> Finding | None:
    """tp · pp · dp devices are needed at once."""
    needed = c.tp * c.pp * c.dp
    if c.hardware is None or c.device != "cuda" or needed <= c.hardware.device_count:
        return None
    names = ("tensor_parallel_size", "pipeline_parallel_size", "data_parallel_size")
    involved = tuple(name for name in names if c.parameters.get(name, 1) != 1)
    product = " * ".join(str(c.parameters[name]) for name in involved)
    asked = product if len(involved) == 1 else f"{product} = {needed}"
    cause = (
        f"{' * '.join(involved)} = {asked} devices, of which there are {c.hardware.device_count}"
    )
    return cause, "lower the parallel sizes, or use a machine with more devices", involved


def built_for_device(c: Context) -> Finding | None:
    """The CPU build has no kernels for 8-bit and 4-bit floats."""
    method = c.text("quantization")
    if not c.is_vllm() or c.device != "cpu" or method not in NOT_BUILT_FOR_CPU:
        return None
    cause = f"quantization={method} is not built for CPUs"
    return cause, "use quantize=w8a8, or none", ("quantization",)


def experts_only(c: Context) -> Finding | None:
    """vLLM's online int8 quantizes the experts of mixture models and leaves all else as it is.

    From its table of methods (vllm/config/quantization.py, 0.32). A dense model would be measured
    unquantized under the method's name.
    """
    method = c.text("quantization")
    if not c.is_vllm() or method != EXPERTS_ONLY or c.model is None or _has_experts(c.model):
        return None
    cause = f"quantization={method} quantizes experts only, and this model has none"
    return cause, "use quantize=w8a8 for 8-bit integers, or none", ("quantization",)


def _has_experts(model: ModelFacts) -> bool:
    """Families count their experts under many names; then the architecture's own speaks."""
    return model.num_experts > 0 or "moe" in model.architecture.lower()


def kv_cache_on_cpu(c: Context) -> Finding | None:
    """An fp8 KV cache on an x86 processor needs AVX-512 or AMX (vLLM's CPU attention)."""
    features = set(c.hardware.cpu_features) if c.hardware is not None else set()
    asked = c.text("kv_cache_dtype")
    if not c.is_vllm() or c.device != "cpu" or not asked.startswith("fp8"):
        return None
    if not features or features & {"avx512f", "amx_tile"}:
        return None
    cause = f"kv_cache_dtype={asked} needs a processor with AVX-512 or AMX, this one has neither"
    return cause, "use kv_cache_dtype=auto on this processor", ("kv_cache_dtype",)


def capability_suffices(c: Context) -> Finding | None:
    """A method needs a GPU of some generation."""
    method, capability = c.text("quantization"), c.capability
    least = MIN_CAPABILITY.get(method)
    if method == COMPRESSED and c.weights is not None:
        least = LEAST_OF_SCHEMES
    if not c.is_vllm() or capability is None or least is None or capability >= least:
        return None
    cause = (
        f"{c.quantization_asked} needs compute capability {_dotted(least)}, the device has "
        f"{_dotted(capability)}"
    )
    return cause, "use quantization=none or a newer GPU", ("quantization",)


def bfloat16_on_device(c: Context) -> Finding | None:
    """bfloat16 begins with capability 8.0. (Left to itself, the engine falls back to float16.)"""
    capability = c.capability
    if c.text("dtype") not in ("bfloat16", "bf16") or capability is None or capability >= (8, 0):
        return None
    cause = f"dtype=bfloat16 needs compute capability 8.0, the device has {_dotted(capability)}"
    return cause, "use dtype=float16", ("dtype",)


def quantization_dtype(c: Context) -> Finding | None:
    """Quantized kernels compute in 16 bits."""
    method = c.text("quantization")
    if not c.is_vllm() or c.text("dtype") not in _FLOAT32 or method not in HALF_ONLY:
        return None
    cause = f"{c.quantization_asked} computes in float16 or bfloat16, not in float32"
    return cause, "use the default dtype with it", ("quantization", "dtype")


def renamed_method(c: Context) -> Finding | None:
    """`fp8` no longer quantizes while loading."""
    if c.text("quantization") != "fp8" or c.engine is None or not c.is_vllm(since=(0, 30)):
        return None
    prequantized = c.model is not None and c.model.quantization_method is not None
    if prequantized:
        return None
    cause = f"quantization=fp8 quantizes no more while loading in vLLM {c.engine.version}"
    return cause, "use quantization=fp8_per_tensor", ("quantization",)


def _dotted(capability: tuple[int, int]) -> str:
    return f"{capability[0]}.{capability[1]}"


PLATFORM_RULES: dict[str, Callable[[Context], Finding | None]] = {
    "devices_suffice": devices_suffice,
    "built_for_device": built_for_device,
    "experts_only": experts_only,
    "kv_cache_on_cpu": kv_cache_on_cpu,
    "capability_suffices": capability_suffices,
    "bfloat16_on_device": bfloat16_on_device,
    "quantization_dtype": quantization_dtype,
    "renamed_method": renamed_method,
}
