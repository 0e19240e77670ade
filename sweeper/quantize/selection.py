"""The recipes and published checkpoints of a study, and what each deployment comes down to.

deployment ──► recipe, with the fields it searches ──► a checkpoint to make, or
           ──► the engine's own word for an online method, or
           ──► a published checkpoint's path
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from sweeper.config.recipe_fields import ENGINE, PREFIX, PUBLISHED, fields_of, is_made, taking
from sweeper.config.schema import QuantizeConfig, RecipeConfig
from sweeper.estimate.violation import Violation
from sweeper.estimate.weights import QuantizedWeights, Served
from sweeper.models.facts import ModelFacts
from sweeper.quantize.calibration import calibration_hash
from sweeper.quantize.published import published_weights, served_path
from sweeper.quantize.recipe import PER_CHANNEL, Recipe, resolve_recipe
from sweeper.quantize.tools import format_of
from sweeper.quantize.violations import Making, violations
from sweeper.space.model import Space

_FIELDS = ("bits", "group_size", "symmetric", "act_order")


@dataclass(frozen=True)
class Selection:
    """What the values of `quantization` stand for.

    Attributes:
        quantize: the recipes that were chosen, and where they are made.
        checkpoints: ``model.checkpoints``; a recipe of the same name wins.
        model: shape of the unquantized model, None if unknown.
        machine: ``cpu`` or ``cuda``, what the machine has.
    """

    quantize: QuantizeConfig
    checkpoints: Mapping[str, str] = field(default_factory=dict)
    model: ModelFacts | None = None
    machine: str = "cpu"

    def recipe(self, deployment: Mapping[str, Any]) -> Recipe | None:
        """The recipe by which a deployment's checkpoint is made, None if none is made."""
        name, cfg = self._configured(deployment)
        if cfg is None or not is_made(cfg):
            return None
        return resolve_recipe(name, cfg, asked_of(deployment), self.model)

    def path(self, deployment: Mapping[str, Any]) -> str | None:
        """The published checkpoint that a deployment serves, None if it serves none."""
        name, cfg = self._configured(deployment)
        if cfg is not None:
            return served_path(cfg.path) if cfg.tool == PUBLISHED and cfg.path else None
        return self.checkpoints.get(name)

    def method(self, deployment: Mapping[str, Any]) -> str | None:
        """The engine's word for what it does itself, None where it serves a checkpoint."""
        name, cfg = self._configured(deployment)
        if cfg is not None:
            return cfg.method if cfg.tool == ENGINE else None
        return None if name in self.checkpoints else name or None

    def engine_word(self, name: str) -> str | None:
        """What the engine must know for a value of `quantization`: a method, or a format.

        None for a published checkpoint whose files are not here, and which will say for itself.
        """
        deployment = {"quantization": name}
        if (path := self.path(deployment)) is not None:
            return published_weights(name, path)[0]
        recipe = self.recipe(deployment)
        return self.method(deployment) if recipe is None else format_of(recipe).quant_method

    def serve(self, deployment: Mapping[str, Any]) -> Served:
        """A deployment as the rules of arithmetic see it."""
        plain = without_recipe_fields(deployment)
        recipe = self.recipe(deployment)
        if recipe is not None:
            plain["quantization"] = format_of(recipe).quant_method
            asked = asked_of(deployment)
            return Served(plain, weights_of(recipe, asked), tuple(self._broken(recipe, asked)))
        path = self.path(deployment)
        if path is not None:
            word, weights = published_weights(str(deployment["quantization"]), path)
            return Served({**plain, "quantization": word or plain["quantization"]}, weights)
        method = self.method(deployment)
        return Served({**plain, "quantization": method} if method is not None else plain)

    def content(self, deployment: Mapping[str, Any]) -> dict[str, Any]:
        """The deployment with what its quantization *is* in the place of its name.

        Two recipes of different names and the same content give the same.
        """
        plain = without_recipe_fields(deployment)
        recipe, path = self.recipe(deployment), self.path(deployment)
        if recipe is not None:
            plain["quantization"] = json.dumps(_told(recipe), sort_keys=True)
        elif deployment.get("quantization") in self.quantize.recipes and path is not None:
            plain["quantization"] = f"checkpoint {path}"
        elif (method := self.method(deployment)) is not None:
            plain["quantization"] = method
        return plain

    def identity(self) -> dict[str, Any]:
        """The recipes' part of a study's identity: as configured, texts by their content."""
        return {
            name: _told(resolve_recipe(name, cfg, {}, self.model))
            if is_made(cfg)
            else {key: value for key, value in vars(cfg).items() if value is not None}
            for name, cfg in self.quantize.recipes.items()
        }

    def with_own_values(self, space: Space) -> Space:
        """The space, whose parameters know what each recipe says by itself.

        A deployment that asks for just that is then the same as one that asks for nothing.
        """
        parameters = tuple(
            replace(parameter, own=self._own(parameter.name.removeprefix(PREFIX)))
            if parameter.name.startswith(PREFIX)
            else parameter
            for parameter in space.parameters
        )
        return replace(space, parameters=parameters)

    def described(self) -> list[str]:
        """A line for each recipe that makes a checkpoint: how, with everything filled in."""
        recipes = [self.recipe({"quantization": name}) for name in self.quantize.recipes]
        return [_line(recipe) for recipe in recipes if recipe is not None]

    @property
    def has_published(self) -> bool:
        """Whether a deployment may serve a checkpoint that lies elsewhere."""
        recipes = self.quantize.recipes.values()
        return bool(self.checkpoints) or any(cfg.tool == PUBLISHED for cfg in recipes)

    def _own(self, field_name: str) -> dict[Any, Any]:
        recipes = self.quantize.recipes
        return {
            name: getattr(resolve_recipe(name, recipes[name], {}, self.model), field_name)
            for name in taking(recipes, field_name)
        }

    def _configured(self, deployment: Mapping[str, Any]) -> tuple[str, RecipeConfig | None]:
        name = deployment.get("quantization")
        return ("", None) if name is None else (str(name), self.quantize.recipes.get(str(name)))

    def _broken(self, recipe: Recipe, asked: Mapping[str, Any]) -> list[Violation]:
        cfg = self.quantize.recipes[recipe.name]
        making = Making(
            recipe, asked, fields_of(cfg), self.model, self.quantize.device, self.machine
        )
        return violations(making)


def asked_of(deployment: Mapping[str, Any]) -> dict[str, Any]:
    """A deployment's own values for fields of its recipe, by the field's name."""
    return {
        name.removeprefix(PREFIX): value
        for name, value in deployment.items()
        if name.startswith(PREFIX)
    }


def without_recipe_fields(deployment: Mapping[str, Any]) -> dict[str, Any]:
    """A deployment's parameters that may reach the engine."""
    return {name: value for name, value in deployment.items() if not name.startswith(PREFIX)}


def weights_of(recipe: Recipe, asked: Mapping[str, Any]) -> QuantizedWeights | None:
    """What arithmetic is told of the checkpoint that a recipe makes."""
    if recipe.bits is None:
        return None
    grouped = recipe.group_size not in (None, PER_CHANNEL)
    return QuantizedWeights(
        name=recipe.name,
        bits=recipe.bits,
        group_size=recipe.group_size if grouped else None,
        symmetric=recipe.symmetric is not False,
        act_order=recipe.act_order is True,
        activations=format_of(recipe).activations,
        searched=tuple(f"{PREFIX}{name}" for name in _FIELDS if name in asked),
    )


def _line(recipe: Recipe) -> str:
    by = f"{recipe.tool} {recipe.method}" if recipe.method else recipe.tool
    parts = [f"{recipe.name}: made with {by}", f"{recipe.bits} bits"]
    if recipe.group_size is not None:
        a_channel = recipe.group_size == PER_CHANNEL
        parts.append("a scale a channel" if a_channel else f"groups of {recipe.group_size}")
    if recipe.symmetric is not None:
        parts.append("symmetric" if recipe.symmetric else "with zero points")
    if recipe.act_order:
        parts.append("act order")
    if recipe.calibration is not None:
        parts.append(
            f"calibrated on {recipe.calibration_samples} x {recipe.calibration_tokens} tokens "
            f"({recipe.calibration})"
        )
    return ", ".join(parts)


def _told(recipe: Recipe) -> dict[str, Any]:
    """A recipe by its content: not its name, and not where its texts lie."""
    told = {key: value for key, value in recipe.to_dict().items() if key != "name"}
    if recipe.calibration is not None:
        told["calibration"] = calibration_hash(recipe)
    return told
