"""Bytes of weights and of cached keys and values. Pure.

weights     parameters * bytes a parameter / (tp * pp)
KV cache    2 (keys, values) * layers * kv heads * head width * bytes a value, for each token
            (as in paged attention, Kwon et al. 2023)
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from sweeper.estimate.facts import GROUP_QUANTIZED, Context
from sweeper.estimate.weights import QuantizedWeights
from sweeper.models.facts import ModelFacts

GIB = 1024**3

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

OPEN_WORDS = frozenset({"", "none", "auto", "default"})
"""Values that leave a precision to the checkpoint."""


@dataclass(frozen=True)
class Span:
    """A figure with its error: never below `least`, most likely `expected`, never above `most`."""

    least: float
    expected: float
    most: float


def exactly(value: float) -> Span:
    """A figure without error."""
    return Span(value, value, value)


def plain_bytes(context: Context, model: ModelFacts) -> float:
    """Bytes of an unquantized value: engines make 16 bits of a float32 checkpoint unless asked."""
    word = context.text("dtype")
    if word in OPEN_WORDS:
        return min(2.0, BYTES.get(model.dtype, 2.0))
    return BYTES.get(word, 2.0)


def cache_value_bytes(context: Context, model: ModelFacts) -> Span:
    """Bytes of a cached value.

    A checkpoint that somebody else quantized may bring an 8-bit cache of its own.
    """
    word = context.text("kv_cache_dtype")
    plain = plain_bytes(context, model)
    if word in OPEN_WORDS:
        theirs = context.weights is not None and not context.weights.made
        may_bring_own = theirs or bool(model.quantization_method)
        return Span(min(1.0, plain) if may_bring_own else plain, plain, plain)
    if word in BYTES:
        return exactly(BYTES[word])
    if word.startswith(("fp8", "int8")):
        return Span(1.0, 1.05, 1.3)  # with a scale a head or a token
    if "4" in word or "3" in word:
        return Span(0.3, 0.56, 1.1)
    return Span(0.25, plain, 4.0)


def block_weight_bytes(context: Context, model: ModelFacts) -> Span:
    """Bytes of a weight inside the blocks, its part of scales with it."""
    plain = plain_bytes(context, model)
    if context.weights is not None:
        bits = context.weights.bits / 8
        known = context.weights.bytes_per_weight
        # A published checkpoint may leave layers as they are.
        return Span(bits, known, known * 1.05 if context.weights.made else max(plain, known))
    word = context.text("quantization")
    method = (model.quantization_method or "") if word in OPEN_WORDS else word
    if not method:
        return exactly(plain)
    if method.startswith(("fp8", "int8")):
        return Span(1.0, 1.0, plain if model.num_experts else 1.08)
    expected = quantized_bytes(method)
    if method in GROUP_QUANTIZED or method == "bitsandbytes" or "fp4" in method:
        least = 0.25 if "gptq" in method else 0.5
        return Span(least, expected * 1.06, plain if model.num_experts else 1.1)
    return Span(0.2, expected, plain)


def embeddings_stay(context: Context, model: ModelFacts) -> bool:
    """Whether input table and output head are certainly unquantized."""
    if context.weights is not None:
        return context.weights.made
    word = context.text("quantization")
    if word in OPEN_WORDS:
        return not model.quantization_method
    return word.startswith(("fp8_per", "int8_per"))  # while loading; a checkpoint may have its own


def weight_bytes(
    model: ModelFacts, quantization: str, dtype: str, weights: QuantizedWeights | None = None
) -> float:
    """Bytes of all weights. Embeddings stay in 16 bits under every quantization here.

    The count is a lower bound where a format's size is not known. Where `weights` says what a
    checkpoint is like, its scales are counted too.
    """
    total = float(model.parameters or parameter_count(model))
    stored = BYTES.get(dtype or model.dtype, 2.0)
    method = quantization or model.quantization_method or ""
    if not method and weights is None:
        return total * stored
    # Never below the embeddings' own share if the given total is smaller than the shape says.
    embedding = embedding_count(model)
    blocks = max(0.0, total - embedding)
    each = quantized_bytes(method) if weights is None else weights.bytes_per_weight
    return blocks * each + min(total, embedding) * min(stored, 2.0)


def quantized_bytes(method: str) -> float:
    """Bytes a weight inside the blocks, scales not counted."""
    if method in GROUP_QUANTIZED or "4" in method:
        return 0.5
    return 1.0 if "8" in method else 0.5


def embedding_count(model: ModelFacts) -> int:
    """Weights of input table and output head."""
    return model.vocab_size * model.hidden_size * (1 if model.tie_word_embeddings else 2)


def parameter_count(model: ModelFacts) -> int:
    """Weights of a dense decoder from its shape: embeddings, attention, gated feed-forward.

    Experts multiply the feed-forward part (`intermediate_size` taken as one expert's).
    """
    attention = model.hidden_size * model.head_dim * (2 * model.num_heads + 2 * model.num_kv_heads)
    feed_forward = 3 * model.hidden_size * model.intermediate_size * max(1, model.num_experts)
    return model.num_layers * (attention + feed_forward) + embedding_count(model)


def values_per_token(model: ModelFacts, tp: int) -> int:
    """Values that a layer caches of a token on one device.

    Heads are copied where there are more devices than heads. A compressed cache holds one vector,
    the same on every device of a tensor-parallel group.
    """
    heads = max(1, math.ceil(model.num_kv_heads / max(1, tp)))
    return model.latent_width or 2 * heads * model.head_dim


def kv_bytes_per_token(model: ModelFacts, context: Context) -> float:
    """KV cache of one token on one device, in bytes, as if every layer kept every token."""
    layers = math.ceil(model.num_layers / max(1, context.pp))
    precision = context.text("kv_cache_dtype") or context.text("dtype") or model.dtype
    return layers * values_per_token(model, context.tp) * BYTES.get(precision, 2.0)
