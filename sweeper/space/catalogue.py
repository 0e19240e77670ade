"""The parameters of a deployment that have a name of their own."""

from __future__ import annotations

from sweeper.space.model import ENGINE_DEFAULT

BOOL, NUMBER, TEXT = "bool", "number", "text"

KNOWN: dict[str, str] = {
    "quantization": TEXT,
    "dtype": TEXT,
    "kv_cache_dtype": TEXT,
    "max_num_seqs": NUMBER,
    "max_num_batched_tokens": NUMBER,
    "gpu_memory_utilization": NUMBER,
    "max_model_len": NUMBER,
    "block_size": NUMBER,
    "enable_prefix_caching": BOOL,
    "enable_chunked_prefill": BOOL,
    "enforce_eager": BOOL,
    "speculative": TEXT,
    "num_speculative_tokens": NUMBER,
    "prompt_lookup_max": NUMBER,
    "tensor_parallel_size": NUMBER,
    "pipeline_parallel_size": NUMBER,
    "data_parallel_size": NUMBER,
    "quantize.bits": NUMBER,
    "quantize.group_size": NUMBER,
    "quantize.symmetric": BOOL,
    "quantize.act_order": BOOL,
    "quantize.calibration": TEXT,
    "quantize.calibration_samples": NUMBER,
}
"""Name → what its values are. `quantize.<field>` changes a field of the recipe that `quantization`
names, and is never sent to the engine; which values a recipe takes, the configuration has checked.
"""

RECIPE_PREFIX = "quantize."
PER_CHANNEL = ("quantize.group_size", -1)
"""The one number below 1: a scale for a whole output channel."""

FREE_PREFIXES = ("flag.", "env.")
"""`flag.<underscored_name>` is any other engine flag, `env.<NAME>` any environment variable."""

NEUTRAL: dict[str, tuple[str, ...]] = {
    "quantization": ("none",),
    "speculative": ("none",),
    "kv_cache_dtype": ("auto",),
    "dtype": ("auto",),
}
"""Words that say the engine's default, besides `default`. (`max_model_len: auto` is not one: it
asks the engine for the longest that fits.)"""

REQUIRED = frozenset({"num_speculative_tokens"})
"""The engine has no default for these: where they exist they are always given."""

SPECULATIVE_METHODS = ("none", "ngram", "draft_model", "eagle")


def is_free(name: str) -> bool:
    """True for engine flags and environment variables without a name of their own."""
    return any(name.startswith(prefix) and len(name) > len(prefix) for prefix in FREE_PREFIXES)


def is_neutral(name: str, value: object) -> bool:
    """True if the word itself means "leave it out", whatever the space."""
    return value is None or (
        isinstance(value, str) and (value == ENGINE_DEFAULT or value in NEUTRAL.get(name, ()))
    )
