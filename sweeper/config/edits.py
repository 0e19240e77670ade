"""Edits of the search space and of recipes on the command line: `space.parameters.NAME…`,
`space.fixed.NAME` and `quantize.recipes.NAME…`.

They are carried out here, after composition, and not by Hydra: a parameter's name may hold a dot
(`env.OMP_NUM_THREADS`), a list of choices replaces a range instead of being merged into it, what is
fixed is no longer searched, and a recipe may be a new one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from sweeper.config.overrides import RECIPE_EDITS, SPACE_EDITS, Override
from sweeper.config.schema import QuantizeConfig, RecipeConfig, SpaceConfig
from sweeper.config.suggest import did_you_mean
from sweeper.config.values import check_value, show
from sweeper.errors import ConfigError

NESTED = ("flag", "env", "quantize")
"""First parts of names with a dot in them."""


def flatten(entries: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """`flag: {x: …}` means `flag.x: …`; a dot cannot be typed into a key on the command line."""
    for name, form in entries.items():
        if name in NESTED and isinstance(form, Mapping):
            yield from ((f"{name}.{inner}", value) for inner, value in form.items())
        else:
            yield str(name), form


def edit_space(space: SpaceConfig, overrides: list[Override]) -> None:
    """Carry out the edits in order, then drop shipped seeds that they contradict. In place.

    Seeds that the user gave are left alone: `parse_space` checks those.
    """
    touched = {_edit(space, item) for item in overrides if item.key.startswith(SPACE_EDITS)}
    if touched and not any(item.key == "space.seeds" for item in overrides):
        space.seeds = [seed for seed in space.seeds if not _contradicts(seed, touched, space)]


def edit_recipes(quantize: QuantizeConfig, overrides: list[Override]) -> None:
    """Carry out the edits of recipes in order. In place.

    Raises:
        ConfigError: a recipe that is not there is to be removed, or one is given as a plain value.
    """
    for item in overrides:
        if item.key.startswith(RECIPE_EDITS):
            name, *field = item.key.removeprefix(RECIPE_EDITS).split(".")
            _edit_recipe(quantize.recipes, name, field, item)


def _edit_recipe(
    recipes: dict[str, RecipeConfig], name: str, field: list[str], item: Override
) -> None:
    if item.delete:
        if name not in recipes:
            raise ConfigError(
                f"~{item.key}: there is nothing to remove",
                did_you_mean(name, recipes, what="chosen recipes"),
            )
        del recipes[name]
    elif field:
        setattr(recipes.setdefault(name, RecipeConfig()), field[0], item.value)
    elif isinstance(item.value, Mapping):
        for key, value in item.value.items():
            check_value(f"{item.key}.{key}", value)
        recipes[name] = RecipeConfig(**item.value)
    else:
        raise ConfigError(
            f"{item.key} has keys of its own, it is not {show(item.value)}",
            f"set one of them: {item.key}.tool=..., {item.key}.bits=...",
        )


def _edit(space: SpaceConfig, item: Override) -> str:
    """One edit; returns the parameter's name."""
    _, place, *rest = item.key.split(".")
    name, inner = _split_name(rest)
    target = space.parameters if place == "parameters" else space.fixed
    other = space.fixed if place == "parameters" else space.parameters
    if item.delete:
        _remove(target, place, name, item)
        if place == "parameters":
            # It stays at the engine's default, and conditions on it still hold.
            other.setdefault(name, "default")
    elif inner:
        target[name] = _with(target.get(name), inner, item.value)
        other.pop(name, None)
    else:
        target[name] = item.value
        other.pop(name, None)
    return name


def _split_name(parts: list[str]) -> tuple[str, list[str]]:
    """`[env, X, choices]` → (`env.X`, `[choices]`)."""
    count = 2 if parts[0] in NESTED else 1
    return ".".join(parts[:count]), parts[count:]


def _remove(target: dict[str, Any], place: str, name: str, item: Override) -> None:
    if name not in target:
        raise ConfigError(
            f"~{item.key}: space.{place} has no {name}",
            did_you_mean(name, target, what=f"space.{place}"),
        )
    del target[name]


def _with(form: Any, inner: list[str], value: Any) -> dict[str, Any]:
    """`form` with the value at a path inside; a plain list counts as its choices."""
    changed = dict(form) if isinstance(form, Mapping) else {}
    if isinstance(form, list):
        changed = {"choices": form}
    changed[inner[0]] = value if len(inner) == 1 else _with(changed.get(inner[0]), inner[1:], value)
    return changed


def _contradicts(seed: Any, touched: set[str], space: SpaceConfig) -> bool:
    if not isinstance(seed, Mapping):
        return False
    return any(name in touched and not _allows(space, name, seed[name]) for name in seed)


def _allows(space: SpaceConfig, name: str, value: Any) -> bool:
    if name not in space.parameters:
        return False
    form = space.parameters[name]
    choices = form.get("choices") if isinstance(form, Mapping) else form
    if isinstance(choices, list):
        return value in choices
    ends = [form.get(end) for end in ("low", "high")] if isinstance(form, Mapping) else []
    numbers = [number for number in (*ends, value) if isinstance(number, (int, float))]
    return len(numbers) < 3 or numbers[0] <= numbers[2] <= numbers[1]
