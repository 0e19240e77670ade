"""Memory of the weights of one device, and of a draft's. Pure."""

from __future__ import annotations

from dataclasses import replace

from sweeper.estimate.facts import Context
from sweeper.estimate.flags import any_given
from sweeper.estimate.memory_part import DRAFT, WEIGHTS, Part
from sweeper.estimate.memory_sizes import (
    BYTES,
    GIB,
    block_weight_bytes,
    embedding_count,
    embeddings_stay,
    parameter_count,
    plain_bytes,
)
from sweeper.models.facts import ModelFacts

MOST = 1.03
"""Padding, and small tensors that the shape does not tell."""
MOST_ON_CPU = 2.2
"""Kernels of processors may keep a packed copy beside the weights."""
ELSEWHERE = ("offload", "hf_overrides")
"""Flags under which weights lie elsewhere, or the model is another one: nothing is certain then."""


def weights_part(context: Context, model: ModelFacts) -> Part:
    """Weights of the fullest device: its share of the blocks, with the positions' table."""
    total = float(model.parameters or parameter_count(model))
    blocks = max(0.0, total - embedding_count(model))
    tables = min(total, float(embedding_count(model)))
    plain = plain_bytes(context, model)
    each = block_weight_bytes(context, model)
    shards, experts_shards = _shards(context)
    experts = min(float(model.expert_parameters), blocks)
    spread = (blocks - experts) / shards + experts / experts_shards
    expected = spread * each.expected + tables / shards * plain
    rotary = model.max_position_embeddings * model.head_dim
    # The first stage has the input table and the last the head; others hold whole layers only.
    stages = max(1, context.pp)
    uneven = 1.0 if stages == 1 else 1.0 + stages / max(1, model.num_layers)
    most = (spread * each.most * uneven + tables / max(1, context.tp) * plain) * MOST
    most += _copied(context, model) * plain + rotary * 4.0
    return Part(
        WEIGHTS,
        _least_bytes(context, model, total) / GIB,
        (expected + rotary * 2.0) / GIB,
        most * (MOST_ON_CPU if context.device == "cpu" else 1.0) / GIB,
    )


def _least_bytes(context: Context, model: ModelFacts, total: float) -> float:
    """What the fullest device holds at least: the mean over the devices."""
    if any_given(context, *ELSEWHERE):
        return 0.0
    certain = float(model.least_parameters or parameter_count(model) * 0.6)
    certain = min(certain, total)
    each = block_weight_bytes(context, model).least
    plain = plain_bytes(context, model)
    # Beside quantized blocks they are never wider than 16 bits.
    beside = plain if each == plain else min(plain, 2.0)
    stays = beside if embeddings_stay(context, model) else min(each, beside)
    tables = min(certain, float(embedding_count(model)))
    shards = max(1, context.tp) * max(1, context.pp)
    # Experts of data-parallel replicas may be spread over all of them.
    replicas = max(1, context.dp) if model.num_experts else 1
    return ((certain - tables) * each / replicas + tables * stays) / shards


def _shards(context: Context) -> tuple[int, int]:
    """Devices that share the dense weights, and those that share the experts."""
    dense = max(1, context.tp) * max(1, context.pp)
    return dense, dense * max(1, context.dp)


def _copied(context: Context, model: ModelFacts) -> float:
    """Weights that tensor parallelism copies: norms, few key heads, compressed projections."""
    tp = max(1, context.tp)
    if tp == 1:
        return 0.0
    layers = model.num_layers / max(1, context.pp)
    heads = max(0.0, 1.0 - model.num_kv_heads / tp) * 2 * model.head_dim * model.hidden_size
    compressed = 4.0 * model.latent_width * model.hidden_size
    return layers * (heads + compressed + 4 * model.hidden_size)


def draft_part(context: Context, model: ModelFacts) -> Part | None:
    """Weights of a draft; None without one. None of it is certain: it may share the target's."""
    if context.method == "draft_model":
        if context.draft is None:
            return Part(DRAFT, 0.0, 0.0, None)
        count = float(context.draft.parameters or parameter_count(context.draft))
        stored = min(2.0, BYTES.get(context.draft.dtype, 2.0))
        shards = max(1, context.tp)
        return Part(DRAFT, 0.0, count * stored / shards / GIB, count * stored * MOST / GIB)
    if context.method == "eagle":
        # One layer, a projection of two or three hidden states, and at most its own tables.
        one_layer = replace(model, num_layers=1, num_experts=0)
        own = parameter_count(one_layer) - embedding_count(model) + 3 * model.hidden_size**2
        head = model.vocab_size * model.hidden_size
        return Part(DRAFT, 0.0, own * 2.0 / GIB, (own + 2 * head) * 2.0 * MOST / GIB)
    is_other = context.method not in {"none", "ngram"} or any_given(context, "speculative_config")
    return Part(DRAFT, 0.0, 0.0, None) if is_other else None
