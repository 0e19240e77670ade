"""Rules from the model's shape: heads, layers, groups, lengths, the draft's vocabulary."""

from __future__ import annotations

from collections.abc import Callable

from sweeper.estimate.facts import FROM_CHECKPOINT, Context
from sweeper.estimate.shapes import SIZES, largest_group, quantized_layers, undivided
from sweeper.estimate.violation import Finding

TP, PP = "tensor_parallel_size", "pipeline_parallel_size"

_MADE_BY = {
    **dict.fromkeys(("awq", "auto_awq", "awq_marlin"), "awq"),
    **dict.fromkeys(("gptq", "auto_gptq", "gptq_marlin"), "gptqmodel"),
    "compressed-tensors": "w4a16",
}
"""Format → a shipped recipe that makes it."""


def _divisors(number: int, limit: int = 64) -> str:
    return ", ".join(str(n) for n in range(1, min(number, limit) + 1) if number % n == 0)


def heads_divide(c: Context) -> Finding | None:
    """Each tensor-parallel rank takes a whole number of attention heads."""
    if c.model is None or c.tp < 1 or c.model.num_heads % c.tp == 0:
        return None
    heads = c.model.num_heads
    cause = f"{heads} attention heads do not divide by {TP}={c.tp}"
    return cause, f"use {TP} of {_divisors(heads)}", (TP,)


def kv_heads_divide(c: Context) -> Finding | None:
    """Key/value heads are split evenly or copied evenly over the ranks."""
    if c.model is None or c.tp < 1 or c.model.num_heads % c.tp:
        return None
    kv = c.model.num_kv_heads
    if kv % c.tp == 0 or c.tp % kv == 0:
        return None
    cause = f"{kv} key/value heads can be neither split nor copied evenly over {TP}={c.tp}"
    return cause, f"use {TP} of {_divisors(kv)} or a multiple of {kv}", (TP,)


def intermediate_divides(c: Context) -> Finding | None:
    """The feed-forward layer is cut into equal parts."""
    if c.model is None or c.model.num_experts or c.tp < 1 or c.model.intermediate_size % c.tp == 0:
        return None
    cause = f"the feed-forward width {c.model.intermediate_size} does not divide by {TP}={c.tp}"
    return cause, f"use another {TP}", (TP,)


def layers_cover_stages(c: Context) -> Finding | None:
    """A pipeline stage needs a layer."""
    if c.model is None or c.pp <= c.model.num_layers:
        return None
    cause = f"{PP}={c.pp} stages for {c.model.num_layers} layers"
    return cause, f"use {PP} up to {c.model.num_layers}", (PP,)


def group_divides(c: Context) -> Finding | None:
    """Every layer's input, or a rank's part of it, is a whole number of quantization groups."""
    group, layers = c.group_size, quantized_layers(c.model)
    layer = None if group is None or c.tp < 1 else undivided(layers, group, c.tp)
    if layer is None or group is None:
        return None
    cut = layer.cuts_inputs and c.tp > 1
    width = layer.inputs_on(c.tp)
    part = f"{layer.inputs} / {TP}={c.tp} = {width}" if cut else str(layer.inputs)
    cause = (
        f"the {layer.name} input of {part} is not a multiple of the quantization group size {group}"
    )
    own = ("quantization",) if "quantization" in c.parameters else ()
    involved = c.weights.involved("group_size") if c.weights is not None else own
    if cut:
        involved = (*involved, TP)
    return cause, _other_group(c, largest_group(layers, c.tp), cut), involved


def _other_group(c: Context, fitting: int | None, cut: bool) -> str:
    """What to use in the place of a group size that does not divide."""
    weights = c.weights
    if weights is not None and weights.made and fitting is not None:
        searched = "quantize.group_size" in weights.searched
        key = "quantize.group_size" if searched else f"quantize.recipes.{weights.name}.group_size"
        return f"use {key}={fitting}, the largest that divides"
    if weights is not None and weights.made:
        none = f"none of {', '.join(map(str, SIZES))} divides"
        return f"{none}; use quantize=w8a8, which has no groups" + (
            f", or another {TP}" if cut else ""
        )
    smaller = "a checkpoint with a smaller group size"
    return f"use another {TP} or {smaller}" if cut else f"use {smaller}"


def length_within_model(c: Context) -> Finding | None:
    """A model is not run beyond the positions it was made for."""
    length = c.number("max_model_len")
    if c.model is None or length is None or length <= c.model.max_position_embeddings:
        return None
    limit = c.model.max_position_embeddings
    cause = f"max_model_len={length} is above the model's max_position_embeddings={limit}"
    return cause, f"use max_model_len up to {limit}", ("max_model_len",)


def length_holds_requests(c: Context) -> Finding | None:
    """The workload's longest request fits into max_model_len (or the model's own limit)."""
    length = c.number("max_model_len")
    known = c.model.max_position_embeddings if c.model is not None else None
    limit = length if length is not None else known
    if limit is None or c.required_tokens <= limit:
        return None
    what = "max_model_len" if length is not None else "the model's max_position_embeddings"
    cause = f"requests of {c.required_tokens} tokens do not fit into {what}={limit}"
    remedy = f"use max_model_len of {c.required_tokens} or more, or a shorter workload"
    return cause, remedy, ("max_model_len",) if length is not None else ()


def model_named(c: Context) -> Finding | None:
    """Draft, head and checkpoint must come from somewhere."""
    if c.method in c.missing:
        key = "model.draft_model" if c.method == "draft_model" else "model.eagle_model"
        cause = f"speculative={c.method} has no model to draft with"
        return cause, f"set {key}=FOLDER_OR_HUB_ID, or use speculative=ngram", ("speculative",)
    quantization = c.text("quantization")
    own = c.model.quantization_method if c.model is not None else None
    if quantization not in c.missing or c.weights is not None:
        return None
    if _family(quantization) == _family(own or ""):
        return None
    cause = f"quantization={quantization} needs a checkpoint, and the model names none"
    recipe = _MADE_BY.get(quantization, quantization)
    remedy = (
        f"set model.checkpoints.{quantization}=FOLDER_OR_HUB_ID, or make one: add quantize={recipe}"
    )
    return cause, remedy, ("quantization",)


def draft_vocabulary(c: Context) -> Finding | None:
    """Draft and target must share a vocabulary."""
    if c.method != "draft_model" or c.model is None or c.draft is None:
        return None
    target, draft = c.model.vocab_size, c.draft.vocab_size
    if target == draft:
        return None
    cause = f"the draft model's vocabulary of {draft} differs from the target's {target}"
    remedy = "use speculative=ngram, or a draft model with the same vocabulary (model.draft_model)"
    return cause, remedy, ("speculative",)


def draft_sharding(c: Context) -> Finding | None:
    """A draft model is split over the same ranks as its target."""
    if c.method != "draft_model" or c.draft is None or c.tp < 1 or c.draft.num_heads % c.tp == 0:
        return None
    cause = f"the draft model's {c.draft.num_heads} attention heads do not divide by {TP}={c.tp}"
    return cause, f"use {TP} of {_divisors(c.draft.num_heads)}", ("speculative", TP)


def checkpoint_method(c: Context) -> Finding | None:
    """A checkpoint that is already quantized is not quantized another way."""
    asked = c.text("quantization")
    own = c.model.quantization_method if c.model is not None else None
    if not asked or own is None or _family(asked) == _family(own):
        return None
    if asked in FROM_CHECKPOINT:  # served from a checkpoint of its own, see model.checkpoints
        return None
    cause = f"the checkpoint is quantized with {own}, not {asked}"
    return cause, f"use quantization=none (the checkpoint's own {own})", ("quantization",)


def _family(method: str) -> str:
    return method.removeprefix("auto_").removesuffix("_marlin").split("_per_")[0]


MODEL_RULES: dict[str, Callable[[Context], Finding | None]] = {
    "heads_divide": heads_divide,
    "kv_heads_divide": kv_heads_divide,
    "intermediate_divides": intermediate_divides,
    "layers_cover_stages": layers_cover_stages,
    "group_divides": group_divides,
    "length_within_model": length_within_model,
    "length_holds_requests": length_holds_requests,
    "model_named": model_named,
    "draft_vocabulary": draft_vocabulary,
    "draft_sharding": draft_sharding,
    "checkpoint_method": checkpoint_method,
}
