"""From a model's config.json to the facts that arithmetic needs. Pure, but for `read_config`.

Field names differ between model families; `_ALIASES` lists the spellings of one thing in the order
they are looked for. Multimodal models keep the language model's shape under ``text_config``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from sweeper.errors import ModelError
from sweeper.models.facts import ModelFacts
from sweeper.models.layers import cache_layers, certain_parameters

_ALIASES: dict[str, tuple[str, ...]] = {
    "num_hidden_layers": ("num_hidden_layers", "n_layer", "num_layers", "n_layers"),
    "hidden_size": ("hidden_size", "n_embd", "d_model"),
    "intermediate_size": ("intermediate_size", "n_inner", "ffn_dim", "ffn_hidden_size"),
    "num_attention_heads": ("num_attention_heads", "n_head", "n_heads"),
    "num_key_value_heads": ("num_key_value_heads", "num_kv_heads", "multi_query_group_num"),
    "max_position_embeddings": (
        "max_position_embeddings",
        "n_positions",
        "max_sequence_length",
        "max_seq_len",
        "seq_length",
    ),
    "num_experts": ("num_experts", "num_local_experts", "n_routed_experts"),
    "experts_per_token": (
        "num_experts_per_tok",
        "num_experts_per_token",
        "experts_per_token",
        "moe_topk",
    ),
    "dtype": ("dtype", "torch_dtype"),
    "group_size": ("group_size", "q_group_size"),
}

# Families whose feed-forward has two matrices instead of the gated three.
_UNGATED = {
    "gpt2",
    "gpt_bigcode",
    "gpt_neox",
    "gptj",
    "opt",
    "bloom",
    "falcon",
    "phi",
    "starcoder2",
}
# Families that share input and output embeddings unless config.json says otherwise.
_TIED = {"gpt2", "gpt_bigcode", "opt", "bloom", "falcon", "starcoder2", "cohere", "cohere2"}
_TIED |= {"gemma", "gemma2", "gemma3", "gemma3_text"}
# Families with a bias on query, key and value that config.json does not mention.
_QKV_BIAS = {"qwen2", "qwen2_moe", "gpt2", "gpt_bigcode", "gpt_neox", "opt", "bloom", "phi"}

# Fields of layers that keep a state, choose what they look at, or look back in chunks.
_OTHER_ATTENTION = (
    "linear_num_value_heads",
    "mamba_d_state",
    "mamba_num_heads",
    "state_size",
    "hybrid_override_pattern",
    "attention_chunk_size",
    "index_topk",
)

# A model that does not name its precision is loaded in 16 bit by serving engines.
_DEFAULT_DTYPE = "bfloat16"


def read_config(path: Path) -> dict[str, Any]:
    """Read a config.json.

    Raises:
        ModelError: the file cannot be read, is cut off, or is not the description of a model.
    """
    remedy = f"copy the model again, or point model.path at a folder with a whole {path.name}"
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise ModelError(f"{path} cannot be read: {error}", remedy) from error
    except (json.JSONDecodeError, RecursionError) as error:
        raise ModelError(f"{path} is not valid JSON ({error})", remedy) from error
    if not isinstance(data, dict) or not (data.get("architectures") or data.get("model_type")):
        raise ModelError(
            f"{path} describes no model: it names neither architectures nor model_type", remedy
        )
    return data


def facts_from_config(config: Mapping[str, Any]) -> ModelFacts:
    """Shape of the language model that a config.json describes.

    Args:
        config: fields of config.json; a nested ``text_config`` wins over the outer fields.

    Raises:
        ModelError: a field that arithmetic cannot do without is missing or not a positive number.
    """
    fields = _language_fields(config)
    hidden = _count(fields, "hidden_size")
    heads = _count(fields, "num_attention_heads")
    method, group_size = _quantization(config, fields)
    shape = ModelFacts(
        architecture=_architecture(config, fields),
        num_layers=_count(fields, "num_hidden_layers"),
        hidden_size=hidden,
        intermediate_size=_intermediate(fields, hidden),
        num_heads=heads,
        num_kv_heads=_kv_heads(fields, heads),
        head_dim=_count(fields, "head_dim", default=max(1, hidden // heads)),
        vocab_size=_count(fields, "vocab_size"),
        max_position_embeddings=_count(fields, "max_position_embeddings"),
        dtype=_dtype(fields),
        tie_word_embeddings=_tied(fields),
        num_experts=_count(fields, "num_experts", default=0),
        quantization_method=method,
        quantization_group_size=group_size,
        experts_per_token=_count(fields, "experts_per_token", default=0),
        full_attention=_looks_back_fully(fields),
        latent_width=_latent_width(fields),
    )
    return _with_parameters(shape, fields)


def _language_fields(config: Mapping[str, Any]) -> dict[str, Any]:
    nested = config.get("text_config")
    return {**config, **nested} if isinstance(nested, Mapping) else dict(config)


def _first(fields: Mapping[str, Any], name: str) -> Any:
    for alias in _ALIASES.get(name, (name,)):
        if fields.get(alias) is not None:
            return fields[alias]
    return None


def _count(fields: Mapping[str, Any], name: str, default: int | None = None) -> int:
    """A positive whole number; ``default`` stands in for a missing one and may be 0."""
    value = _first(fields, name)
    if value is None and default is not None:
        return default
    if value is None:
        raise ModelError(
            f"the model's config.json has no {name}",
            f"add {name} to config.json (or to model.facts), or use a model that states it",
        )
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        if value == 0 and default == 0:
            return 0
        raise ModelError(
            f"{name} in the model's config.json is {value!r}, not a positive whole number",
            f"correct {name} in config.json (or in model.facts)",
        )
    return value


def _architecture(config: Mapping[str, Any], fields: Mapping[str, Any]) -> str:
    names = config.get("architectures") or fields.get("architectures") or []
    return str(names[0]) if names else str(fields.get("model_type", "unknown"))


def _intermediate(fields: Mapping[str, Any], hidden: int) -> int:
    # GPT-2 and its kin leave the width out and mean four times the residual stream.
    default = 4 * hidden if fields.get("model_type") in _UNGATED else None
    return _count(fields, "intermediate_size", default=default)


def _kv_heads(fields: Mapping[str, Any], heads: int) -> int:
    if fields.get("multi_query") is True and _first(fields, "num_key_value_heads") is None:
        return 1
    return _count(fields, "num_key_value_heads", default=heads)


def _dtype(fields: Mapping[str, Any]) -> str:
    value = _first(fields, "dtype")
    return str(value).removeprefix("torch.") if value is not None else _DEFAULT_DTYPE


def _tied(fields: Mapping[str, Any]) -> bool:
    value = fields.get("tie_word_embeddings")
    return bool(value) if value is not None else fields.get("model_type") in _TIED


def _quantization(
    config: Mapping[str, Any], fields: Mapping[str, Any]
) -> tuple[str | None, int | None]:
    section = fields.get("quantization_config") or config.get("quantization_config")
    if not isinstance(section, Mapping):
        return None, None
    method = section.get("quant_method")
    group = _first(section, "group_size")
    if group is None:
        group = _compressed_tensors_group(section)
    positive = isinstance(group, int) and group > 0  # -1 means one group a channel
    return (str(method) if method else None), (group if positive else None)


def _compressed_tensors_group(section: Mapping[str, Any]) -> Any:
    """Group size of the first recipe that has one (compressed-tensors keeps it per layer group)."""
    groups = section.get("config_groups")
    for recipe in groups.values() if isinstance(groups, Mapping) else ():
        weights = recipe.get("weights") if isinstance(recipe, Mapping) else None
        if isinstance(weights, Mapping) and weights.get("group_size") is not None:
            return weights["group_size"]
    return None


def _with_parameters(shape: ModelFacts, fields: Mapping[str, Any]) -> ModelFacts:
    embeddings = shape.vocab_size * shape.hidden_size * (1 if shape.tie_word_embeddings else 2)
    if fields.get("model_type") in {"gpt2", "opt"}:  # learned positions
        embeddings += shape.max_position_embeddings * shape.hidden_size
    sparse = _expert_layers(shape, fields)
    feed_forward = sparse * _expert_block(shape, fields)
    feed_forward += (shape.num_layers - sparse) * _dense_block(shape, fields)
    block = _attention(shape, fields) + 2 * shape.hidden_size
    total = embeddings + shape.num_layers * block + feed_forward + shape.hidden_size
    routed = sparse * shape.num_experts * _expert(shape, fields)
    known = bool(shape.experts_per_token)
    kept = cache_layers(fields, shape.num_layers, shape.full_attention)
    return replace(
        shape,
        parameters=total,
        expert_parameters=routed if known else 0,
        full_layers=kept.full,
        window_layers=kept.windowed,
        window=kept.window,
        open_layers=kept.open,
        least_parameters=certain_parameters(fields, total, shape.vocab_size * shape.hidden_size),
    )


def _looks_back_fully(fields: Mapping[str, Any]) -> bool:
    """False if a layer does not attend to all that is before it, or may not."""
    kinds = fields.get("layer_types")
    if isinstance(kinds, list) and kinds:
        return all(kind == "full_attention" for kind in kinds)
    if any(fields.get(name) for name in _OTHER_ATTENTION):
        return False
    window, longest = fields.get("sliding_window"), _first(fields, "max_position_embeddings")
    if not isinstance(window, int) or fields.get("use_sliding_window") is False:
        return True
    return isinstance(longest, int) and window >= longest


def _latent_width(fields: Mapping[str, Any]) -> int:
    rank = _count(fields, "kv_lora_rank", default=0)
    return rank + _count(fields, "qk_rope_head_dim", default=0) if rank else 0


def _attention(shape: ModelFacts, fields: Mapping[str, Any]) -> int:
    if shape.latent_width:
        return _latent_attention(shape, fields)
    query_width = shape.num_heads * shape.head_dim
    kv_width = shape.num_kv_heads * shape.head_dim
    weights = shape.hidden_size * (2 * query_width + 2 * kv_width)
    biased = bool(fields.get("attention_bias")) or fields.get("model_type") in _QKV_BIAS
    return weights + (query_width + 2 * kv_width if biased else 0)


def _latent_attention(shape: ModelFacts, fields: Mapping[str, Any]) -> int:
    """Queries, keys and values by way of narrow vectors (DeepSeek-V2, arXiv 2405.04434)."""
    rank = _count(fields, "kv_lora_rank")
    plain = _count(fields, "qk_nope_head_dim", default=shape.head_dim)
    query = plain + shape.latent_width - rank
    value = _count(fields, "v_head_dim", default=plain)
    narrow = _count(fields, "q_lora_rank", default=0)
    queries = shape.num_heads * query
    weights = narrow * (shape.hidden_size + queries) if narrow else shape.hidden_size * queries
    weights += shape.hidden_size * shape.latent_width
    weights += rank * shape.num_heads * (plain + value)
    return weights + shape.num_heads * value * shape.hidden_size


def _expert_layers(shape: ModelFacts, fields: Mapping[str, Any]) -> int:
    """Layers whose feed-forward is made of experts."""
    if shape.num_experts == 0:
        return 0
    first = _count(fields, "first_k_dense_replace", default=0)
    step = _count(fields, "decoder_sparse_step", default=1)
    dense = fields.get("mlp_only_layers") or ()
    layers = range(first, shape.num_layers)
    return sum(1 for layer in layers if (layer + 1) % step == 0 and layer not in dense)


def _matrices(fields: Mapping[str, Any]) -> int:
    return 2 if fields.get("model_type") in _UNGATED else 3


def _dense_block(shape: ModelFacts, fields: Mapping[str, Any]) -> int:
    return _matrices(fields) * shape.hidden_size * shape.intermediate_size


def _expert(shape: ModelFacts, fields: Mapping[str, Any]) -> int:
    width = _count(fields, "moe_intermediate_size", default=shape.intermediate_size)
    return _matrices(fields) * shape.hidden_size * width


def _expert_block(shape: ModelFacts, fields: Mapping[str, Any]) -> int:
    width = _count(fields, "moe_intermediate_size", default=shape.intermediate_size)
    shared = _count(fields, "n_shared_experts", default=0) * width
    shared += _count(fields, "shared_expert_intermediate_size", default=0)
    router = shape.hidden_size * shape.num_experts
    routed = shape.num_experts * _expert(shape, fields)
    return routed + _matrices(fields) * shape.hidden_size * shared + router
