"""The KV cache that one sequence needs on one device. Pure.

An engine refuses to start if its cache cannot hold a single sequence of `max_model_len`, so this is
part of what a deployment needs, and the divisor of what it has.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from sweeper.estimate.facts import Context
from sweeper.estimate.flags import given_number
from sweeper.estimate.memory_part import SEQUENCE, Part
from sweeper.estimate.memory_sizes import GIB, Span, cache_value_bytes, values_per_token
from sweeper.models.facts import ModelFacts

BLOCK_TOKENS = 16
LARGEST_BLOCK_TOKENS = 256
"""Blocks are seldom larger; a sequence may begin and end inside one."""


@dataclass(frozen=True)
class Length:
    """Tokens of the longest sequence.

    Attributes:
        least: certainly at least that. A default that is left to the engine may be shorter than
            config.json says (a tokenizer can limit it), but never shorter than the requests.
        expected: the deployment's value, or the model's.
    """

    least: int
    expected: int


def sequence_length(context: Context, model: ModelFacts) -> Length:
    """Longest sequence the engine must have room for."""
    given = context.number("max_model_len")
    if given is not None and given > 0:
        return Length(given, given)
    requests = max(1, context.required_tokens)
    if given is not None or context.text("max_model_len") == "auto":
        return Length(1, requests)  # the engine takes the longest that fits
    longest = model.max_position_embeddings
    return Length(min(requests, longest) if context.required_tokens else 1, longest)


def sequence_part(context: Context, model: ModelFacts, batched_tokens: float) -> Part:
    """KV cache of one sequence.

    Args:
        context: the deployment.
        model: its model.
        batched_tokens: most tokens of a step, which a window keeps beside its own.
    """
    length = sequence_length(context, model)
    value = cache_value_bytes(context, model)
    values = values_per_token(model, context.tp)
    block = given_number(context, "block_size") or BLOCK_TOKENS
    shards = given_number(context, "decode_context_parallel_size") or 1
    rounded = math.ceil(length.expected / block) * block
    within = min(rounded, model.window + batched_tokens)
    pp = max(1, context.pp)
    full, windowed = full_layers(model), model.window_layers
    least = (full * length.least + windowed * min(length.least, model.window)) / pp / shards
    expected = (math.ceil(full / pp) * rounded + math.ceil(windowed / pp) * within) / shards
    every = math.ceil(model.num_layers / pp) * (length.expected + 2 * LARGEST_BLOCK_TOKENS)
    more = _draft_values(context, model) / values * rounded
    tokens = Span(least, expected + more, max(every, expected) + 2 * more)
    return Part(
        SEQUENCE,
        tokens.least * values * value.least / GIB,
        tokens.expected * values * value.expected / GIB,
        None if model.open_layers else tokens.most * values * value.most / GIB,
    )


def full_layers(model: ModelFacts) -> int:
    """Layers that certainly keep every token."""
    if model.full_layers is not None:
        return min(model.full_layers, model.num_layers)
    return model.num_layers if model.full_attention else 0


def is_plain(model: ModelFacts) -> bool:
    """Whether the cache of a sequence grows in proportion to its length."""
    return full_layers(model) == model.num_layers and not model.open_layers


def _draft_values(context: Context, model: ModelFacts) -> float:
    """Values a token that the layers of a draft cache on top."""
    pp = max(1, context.pp)
    if context.method == "draft_model" and context.draft is not None:
        return context.draft.num_layers / pp * values_per_token(context.draft, context.tp)
    own_layers = 1 if context.method == "eagle" else 0
    return own_layers * values_per_token(model, context.tp)
