"""Figures and arguments that a vLLM server tells of itself in its log. Pure.

The log is there for every launch and every version, and asks nothing of the server. Of several data
parallel engines the first to speak is taken; they are alike.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from typing import Any

from sweeper.engine.rules import Learnt, number

_FIGURES: tuple[tuple[str, str, Callable[[str], float | int]], ...] = (
    ("kv_cache_tokens", r"KV cache size: ([\d,]+) tokens", lambda t: int(number(t))),
    (
        "max_full_length_requests",
        r"Maximum concurrency for [\d,]+ tokens per request: ([\d.]+)x",
        float,
    ),
    ("model_memory_gib", r"Model loading took ([\d.]+) Gi?B", float),
    ("model_load_s", r"Model loading took [\d.]+ Gi?B(?: memory)? and ([\d.]+) seconds", float),
    ("weights_load_s", r"Loading weights took ([\d.]+) seconds", float),
    ("kv_cache_memory_gib", r"Available KV cache memory: (-?[\d.]+) GiB", float),
    ("kv_cache_memory_gib", r"Auto set \(([\d.]+)/[\d.]+\) GiB for KV cache", float),
    ("requested_memory_gib", r"with ([\d.]+) GiB requested memory", float),
    ("other_memory_gib", r"([\d.]+) GiB memory was consumed by non-kv usages", float),
    ("graph_memory_gib", r"Graph capturing finished in [\d.]+ secs?, took (-?[\d.]+) GiB", float),
    ("graph_capture_s", r"Graph capturing finished in ([\d.]+) secs?", float),
    ("estimated_graph_memory_gib", r"Estimated CUDA graph memory: ([\d.]+) GiB", float),
    (
        "compile_s",
        r"torch\.compile (?:and initial profiling run )?takes? ([\d.]+) s in total",
        float,
    ),
    ("engine_init_s", r"init engine \([^)]*\) took ([\d.]+) s", float),
)

_ENGINE_LINE = re.compile(r"Initializing a V1 LLM engine .*? with config: (.*)")
_ENGINE_FIELDS = {
    "dtype": "dtype",
    "max_seq_len": "max_model_len",
    "quantization": "quantization",
    "kv_cache_dtype": "kv_cache_dtype",
    "tensor_parallel_size": "tensor_parallel_size",
    "pipeline_parallel_size": "pipeline_parallel_size",
    "enforce_eager": "enforce_eager",
    "enable_prefix_caching": "enable_prefix_caching",
    "enable_chunked_prefill": "enable_chunked_prefill",
    "seed": "seed",
    "device_config": "device",
}
# `data_parallel_size` is not among them: every replica of a dense model counts itself as one.
_SPECULATIVE_FIELDS = {
    "method": "method",
    "model": "model",
    "num_spec_tokens": "num_speculative_tokens",
}
_BATCHED_TOKENS = re.compile(r"Chunked prefill is enabled with max_num_batched_tokens=(\d+)")
_NOTHING_QUANTIZED = "Quantizing 0 layers of types"
"""An online method that has nothing to do with this model's kinds of layers."""
_OPENING, _CLOSING = "([{", ")]}"
_LAUNCH_ONLY = {"host", "port", "model", "model_tag", "served_model_name", "api_key"}


def learn(log_text: str) -> Learnt:
    """Memory, cache size and times of the start, named with units; what is not told is absent."""
    learnt: Learnt = {}
    for name, pattern, read in _FIGURES:
        match = re.search(pattern, log_text)
        if match is not None and name not in learnt:
            learnt[name] = read(match.group(1))
    return learnt


def effective(log_text: str) -> dict[str, Any]:
    """Arguments in effect by underscored name, as far as the log tells them.

    Three lines tell: the engine's summary of its configuration, made after everything that may
    change an argument, the scheduler's on chunked prefill, and how many layers an online method
    of quantization took.
    """
    found = _engine_summary(log_text)
    if _NOTHING_QUANTIZED in log_text:
        found["quantization"] = None
    match = _BATCHED_TOKENS.search(log_text)
    if match is not None:
        found["max_num_batched_tokens"] = int(match.group(1))
    return found


def echoed(log_text: str) -> dict[str, Any]:
    """Arguments as the server understood its command line: no proof that they had an effect."""
    match = re.search(r"non-default args: (\{.*\})", log_text)
    if match is None:
        return {}
    try:
        parsed = ast.literal_eval(match.group(1))
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return {}
    return {name: value for name, value in parsed.items() if name not in _LAUNCH_ONLY}


def _engine_summary(log_text: str) -> dict[str, Any]:
    match = _ENGINE_LINE.search(log_text)
    if match is None:
        return {}
    told = _fields(match.group(1))
    found = {name: _plain(told[word]) for word, name in _ENGINE_FIELDS.items() if word in told}
    if "speculative_config" in told:
        found["speculative_config"] = _speculative(told["speculative_config"])
    return found


def _speculative(text: str) -> dict[str, Any] | None:
    """From ``SpeculativeConfig(method='ngram', model=None, num_spec_tokens=2)``, or ``None``."""
    head, _, inside = text.partition("(")
    if not inside:
        return None if head == "None" else {}
    told = {w: _plain(value) for w, value in _fields(inside.removesuffix(")") + ",").items()}
    return {
        name: told[word] for word, name in _SPECULATIVE_FIELDS.items() if told.get(word) is not None
    }


def _fields(text: str) -> dict[str, str]:
    """``a=1, b=F(c=2, d=[3]),`` as word → text, the outermost level only.

    A line may be cut anywhere: an entry that no comma ends is left out.
    """
    found: dict[str, str] = {}
    depth, quote, start = 0, "", 0
    for index, sign in enumerate(text):
        if quote:
            quote = "" if sign == quote else quote
        elif sign in "'\"":
            quote = sign
        elif sign in _OPENING:
            depth += 1
        elif sign in _CLOSING:
            depth -= 1
        elif sign == "," and depth == 0:
            word, separator, value = text[start:index].strip().partition("=")
            if separator:
                found.setdefault(word, value)
            start = index + 1
    return found


def _plain(text: str) -> Any:
    word = text.strip("'\"").removeprefix("torch.")
    constants: dict[str, Any] = {"True": True, "False": False, "None": None}
    if word in constants:
        return constants[word]
    return int(word) if re.fullmatch(r"-?\d+", word) else word
