"""Which layers of a model cache what, and how sure its weight count is. Pure.

A layer caches every token, or those of a window, or keeps a state of fixed size, or reads another
layer's cache. What config.json leaves open is counted so that nothing is called too large that
might be small: see `CacheLayers.full`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_FULL = {"full_attention", "attention", "global_attention"}
_WINDOWED = {"sliding_attention", "sliding_window", "local_attention", "chunked_attention"}

# Layers of these families are all alike, or differ in ways that are read: their count is exact but
# for norms and small biases.
_PLAIN = {
    *("llama", "mistral", "mixtral", "qwen2", "qwen2_moe", "qwen3", "qwen3_moe", "gemma", "gemma2"),
    *("gemma3", "gemma3_text", "phi3", "olmo", "olmo2", "olmoe", "granite", "smollm3", "cohere"),
    *("cohere2", "glm", "glm4", "exaone", "exaone4", "internlm2", "internlm3", "starcoder2"),
    *("deepseek_v2", "deepseek_v3", "gpt_oss", "gpt2", "opt", "gpt_neox", "falcon", "phi"),
}
# Fields that make layers differ in ways that are not read.
_UNEVEN = (
    "block_configs",
    "hybrid_override_pattern",
    "layers_block_type",
    "attn_layer_period",
    "expert_layer_period",
    "moe_layers",
    "num_kv_shared_layers",
    "linear_num_value_heads",
    "mamba_d_state",
    "mamba_num_heads",
    "state_size",
)
_PLAIN_SHARE = 0.97
_UNKNOWN_SHARE = 0.6
"""A family that is not known may have an ungated feed-forward: two matrices instead of three."""


@dataclass(frozen=True)
class CacheLayers:
    """Layers by what they cache.

    Attributes:
        full: keep every token; those of which that is certain.
        windowed: keep the last `window` tokens, or that many at least.
        window: in tokens.
        open: keep a state, or it is not known what they keep.
    """

    full: int
    windowed: int = 0
    window: int = 0
    open: int = 0


def cache_layers(fields: Mapping[str, Any], layers: int, looks_back_fully: bool) -> CacheLayers:
    """From the fields of config.json.

    Args:
        fields: of the language model.
        layers: their number.
        looks_back_fully: no field speaks of anything but full attention.
    """
    layers = max(0, layers - _sharing(fields, layers))
    window = fields.get("sliding_window") or fields.get("attention_chunk_size")
    window = window if isinstance(window, int) and not isinstance(window, bool) else 0
    kinds = fields.get("layer_types")
    if isinstance(kinds, list) and kinds:
        return _listed(kinds[:layers], layers, window)
    if looks_back_fully:
        return CacheLayers(layers)
    # One window for all layers, or for some of them: at least so much is kept.
    return CacheLayers(0, layers, window) if window else CacheLayers(0, open=layers)


def _listed(kinds: list[Any], layers: int, window: int) -> CacheLayers:
    full = sum(kind in _FULL for kind in kinds)
    windowed = sum(kind in _WINDOWED for kind in kinds) if window else 0
    return CacheLayers(full, windowed, window if windowed else 0, layers - full - windowed)


def _sharing(fields: Mapping[str, Any], layers: int) -> int:
    """Layers that read the cache of another one."""
    shared = fields.get("num_kv_shared_layers")
    if isinstance(shared, int) and shared > 0:
        return shared
    factor = fields.get("cla_share_factor")
    if fields.get("use_cla") and isinstance(factor, int) and factor > 1:
        return layers - -(-layers // factor)
    return 0


def certain_parameters(fields: Mapping[str, Any], counted: int, embedding: int) -> int:
    """Weights that the model has at least.

    Args:
        fields: of the language model.
        counted: from the shape, as if all layers were alike.
        embedding: of the input table, which every model has.
    """
    step = fields.get("interleave_moe_layer_step")
    uneven = any(fields.get(name) for name in _UNEVEN) or step not in {None, 1}
    if uneven or isinstance(fields.get("moe_layer_freq"), list):
        return min(embedding, counted)
    plain = fields.get("model_type") in _PLAIN
    return int(counted * (_PLAIN_SHARE if plain else _UNKNOWN_SHARE))
