"""Finishing touches after composition: what one group's choice means for another."""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import Any

from sweeper.config.edits import edit_recipes, edit_space, flatten
from sweeper.config.overrides import Override
from sweeper.config.recipe_fields import PREFIX, taking
from sweeper.config.schema import ModelConfig, QuantizeConfig, SpaceConfig, SweeperConfig
from sweeper.errors import ConfigError

CHECKPOINTS = "checkpoints"
"""Word among the choices of `quantization` that stands for the model's published checkpoints."""


def adjust(cfg: SweeperConfig, overrides: list[Override]) -> None:
    """Name a model given by its path, edit the space, expand checkpoints, add recipes. In place.

    Raises:
        ConfigError: an edit or a recipe that contradicts the space.
    """
    given = {override.key for override in overrides}
    if cfg.model.path and cfg.model.name == "custom" and "model.name" not in given:
        cfg.model.name = name_from_path(cfg.model.path)
    edit_space(cfg.space, overrides)
    edit_recipes(cfg.quantize, overrides)
    expand_checkpoints(cfg.space, cfg.model)
    add_recipes(cfg.space, cfg.quantize, with_seeds="space.seeds" not in given)
    set_conditions(cfg.space, cfg.quantize)


def name_from_path(path: str) -> str:
    """Short name of a model: the last part of its path, safe for file names."""
    last = PurePosixPath(path.rstrip("/")).name
    return re.sub(r"[^A-Za-z0-9._-]+", "-", last).strip("-.") or "model"


def expand_checkpoints(space: SpaceConfig, model: ModelConfig) -> None:
    """Replace the word `checkpoints` by the names in `model.checkpoints`."""
    choices = _choices(space, "quantization")
    if choices is None or CHECKPOINTS not in choices:
        return
    own = [choice for choice in choices if choice != CHECKPOINTS]
    choices[:] = own + [name for name in model.checkpoints if name not in own]


def add_recipes(space: SpaceConfig, quantize: QuantizeConfig, *, with_seeds: bool) -> None:
    """Make every chosen recipe a choice of `quantization`, and a seed: who asks for it wants it
    tried, and a sampler with few launches may never come to it.

    Args:
        space: changed in place.
        quantize: the recipes that were chosen.
        with_seeds: False where the seeds are the user's own.

    Raises:
        ConfigError: `quantization` is fixed.
    """
    recipes = list(quantize.recipes)
    if not recipes:
        return
    if "quantization" in space.fixed:
        raise ConfigError(
            f"quantize chooses {', '.join(recipes)}, but space.fixed.quantization="
            f"{space.fixed['quantization']} leaves no choice",
            "search it: space.parameters.quantization=[none], or choose no recipe: quantize=none",
        )
    space.parameters.setdefault("quantization", {"choices": ["none"]})
    choices = _choices(space, "quantization")
    if choices is None:
        return  # no list, which the space's parser refuses in its own words
    choices += [name for name in recipes if name not in choices]
    seeds = [{"quantization": name} for name in recipes]
    space.seeds += [seed for seed in seeds if with_seeds and seed not in space.seeds]


def set_conditions(space: SpaceConfig, quantize: QuantizeConfig) -> None:
    """A recipe's field is searched only where `quantization` is a recipe that has a choice of it.

    A condition on `quantization` that is there already is left alone.
    """
    space.parameters, space.fixed = _dotted(space.parameters), _dotted(space.fixed)
    for name, form in space.parameters.items():
        if name.startswith(PREFIX) and isinstance(form, list | dict):
            takers = taking(quantize.recipes, name.removeprefix(PREFIX))
            space.parameters[name] = _conditional(form, takers) if takers else form


def _dotted(entries: dict[str, Any]) -> dict[str, Any]:
    """`quantize: {bits: …}` as `quantize.bits: …`, because a condition is added to each."""
    return dict(flatten(entries)) if isinstance(entries.get("quantize"), dict) else entries


def _conditional(form: list[Any] | dict[str, Any], takers: list[str]) -> dict[str, Any]:
    whole = {"choices": form} if isinstance(form, list) else form
    when = whole.get("when") or {}
    if not isinstance(when, dict):
        return whole  # refused by the space's parser
    return {**whole, "when": {"quantization": takers, **when}}


def _choices(space: SpaceConfig, name: str) -> list[Any] | None:
    """The list of a parameter's choices, to be changed in place."""
    form = space.parameters.get(name)
    choices = form.get("choices") if isinstance(form, dict) else form
    return choices if isinstance(choices, list) else None
