"""Which deployments must give the same output, so that quality is measured once for them. Pure.

A parameter counts unless it is known to change only speed or memory: a score taken over wrongly
costs more than one measured twice. Tensor and pipeline parallel sizes stay in, because the order
in which partial sums are added changes rounding; so does ``max_model_len``, which chooses among
rotary scalings in some models. So do the attention backend, the KV cache's type and the engine's
version. A checkpoint counts by its path or, if it was made here, by what its recipe makes of it.

Speculative decoding stays out: it keeps the model's greedy choice, and the score is taken from
reading a prompt, where nothing is drafted. Whether it does keep it is measured apart, once a study
for each way of drafting (`drafting`).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping

from sweeper.engine.protocol import ParameterValue

_SPEED_ONLY = frozenset(
    {
        "max_num_seqs",
        "max_num_batched_tokens",
        "gpu_memory_utilization",
        "enable_prefix_caching",
        "enable_chunked_prefill",
        "speculative",
        "num_speculative_tokens",
        "prompt_lookup_max",
        "prompt_lookup_min",
        "speculative_model",
        "data_parallel_size",
        "flag.api_server_count",
        "flag.async_scheduling",
        "flag.disable_log_requests",
        "flag.disable_log_stats",
        "flag.enable_log_requests",
        "flag.kv_cache_memory_bytes",
        "flag.long_prefill_token_threshold",
        "flag.max_long_partial_prefills",
        "flag.max_num_active_seqs",
        "flag.max_num_partial_prefills",
        "flag.num_gpu_blocks_override",
        "flag.scheduling_policy",
        "flag.shutdown_timeout",
        "flag.stream_interval",
        "flag.swap_space",
        "flag.uvicorn_log_level",
        "env.CUDA_VISIBLE_DEVICES",
        "env.VLLM_CACHE_ROOT",
        "env.VLLM_CPU_KVCACHE_SPACE",
        "env.VLLM_LOGGING_LEVEL",
    }
)
# Values that say what leaving the parameter out says.
_DEFAULT_WORDS = frozenset({"none", "auto", "default"})
_DEFAULTS: Mapping[str, ParameterValue] = {
    "tensor_parallel_size": 1,
    "pipeline_parallel_size": 1,
    "enforce_eager": False,
}


def quality_key(
    parameters: Mapping[str, ParameterValue],
    engine_version: str,
    dtype: str | None,
    model_digest: str | None,
) -> str:
    """16 hex digits over everything that can change the output.

    Args:
        parameters: canonical deployment; a quantized checkpoint's path is one of them.
        engine_version: the engine and its version.
        dtype: precision given to every launch, None for the engine's choice; a deployment's own
            ``dtype`` goes before it.
        model_digest: digest, or path and revision, of the model.
    """
    relevant = {name: value for name, value in parameters.items() if _matters(name, value)}
    if dtype is not None and not _says_nothing("dtype", dtype):
        relevant.setdefault("dtype", dtype)
    content = {"engine": engine_version, "model": model_digest, "parameters": relevant}
    text = json.dumps(content, sort_keys=True, ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def drafting(parameters: Mapping[str, ParameterValue]) -> str:
    """How a deployment drafts tokens, in words; empty if it does not.

    It is no part of `quality_key`. The number of drafted tokens does not count: it is the method
    and its model that can be wrong.

    Args:
        parameters: as the engine gets them, with the drafter's path where it has one.
    """
    method = parameters.get("speculative", "none")
    if method in _DEFAULT_WORDS:
        return ""
    model = parameters.get("speculative_model")
    return f"speculative={method}" + (f" ({model})" if model else "")


def _matters(name: str, value: ParameterValue) -> bool:
    return name not in _SPEED_ONLY and not _says_nothing(name, value)


def _says_nothing(name: str, value: ParameterValue) -> bool:
    if name.startswith(("flag.", "env.")):
        return False  # what such a value means is the engine's business
    return value in _DEFAULT_WORDS or _DEFAULTS.get(name) == value
