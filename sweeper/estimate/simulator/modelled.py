"""What of a deployment the simulator can model, and why not the rest. Pure.

A dimension that changes nothing in a prediction must not look like one that was tried: it is fixed
to the engine's default before a search, and said once.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sweeper.estimate.weights import FP8, INT8, QuantizedWeights

PARALLEL = ("tensor_parallel_size", "pipeline_parallel_size", "data_parallel_size")
MODELLED = frozenset(
    {
        *PARALLEL,
        "quantization",
        "kv_cache_dtype",
        "max_num_seqs",
        "max_num_batched_tokens",
        "gpu_memory_utilization",
        "speculative",
        "num_speculative_tokens",
        "enable_prefix_caching",
        "enable_expert_parallel",
    }
)
"""Parameters whose effect on speed and memory is simulated."""

UNMODELLED = {
    "max_model_len": "as long as requests fit, it changes nothing",
    "block_size": "its kernels are timed for one size of block",
    "enforce_eager": "operators are timed inside CUDA graphs",
    "enable_chunked_prefill": "its scheduler always cuts prompts into chunks",
    "dtype": "16 bits are one precision to it",
    "prompt_lookup_max": "what drafts hit depends on the text",
    "prompt_lookup_min": "what drafts hit depends on the text",
    "speculative_model": "draft models have no timing of their own",
}
"""Parameters that it knows nothing of, with the reason in a few words; so is every `flag.` and
`env.`"""

NO_REPEATS = "no prompt of this workload repeats another"
NO_ACCEPTANCE = (
    "how many drafts are accepted depends on your text; give it to search speculation: "
    "engine.options.ngram_acceptance=0.6"
)
_OTHER = "the simulator has no model of it"

_KV = {
    "auto": None,
    "fp8": "fp8",
    "fp8_e4m3": "fp8",
    "fp8_e5m2": "fp8",
    "bfloat16": "bfloat16",
}
# Online methods of the engine, and the usual names of published checkpoints.
_GEMM = {
    "none": None,
    "fp8": "fp8",
    "fp8_per_tensor": "fp8",
    "fp8_per_block": "fp8_block",
    "int8_per_channel_weight_only": "int8_wo",
    "awq": "int4_wo",
    "gptq": "int4_wo",
    "nvfp4": "nvfp4",
}


class UnmodelledError(Exception):
    """A deployment asks for something that no prediction can take into account.

    Args:
        parameter: which one.
        reason: why, in a few words.
    """

    def __init__(self, parameter: str, reason: str) -> None:
        super().__init__(f"{parameter}: {reason}")
        self.parameter = parameter
        self.reason = reason


def why_not(parameter: str, *, repeats_prompts: bool, acceptance_known: bool) -> str | None:
    """Why a parameter cannot be searched on the simulator, None if it can.

    Args:
        parameter: canonical name.
        repeats_prompts: whether the workload has prompts with beginnings in common.
        acceptance_known: whether the user says how many n-gram drafts are accepted.
    """
    if parameter not in MODELLED:
        return UNMODELLED.get(parameter, _OTHER)
    if parameter == "enable_prefix_caching" and not repeats_prompts:
        return NO_REPEATS
    if parameter in {"speculative", "num_speculative_tokens"} and not acceptance_known:
        return NO_ACCEPTANCE
    return None


def gemm_mode(quantization: str | None, weights: QuantizedWeights | None) -> str | None:
    """The simulator's word for the precision of matrix products, None for the model's own.

    Args:
        quantization: the study's word for it.
        weights: of the checkpoint that is served, where something is known of one.

    Raises:
        UnmodelledError: it has no such precision.
    """
    if weights is not None:
        by_weights = {
            (4, None): "int4_wo",
            (8, None): "int8_wo",
            (8, INT8): "sq",
            (8, FP8): "fp8",
        }
        mode = by_weights.get((weights.bits, weights.activations))
        if mode is not None:
            return mode
    elif quantization is None or quantization in _GEMM:
        return _GEMM[quantization or "none"]
    raise UnmodelledError("quantization", f"{quantization} has no timed matrix products")


def is_word(quantization: Any) -> bool:
    """Whether a value of `quantization` is a word of vLLM's own, not a recipe's name."""
    return str(quantization) in _GEMM


def kv_mode(kv_cache_dtype: Any) -> str | None:
    """The simulator's word for the precision of the KV cache, None for its own choice.

    Raises:
        UnmodelledError: it has no such precision.
    """
    word = "auto" if kv_cache_dtype is None else str(kv_cache_dtype)
    if word not in _KV:
        raise UnmodelledError("kv_cache_dtype", f"{word} has no timed attention")
    return _KV[word]


def check_speculative(parameters: Mapping[str, Any]) -> None:
    """Refuse drafting that is not simulated. Raises UnmodelledError."""
    method = parameters.get("speculative", "none")
    if method not in {"none", "ngram"}:
        raise UnmodelledError("speculative", f"{method} needs a draft model, which has no timing")
