"""Memory arithmetic of one device: weights, then what is left for the KV cache.

    weights     parameters * bytes a parameter / (tp * pp)
    KV cache    2 (keys, values) * layers * kv heads * head width * bytes a value, for each token
                (as in paged attention, Kwon et al. 2023)

Activations, graphs and the runtime are not modelled: they are why one verdict is `uncertain`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sweeper.estimate.facts import DEFAULT_MEMORY_SHARE, GROUP_QUANTIZED, Context
from sweeper.estimate.weights import QuantizedWeights
from sweeper.hardware.facts import HardwareFacts
from sweeper.models.facts import ModelFacts

GIB = 1024**3
FITS, UNCERTAIN, DOES_NOT_FIT = "fits", "uncertain", "does_not_fit"

BYTES = {
    "float32": 4.0,
    "float": 4.0,
    "bfloat16": 2.0,
    "float16": 2.0,
    "half": 2.0,
    "fp8": 1.0,
    "fp8_e4m3": 1.0,
    "fp8_e5m2": 1.0,
}
"""Bytes a value by precision."""

OVERHEAD_GIB = 2.0
"""Less than this left after the weights is called uncertain: activations, graphs, runtime."""


@dataclass(frozen=True)
class MemoryEstimate:
    """Predicted memory of one device.

    Attributes:
        weights_gib: weights a device holds.
        kv_bytes_per_token: KV cache of one token on one device.
        available_kv_gib: what is left of the engine's share after the weights, at least 0.
        kv_tokens: tokens that fit there, before activations and graphs take their part.
        verdict: ``fits``, ``uncertain`` or ``does_not_fit`` (weights alone are too large: proven).
        margin_gib: the engine's share minus the weights; negative if they do not fit.
    """

    weights_gib: float
    kv_bytes_per_token: float
    available_kv_gib: float
    kv_tokens: int
    verdict: str
    margin_gib: float


def memory_estimate(
    parameters: Mapping[str, Any],
    model: ModelFacts,
    hardware: HardwareFacts,
    weights: QuantizedWeights | None = None,
) -> MemoryEstimate:
    """Predict the memory of one device under a deployment. No IO, nothing measured.

    Args:
        parameters: canonical deployment.
        model: shape of the model; `parameters` 0 (unknown) is taken from the shape.
        hardware: memory of one device.
        weights: of the checkpoint that is served, None where the deployment's words must do.
    """
    context = Context(parameters, model, hardware, None, None, 0, weights=weights)
    ranks = max(1, context.tp) * max(1, context.pp)
    method, dtype = context.text("quantization"), context.text("dtype")
    weights_gib = weight_bytes(model, method, dtype, weights) / ranks / GIB
    margin = hardware.memory_gib * _memory_share(parameters) - weights_gib
    kv_bytes = kv_bytes_per_token(model, context)
    available = max(0.0, margin)
    return MemoryEstimate(
        weights_gib=weights_gib,
        kv_bytes_per_token=kv_bytes,
        available_kv_gib=available,
        kv_tokens=int(available * GIB / kv_bytes) if kv_bytes else 0,
        verdict=_verdict(margin, kv_bytes, context),
        margin_gib=margin,
    )


def _memory_share(parameters: Mapping[str, Any]) -> float:
    share = parameters.get("gpu_memory_utilization")
    given = isinstance(share, (int, float)) and not isinstance(share, bool)
    return float(share) if given and share is not None else DEFAULT_MEMORY_SHARE


def _verdict(margin_gib: float, kv_bytes: float, context: Context) -> str:
    if margin_gib <= 0:
        return DOES_NOT_FIT
    length = context.number("max_model_len")
    if length is None and context.model is not None:
        length = context.model.max_position_embeddings
    one_sequence = (length or 0) * kv_bytes / GIB
    return FITS if margin_gib >= OVERHEAD_GIB + one_sequence else UNCERTAIN


def weight_bytes(
    model: ModelFacts, quantization: str, dtype: str, weights: QuantizedWeights | None = None
) -> float:
    """Bytes of all weights. Embeddings stay in 16 bits under every quantization here.

    The count is a lower bound where a format's size is not known: only proven misfits are refused.
    Where `weights` says what a checkpoint is like, its scales are counted too.
    """
    total = float(model.parameters or parameter_count(model))
    embedding = model.vocab_size * model.hidden_size * (1 if model.tie_word_embeddings else 2)
    stored = BYTES.get(dtype or model.dtype, 2.0)
    method = quantization or model.quantization_method or ""
    if not method and weights is None:
        return total * stored
    # Never below the embeddings' own share if the given total is smaller than the shape says.
    blocks = max(0.0, total - embedding)
    each = _quantized_bytes(method) if weights is None else weights.bytes_per_weight
    return blocks * each + min(total, embedding) * min(stored, 2.0)


def _quantized_bytes(method: str) -> float:
    """Bytes a weight inside the blocks, scales not counted."""
    if method in GROUP_QUANTIZED or "4" in method:
        return 0.5
    return 1.0 if "8" in method else 0.5


def parameter_count(model: ModelFacts) -> int:
    """Weights of a dense decoder from its shape: embeddings, attention, gated feed-forward.

    Experts multiply the feed-forward part (`intermediate_size` taken as one expert's).
    """
    attention = model.hidden_size * model.head_dim * (2 * model.num_heads + 2 * model.num_kv_heads)
    feed_forward = 3 * model.hidden_size * model.intermediate_size * max(1, model.num_experts)
    embeddings = model.vocab_size * model.hidden_size * (1 if model.tie_word_embeddings else 2)
    return model.num_layers * (attention + feed_forward) + embeddings


def kv_bytes_per_token(model: ModelFacts, context: Context) -> float:
    """KV cache of one token on one device, in bytes (kv heads are copied beyond their number).

    A compressed cache holds one vector a token and layer, the same on every device of a
    tensor-parallel group.
    """
    heads = max(1, math.ceil(model.num_kv_heads / max(1, context.tp)))
    layers = math.ceil(model.num_layers / max(1, context.pp))
    precision = context.text("kv_cache_dtype") or context.text("dtype") or model.dtype
    values = model.latent_width or 2 * heads * model.head_dim
    return layers * values * BYTES.get(precision, 2.0)
