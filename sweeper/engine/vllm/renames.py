"""What vLLM renamed or removed, by version, with its source. Pure.

The installed version's own help decides whether a flag or a value is there. This table only says
what became of one that is not, and which words mean the same in another version.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from sweeper.engine.flag_check import Problem, Rename, dashed
from sweeper.engine.vllm.versions import Release, is_between


@dataclass(frozen=True)
class Gone:
    """A flag that vLLM had.

    Attributes:
        use: what takes its place, as on a command line; empty if nothing does.
        since: first release without it, None if not known exactly.
        source: where this is said.
    """

    use: str = ""
    since: Release | None = None
    source: str = ""


_SPECULATIVE = Gone("--speculative-config (a JSON object)", (0, 8, 3), "vllm#15466")
_STRUCTURED = Gone("--structured-outputs-config", (0, 12), "vllm#22772")
_MULTI_STEP = Gone("", (0, 10, 1), "vllm#22779")
_EPLB = Gone("--eplb-config (a JSON object)")
_V0 = Gone()

GONE: dict[str, Gone] = {
    "swap_space": Gone("", (0, 18), "vllm#36216"),
    "num_lookahead_slots": Gone("", (0, 12), "vllm#29000"),
    "rope_scaling": Gone("--hf-overrides '{\"rope_scaling\": {...}}'", (0, 12), "vllm#28006"),
    "rope_theta": Gone("--hf-overrides '{\"rope_theta\": ...}'", (0, 12), "vllm#28006"),
    "task": Gone("--runner and --convert", (0, 13), "vllm#30397"),
    "disable_log_requests": Gone("--no-enable-log-requests", (0, 17), "llm-d-benchmark#781"),
    "guided_decoding_backend": _STRUCTURED,
    "guided_decoding_disable_fallback": _STRUCTURED,
    "guided_decoding_disable_any_whitespace": _STRUCTURED,
    "guided_decoding_disable_additional_properties": _STRUCTURED,
    "num_scheduler_steps": _MULTI_STEP,
    "multi_step_stream_outputs": _MULTI_STEP,
    "speculative_model": _SPECULATIVE,
    "speculative_model_quantization": _SPECULATIVE,
    "num_speculative_tokens": _SPECULATIVE,
    "speculative_draft_tensor_parallel_size": _SPECULATIVE,
    "speculative_max_model_len": _SPECULATIVE,
    "speculative_disable_by_batch_size": _SPECULATIVE,
    "speculative_disable_mqa_scorer": _SPECULATIVE,
    "ngram_prompt_lookup_max": _SPECULATIVE,
    "ngram_prompt_lookup_min": _SPECULATIVE,
    "spec_decoding_acceptance_method": _SPECULATIVE,
    "typical_acceptance_sampler_posterior_threshold": _SPECULATIVE,
    "typical_acceptance_sampler_posterior_alpha": _SPECULATIVE,
    "disable_logprobs_during_spec_decoding": _SPECULATIVE,
    "enable_reasoning": Gone("--reasoning-parser", (0, 10), "vllm#18538"),
    "cuda_graph_sizes": Gone("--cudagraph-capture-sizes", (0, 13), "vllm#26016"),
    "max_num_partial_prefills": Gone("", None, "vllm#51494"),
    "max_long_partial_prefills": Gone("", None, "vllm#51494"),
    "num_redundant_experts": _EPLB,
    "eplb_window_size": _EPLB,
    "eplb_step_interval": _EPLB,
    "eplb_log_balancedness": _EPLB,
    "override_pooler_config": Gone("--pooler-config"),
    "worker_use_ray": Gone("--distributed-executor-backend ray"),
    "disable_mm_preprocessor_cache": Gone("--mm-processor-cache-gb 0"),
    "enable_multimodal_encoder_data_parallel": Gone("--mm-encoder-tp-mode"),
    "disable_chunked_prefill": Gone("--no-enable-chunked-prefill"),
    "disable_prefix_caching": Gone("--no-enable-prefix-caching"),
    **dict.fromkeys(
        (
            "calculate_kv_scales",
            "device",
            "disable_async_output_proc",
            "disable_frontend_multiprocessing",
            "enable_lora_bias",
            "enable_prompt_adapter",
            "engine_use_ray",
            "long_lora_scaling_factors",
            "lora_extra_vocab_size",
            "max_context_len_to_capture",
            "max_prompt_adapter_token",
            "max_prompt_adapters",
            "max_seq_len_to_capture",
            "override_attention_dtype",
            "preemption_mode",
            "quantization_param_path",
            "scheduler_delay_factor",
            "tokenizer_pool_extra_config",
            "tokenizer_pool_size",
            "tokenizer_pool_type",
            "use_v2_block_manager",
        ),
        _V0,
    ),
}
"""Flags of older versions, underscored."""

_PLUGIN = "install a plugin that brings it, or use a compressed-tensors checkpoint"

GONE_VALUES: dict[tuple[str, str], str] = {
    ("quantization", "bitsandbytes"): _PLUGIN,
    ("quantization", "gguf"): _PLUGIN,
    ("load_format", "bitsandbytes"): _PLUGIN,
    ("load_format", "gguf"): _PLUGIN,
}
"""Values of older versions → what to do instead (vllm#39583)."""


@dataclass(frozen=True)
class _Synonym:
    """`asked` is known as `given` in ``since <= version < until``.

    `changed` marks a word that is still there and means something else: it is replaced by version.
    Every other is replaced where it is not there and the other is.
    """

    parameter: str
    asked: str
    given: str
    since: Release | None = None
    until: Release | None = None
    changed: bool = False
    online: bool = False


_SYNONYMS = (
    # Quantizing while loading moved to names of its own, and `fp8` stayed for checkpoints:
    # vllm#38138, vllm#53585.
    _Synonym("quantization", "fp8", "fp8_per_tensor", since=(0, 30), changed=True, online=True),
    _Synonym("quantization", "fp8_per_tensor", "fp8", until=(0, 20), online=True),
    _Synonym("quantization", "int8", "int8_per_channel_weight_only", since=(0, 20), online=True),
    # One library of Intel's took the other in.
    _Synonym("quantization", "auto-round", "inc"),
    _Synonym("quantization", "auto_round", "inc"),
    # "fp8" is short for "fp8_e4m3" wherever both are known.
    _Synonym("kv_cache_dtype", "fp8_e4m3", "fp8"),
    _Synonym("kv_cache_dtype", "fp8", "fp8_e4m3"),
    # The backends' names lost their engine's generation once there was only one.
    _Synonym("attention_backend", "FLASH_ATTN_VLLM_V1", "FLASH_ATTN"),
    _Synonym("attention_backend", "TRITON_ATTN_VLLM_V1", "TRITON_ATTN"),
    _Synonym("attention_backend", "FLASHINFER_VLLM_V1", "FLASHINFER"),
)


def gone_flags(engine: str, version: str) -> dict[str, Problem]:
    """What to say of flags that were there once: underscored name → problem.

    Args:
        engine: name and version for messages.
        version: of the installed vLLM.
    """
    return dict(_gone(engine, version))


def _gone(engine: str, version: str) -> Iterator[tuple[str, Problem]]:
    for name, gone in GONE.items():
        option = f"--{dashed(name)}"
        known = gone.since is not None and is_between(version, gone.since, None)
        when = f" in vLLM {'.'.join(map(str, gone.since or ()))}" if known else ""
        cause = f"{option} was removed{when}, and this is {engine}"
        remedy = f"use {gone.use}{_as_setting(gone.use)}" if gone.use else _NOTHING
        yield name, Problem(cause, remedy, unknown=True)


_NOTHING = "nothing replaces it, leave it out"


def _as_setting(use: str) -> str:
    """The form of the configuration for a flag that is switched off: ``--no-x`` is ``x: false``."""
    if not use.startswith("--no-"):
        return ""
    return f" ({use.removeprefix('--no-').replace('-', '_')}: false)"


def renamed(parameter: str, word: str, version: str, values: Collection[str]) -> Rename | None:
    """The name by which a version knows the study's word, None if it is the same.

    Args:
        parameter: name of the flag, underscored.
        word: the study's value.
        version: of the installed vLLM.
        values: what the installed version takes; empty if that is not known.
    """
    for entry in _SYNONYMS:
        if (entry.parameter, entry.asked) != (parameter, word):
            continue
        if entry.changed:
            applies = is_between(version, entry.since, entry.until)
        elif values:
            applies = word not in values
        else:
            bounded = entry.since is not None or entry.until is not None
            applies = bounded and is_between(version, entry.since, entry.until)
        if applies and (not values or entry.given in values):
            return Rename(parameter, word, entry.given, entry.online)
    return None
