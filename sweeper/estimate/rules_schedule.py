"""Rules among the scheduler's own flags."""

from __future__ import annotations

from collections.abc import Callable

from sweeper.estimate.facts import Context
from sweeper.estimate.violation import Finding

COUNTS = (
    "max_num_seqs",
    "max_num_batched_tokens",
    "max_model_len",
    "block_size",
    "num_speculative_tokens",
    "prompt_lookup_max",
    "tensor_parallel_size",
    "pipeline_parallel_size",
    "data_parallel_size",
)


def counts_positive(c: Context) -> Finding | None:
    """Counts begin at 1 (a tensor_parallel_size of 0 dies of a division)."""
    for name in COUNTS:
        value = c.number(name)
        if value is not None and value < 1:
            return f"{name}={value} is below 1", f"use {name} of 1 or more", (name,)
    return None


def memory_share(c: Context) -> Finding | None:
    """gpu_memory_utilization is a share of the device."""
    value = c.parameters.get("gpu_memory_utilization")
    if not isinstance(value, (int, float)) or 0 < value <= 1:
        return None
    name = "gpu_memory_utilization"
    return f"{name}={value} is not a share of the memory", "use above 0 and up to 1", (name,)


def tokens_cover_seqs(c: Context) -> Finding | None:
    """A step schedules at least one token of every sequence."""
    tokens, seqs = c.number("max_num_batched_tokens"), c.number("max_num_seqs")
    if tokens is None or seqs is None or tokens >= seqs:
        return None
    cause = f"max_num_batched_tokens={tokens} is below max_num_seqs={seqs}"
    return (
        cause,
        f"use max_num_batched_tokens of {seqs} or more",
        (
            "max_num_batched_tokens",
            "max_num_seqs",
        ),
    )


def tokens_cover_length(c: Context) -> Finding | None:
    """Without chunked prefill a whole prompt is one step."""
    tokens = c.number("max_num_batched_tokens")
    if c.parameters.get("enable_chunked_prefill") is not False or tokens is None:
        return None
    length = c.number("max_model_len")
    if "max_model_len" not in c.parameters and c.model is not None:
        length = c.model.max_position_embeddings
    if length is None or tokens >= length:
        return None
    cause = (
        f"max_num_batched_tokens={tokens} is below the longest sequence of {length} tokens while "
        "chunked prefill is off"
    )
    remedy = f"leave chunked prefill on, or use max_num_batched_tokens of {length} or more"
    involved = ("max_num_batched_tokens", "enable_chunked_prefill", "max_model_len")
    return cause, remedy, involved


def tokens_cover_speculation(c: Context) -> Finding | None:
    """A step must have room for the drafted tokens and one more."""
    tokens, drafted = c.number("max_num_batched_tokens"), c.number("num_speculative_tokens")
    if tokens is None or drafted is None or tokens > drafted:
        return None
    cause = f"max_num_batched_tokens={tokens} leaves no room for num_speculative_tokens={drafted}"
    return (
        cause,
        f"use max_num_batched_tokens above {drafted}",
        (
            "max_num_batched_tokens",
            "num_speculative_tokens",
        ),
    )


def speculation_complete(c: Context) -> Finding | None:
    """A speculative method needs its number of tokens."""
    if c.method == "none" or "num_speculative_tokens" in c.parameters:
        return None
    cause = f"speculative={c.method} without num_speculative_tokens"
    return cause, "add num_speculative_tokens", ("speculative", "num_speculative_tokens")


SCHEDULE_RULES: dict[str, Callable[[Context], Finding | None]] = {
    "counts_positive": counts_positive,
    "memory_share": memory_share,
    "tokens_cover_seqs": tokens_cover_seqs,
    "tokens_cover_length": tokens_cover_length,
    "tokens_cover_speculation": tokens_cover_speculation,
    "speculation_complete": speculation_complete,
}
