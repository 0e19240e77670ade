"""A recipe with nothing left open: all that decides what a checkpoint's bytes will be."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from sweeper.config.recipe_checks import check_recipe
from sweeper.config.recipe_fields import (
    AUTO,
    GROUP_SIZES,
    PER_CHANNEL,
    SEARCHED,
    fields_of,
    is_made,
)
from sweeper.config.schema import RecipeConfig
from sweeper.errors import ConfigError
from sweeper.estimate.shapes import largest_group, quantized_layers
from sweeper.models.facts import ModelFacts

__all__ = ["BUILTIN", "PER_CHANNEL", "Recipe", "resolve_recipe"]

BUILTIN = "builtin"
SAMPLES, TOKENS = 128, 512
"""Calibration of a recipe that does not say how much."""


@dataclass(frozen=True)
class Recipe:
    """How one checkpoint is made.

    Attributes:
        name: value of `quantization` it stands for.
        tool: name in `sweeper.quantize.tools`.
        method: the tool's scheme or format, None if it has only one.
        bits: of a weight; None where the scheme says it.
        group_size: weights that share a scale, `PER_CHANNEL` for one a channel; None where the
            scheme has no groups.
        symmetric: no zero points; None where the scheme says it.
        act_order: columns in the order of their activations; None where the tool has no such.
        calibration: ``builtin``, or the path of a file of texts; None if none are needed.
        calibration_samples, calibration_tokens: how many texts, and their length in tokens.
    """

    name: str
    tool: str
    method: str | None = None
    bits: int | None = None
    group_size: int | None = None
    symmetric: bool | None = None
    act_order: bool | None = None
    calibration: str | None = None
    calibration_samples: int | None = None
    calibration_tokens: int | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain data; what has no meaning for the recipe is left out."""
        return {key: value for key, value in asdict(self).items() if value is not None}


def resolve_recipe(
    name: str, cfg: RecipeConfig, asked: Mapping[str, Any], facts: ModelFacts | None
) -> Recipe:
    """The recipe of one deployment with everything filled in.

    Whether its groups divide the model's layers is not judged here: that depends on how the
    deployment splits them (`sweeper.estimate.rules_model.group_divides`).

    Args:
        name: value of `quantization`.
        cfg: as configured.
        asked: fields that the deployment itself sets; a value that this recipe does not take is
            kept, for `sweeper.quantize.violations` to refuse.
        facts: shape of the model, None if unknown: then the usual group size is assumed to divide.

    Raises:
        ConfigError: the recipe makes no checkpoint, or is wrong whatever is asked.
    """
    check_recipe(name, cfg)
    if not is_made(cfg):
        raise ConfigError(
            f"quantize.recipes.{name} makes no checkpoint", "set its tool to one that makes one"
        )
    fields = fields_of(cfg)
    own = {field: _filled(field, getattr(cfg, field), fields[field]) for field in fields}
    filled = {**own, **{field: asked[field] for field in SEARCHED if field in asked}}
    if filled.get("group_size") == AUTO:
        filled["group_size"] = _group_size(fields["group_size"], facts)
    return Recipe(name=name, tool=cfg.tool, method=cfg.method, **filled)


def _filled(field: str, given: Any, allowed: tuple[Any, ...]) -> Any:
    """A field's value: as given, else the first that the tool names, else the usual."""
    if given is not None:
        return given
    usual = {"calibration": BUILTIN, "calibration_samples": SAMPLES, "calibration_tokens": TOKENS}
    return allowed[0] if allowed else usual[field]


def _group_size(allowed: tuple[Any, ...], facts: ModelFacts | None) -> int:
    """The largest group that divides, one a channel where none does, the usual if unknown."""
    largest = largest_group(quantized_layers(facts), sizes=GROUP_SIZES)
    if largest is not None:
        return largest
    return PER_CHANNEL if PER_CHANNEL in allowed else GROUP_SIZES[-1]
