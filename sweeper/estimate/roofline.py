"""What a deployment must at least read and compute: bytes and operations, and seconds for them.

A token multiplies and adds each weight it meets once: 2 operations a weight. Attention adds 4
operations a pair of positions, a query channel and a layer (two products), half of the pairs being
masked in a prompt. A step of decoding reads every weight once whatever the batch, and the keys and
values of each stream. Time is at least the larger of bytes / bandwidth and operations / peak
(Williams et al. 2009; for transformers Pope et al. 2022).

Every count errs to the low side, because floors are made of them: activations, norms, scales of
weights that are quantized while loading, communication and the draft model are left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from sweeper.estimate.facts import GROUP_QUANTIZED, Context
from sweeper.estimate.memory_sizes import (
    BYTES,
    kv_bytes_per_token,
    parameter_count,
    weight_bytes,
)
from sweeper.hardware.facts import HardwareFacts
from sweeper.models.facts import ModelFacts

WEIGHT_ONLY = GROUP_QUANTIZED | {"int8_per_channel_weight_only", "bitsandbytes", "gguf"}
"""Formats whose weights are widened before they are multiplied."""

_WORDS = {"", "none", "auto", "default"}
"""Values that leave a precision to the checkpoint."""
_FLOAT32 = {"float32", "float"}


@dataclass(frozen=True)
class Rates:
    """What one device does in a second.

    Attributes:
        bandwidth: bytes, None where not known.
        linear: operations in the layers' matrices, None where not known.
        head: operations in the output embedding, which stays in 16 bits.
        attention: operations between queries, keys and values.
        cache_bytes: of what is read again and again, so much may never leave the chip.
    """

    bandwidth: float | None
    linear: float | None
    head: float | None
    attention: float | None
    cache_bytes: float


@dataclass(frozen=True)
class Shape:
    """One model in one precision; parts of it that work scales with.

    Attributes:
        dense: weights every token meets, without embeddings.
        experts: weights of all routed experts, 0 for a dense model.
        expert_share: share of them that one token meets.
        num_experts: routed experts of a layer.
        head: weights of the output embedding.
        dense_bytes: bytes of `dense` and `head`; an input table is looked up, not read.
        expert_bytes: bytes of `experts`.
        kv_bytes: cache of one token on one device of the tensor-parallel group, all layers.
        attention_operations: operations of one query with one key, all layers; 0 where the facts do
            not tell how far a layer looks back.
    """

    dense: float
    experts: float
    expert_share: float
    num_experts: int
    head: float
    dense_bytes: float
    expert_bytes: float
    kv_bytes: float
    attention_operations: float

    def read_bytes(self, tokens: float, dense_ranks: int, expert_ranks: int) -> float:
        """Bytes of weights one device reads in a step with that many tokens."""
        read = self.dense_bytes / dense_ranks
        if self.experts:
            read += self.expert_bytes * self.touched_share(tokens) / expert_ranks
        return read

    def touched_share(self, tokens: float) -> float:
        """Share of the experts of a layer that at least one of the tokens is sent to.

        Expected under even routing, 1 - (1 - k/E)^tokens; uneven routing touches fewer.
        """
        return 1.0 - float((1.0 - self.expert_share) ** max(1.0, tokens))


def precision(context: Context, model: ModelFacts) -> tuple[str, str]:
    """(quantization, dtype) that weights are held in; empty quantization for none.

    A float32 checkpoint without a wish is counted in 16 bits, which is what serving engines make
    of it.
    """
    method = context.text("quantization")
    method = (model.quantization_method or "") if method in _WORDS else method
    if context.weights is not None:  # a format's name does not say what is multiplied
        method = context.weights.activations or "weight_only"
    dtype = context.text("dtype")
    if dtype in _WORDS:
        dtype = "bfloat16" if model.dtype in _FLOAT32 else model.dtype
    return method, dtype


def shape_of(context: Context, model: ModelFacts) -> Shape | None:
    """The parts of the model; None for a mixture of experts whose facts do not tell its parts."""
    if model.num_experts and not (model.experts_per_token and model.expert_parameters):
        return None
    method, dtype = precision(context, model)
    table = float(model.vocab_size * model.hidden_size)
    total = float(model.parameters or parameter_count(model))
    blocks = max(0.0, total - table * (1 if model.tie_word_embeddings else 2))
    experts = float(min(model.expert_parameters, blocks))
    stored = BYTES.get(dtype, 2.0)
    head_bytes = table * (min(stored, 2.0) if method else stored)
    every = weight_bytes(replace(model, quantization_method=None), method, dtype, context.weights)
    block_bytes = max(0.0, every - head_bytes * (1 if model.tie_word_embeddings else 2))
    expert_bytes = block_bytes * experts / blocks if blocks else 0.0
    return Shape(
        dense=blocks - experts,
        experts=experts,
        expert_share=model.experts_per_token / model.num_experts if model.num_experts else 0.0,
        num_experts=model.num_experts,
        head=table,
        dense_bytes=block_bytes - expert_bytes + head_bytes,
        expert_bytes=expert_bytes,
        kv_bytes=_kv_bytes(context, model),
        attention_operations=_attention_operations(model),
    )


def _kv_bytes(context: Context, model: ModelFacts) -> float:
    if not model.full_attention:
        return 0.0
    stages = {**context.parameters, "pipeline_parallel_size": 1}
    if context.text("kv_cache_dtype") in _WORDS:
        stages["kv_cache_dtype"] = precision(context, model)[1]
    return kv_bytes_per_token(model, replace(context, parameters=stages))


def _attention_operations(model: ModelFacts) -> float:
    if not model.full_attention or model.latent_width:
        return 0.0
    return 4.0 * model.num_layers * model.num_heads * model.head_dim


def rates_of(context: Context, model: ModelFacts, hardware: HardwareFacts) -> Rates:
    """Peaks of one device in the precision of the deployment."""
    method, dtype = precision(context, model)
    plain = _plain_peak(dtype, hardware)
    capability = hardware.compute_capability
    speedup = matrix_speedup(method, hardware.kind, capability)
    eight_bit_cache = context.text("kv_cache_dtype").startswith("fp8")
    attention = 2.0 if eight_bit_cache and hardware.kind != "cpu" and _has(capability, 8, 9) else 1
    return Rates(
        bandwidth=hardware.bandwidth_gbs * 1e9 if hardware.bandwidth_gbs else None,
        linear=plain * speedup if plain and speedup else None,
        head=plain,
        attention=plain * attention if plain else None,
        cache_bytes=(hardware.cache_mib or 0.0) * 2**20,
    )


def _plain_peak(dtype: str, hardware: HardwareFacts) -> float | None:
    """Operations a second without quantization.

    Sixteen-bit weights may be widened on the way to the multipliers, and a processor without
    16-bit arithmetic is served better so: the faster of both is the bound. Where float32 is not
    known, the 16-bit peak of a GPU is above it.
    """
    half, single = hardware.tflops_bf16, hardware.tflops_float32
    if dtype in _FLOAT32 and single:
        return single * 1e12
    if dtype in _FLOAT32 and hardware.kind == "cpu":
        return None
    fastest = max(half or 0.0, single or 0.0)
    return fastest * 1e12 or None


def matrix_speedup(method: str, kind: str, capability: tuple[int, int] | None) -> float | None:
    """How many times faster than in 16 bits a device multiplies under a quantization, at most.

    Weight-only formats gain nothing. Eight-bit products run at twice the rate (float since compute
    capability 8.9, integer since 7.5), four-bit ones on Blackwell at four times, on its second
    generation at six. A format that names several precisions is given its fastest. None where a
    processor may have integer units of unknown speed.
    """
    if not method or method in WEIGHT_ONLY or "weight_only" in method:
        return 1.0
    eight_bit_float = "fp8" in method
    if kind == "cpu":
        return 1.0 if eight_bit_float else None
    four_bit = not eight_bit_float and "int8" not in method
    if four_bit and _has(capability, 10, 0):
        return 6.0 if capability is not None and capability >= (10, 3) else 4.0
    integer = not eight_bit_float and "fp4" not in method
    least = (7, 5) if integer else (8, 9)
    return 2.0 if _has(capability, *least) else 1.0


def _has(capability: tuple[int, int] | None, major: int, minor: int) -> bool:
    """A device whose generation is not known is taken to have it: bounds stay bounds."""
    return capability is None or capability >= (major, minor)


def speculated_tokens(parameters: Mapping[str, Any]) -> int | None:
    """Tokens a step may add beyond the first: 0 without speculation, None if the number is open."""
    method = str(parameters.get("speculative", "none"))
    number: Any = parameters.get("num_speculative_tokens")
    section = parameters.get("speculative_config")
    if isinstance(section, Mapping):
        method, number = "given", section.get("num_speculative_tokens", number)
    if method in _WORDS:
        return 0
    return number if isinstance(number, int) and number > 0 else None
