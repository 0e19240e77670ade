"""Memory of running a model: activations, graphs, the runtime. Pure.

An engine runs one step of its largest batch before it sizes its cache, with as many tokens as
`max_num_batched_tokens` and as many sampled rows as `max_num_seqs`. The peak of that step is either
in a feed-forward layer (two hidden states, the fused first product and its activation) or in the
sampler (rows of the vocabulary, in 16 and 32 bits, sorted).
"""

from __future__ import annotations

from dataclasses import dataclass

from sweeper.estimate.facts import Context
from sweeper.estimate.flags import given
from sweeper.estimate.memory_part import ACTIVATIONS, GRAPHS, RUNTIME, Part
from sweeper.estimate.memory_sizes import GIB, Span, exactly, plain_bytes
from sweeper.hardware.facts import HardwareFacts
from sweeper.models.facts import ModelFacts

SAMPLER_BYTES = 14.0
"""A sampled row's value: logits in 16 and 32 bits, probabilities, and the place of sorting."""
MOST_SAMPLER_BYTES = 30.0
GRAPH_MIB_PER_LAYER = 0.25
"""Of one captured size; from 0.17 GiB (28 layers) to 1.1 GiB (40 layers) were reported."""
MOST_GRAPHS = 5.0
GRAPHS_UP_TO = 512
CONTEXT_GIB = Span(0.3, 0.5, 1.2)
"""What a process holds of a device before it counts: driver context, communication buffers."""


@dataclass(frozen=True)
class BatchLimits:
    """Tokens and sequences of the largest step."""

    tokens: Span
    sequences: Span


def batch_limits(context: Context) -> BatchLimits:
    """The limits in effect; defaults follow the device (vLLM 0.33) and differ between versions."""
    tokens, sequences = _defaults(context.hardware, context.device == "cpu")
    doubled = 2.0 if given(context, "performance_mode") == "throughput" else 1.0
    asked_tokens, asked = (
        context.number(name) for name in ("max_num_batched_tokens", "max_num_seqs")
    )
    longest = context.number("max_model_len") or (
        context.model.max_position_embeddings if context.model is not None else 0
    )
    unchunked = float(longest) if context.parameters.get("enable_chunked_prefill") is False else 0.0
    default_tokens = max(tokens * doubled, unchunked)
    of_tokens = (
        exactly(float(asked_tokens))
        if asked_tokens is not None
        else Span(min(512.0, tokens), default_tokens, 2.0 * default_tokens)
    )
    of_sequences = (
        exactly(float(asked))
        if asked is not None
        else Span(min(128.0, sequences), sequences * doubled, max(512.0, sequences) * doubled)
    )
    least, expected, most = (
        min(getattr(of_sequences, bound), getattr(of_tokens, bound))
        for bound in ("least", "expected", "most")
    )
    return BatchLimits(of_tokens, Span(least, expected, most))


def _defaults(hardware: HardwareFacts | None, is_cpu: bool) -> tuple[float, float]:
    if hardware is None or is_cpu:
        return 2048.0, 128.0
    # The driver's figure is a little below the name's.
    if hardware.memory_gib >= 160:
        return 16_384.0, 1024.0
    if hardware.memory_gib >= 70 and "a100" not in hardware.name.lower():
        return 8192.0, 1024.0
    return 2048.0, 256.0


def activations_part(context: Context, model: ModelFacts, limits: BatchLimits) -> Part:
    """Peak of the largest step; on a processor what is counted is the memory after a small one."""
    if context.device == "cpu":
        return Part(ACTIVATIONS, 0.0, 0.05, 0.5)
    tp = max(1, context.tp)
    stored = plain_bytes(context, model)
    token = 2.0 * model.hidden_size + _widest(model) / tp
    rows = model.vocab_size
    wide = limits.tokens.expected * token * stored
    sampled = limits.sequences.expected * rows * SAMPLER_BYTES
    # Sampling is the last stage's alone, and its logits may be spread until they are gathered.
    certain_rows = limits.sequences.least * rows * 2.0 / tp if context.pp <= 1 else 0.0
    least = max(limits.tokens.least * model.hidden_size * stored, certain_rows)
    most = 2.0 * limits.tokens.most * token * stored
    most += limits.sequences.most * rows * MOST_SAMPLER_BYTES
    return Part(
        ACTIVATIONS,
        least / GIB,
        max(wide, sampled) / GIB,
        None if model.open_layers else 0.25 + most / GIB,
    )


def _widest(model: ModelFacts) -> float:
    """Values of a token in the widest layer, shared by the tensor-parallel group."""
    heads = (2 * model.num_heads + 2 * model.num_kv_heads) * model.head_dim
    if model.num_experts:
        each = max(1, model.experts_per_token)
        one = model.num_experts * model.num_layers * 3 * model.hidden_size
        width = model.expert_parameters / one if model.expert_parameters else 0.0
        width = width or float(model.intermediate_size)
        return max(heads, each * (model.hidden_size + 3.0 * width))
    return max(heads, 3.0 * model.intermediate_size)


def graphs_part(context: Context, model: ModelFacts, limits: BatchLimits) -> Part:
    """Graphs of decoding steps: one a captured size, piecewise and whole."""
    if context.device == "cpu" or context.parameters.get("enforce_eager") is True:
        return Part(GRAPHS, 0.0, 0.0, 0.0)
    layers = model.num_layers / max(1, context.pp)
    per_size = layers * GRAPH_MIB_PER_LAYER / 1024
    expected = captured_sizes(limits.sequences.expected) * per_size
    own_sizes = any(
        given(context, name) is not None
        for name in ("compilation_config", "cudagraph_capture_sizes", "max_cudagraph_capture_size")
    )
    most = 0.25 + MOST_GRAPHS * captured_sizes(limits.sequences.most) * per_size
    return Part(GRAPHS, 0.0, expected, None if own_sizes else most)


def captured_sizes(sequences: float) -> int:
    """Batch sizes that are captured: 1, 2, 4, then in steps of 8 and, from 256, of 16.

    Mixed batches up to twice the sequences, decoding ones up to their number.
    """

    def sizes_up_to(largest: float) -> int:
        largest = min(GRAPHS_UP_TO, largest)
        small = sum(1 for size in (1, 2, 4) if size <= largest)
        middle = max(0, int(min(largest, 248)) // 8)
        return small + middle + (int(largest - 256) // 16 + 1 if largest >= 256 else 0)

    return sizes_up_to(2 * sequences) + sizes_up_to(sequences)


def runtime_part(context: Context) -> Part:
    """Libraries and buffers that are counted: on a processor those of the whole process."""
    if context.device == "cpu":
        return Part(RUNTIME, 0.25, 0.8, 1.8)
    if max(1, context.tp) * max(1, context.pp) == 1:
        return Part(RUNTIME, 0.0, 0.2, 0.8)
    return Part(RUNTIME, 0.0, 0.6, 2.5)


def graphs_are_counted(context: Context) -> bool:
    """Whether the memory share covers graphs: since vLLM 0.21 they are estimated beforehand."""
    off = str(context.parameters.get("env.VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS", "1"))
    is_old = context.engine is not None and context.is_vllm() and not context.is_vllm((0, 21))
    return off != "0" and not is_old
