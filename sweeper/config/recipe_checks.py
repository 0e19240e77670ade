"""Checks of `quantize.*`: what is wrong with a recipe whatever the model and the machine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from sweeper.config.location import options
from sweeper.config.recipe_fields import (
    AUTO,
    ENGINE,
    FIELDS,
    NAMES,
    PREFIX,
    PUBLISHED,
    SEARCHED,
    TOOLS,
    Fields,
    allows,
    fields_of,
    listed,
    taking,
)
from sweeper.config.schema import RecipeConfig, SweeperConfig
from sweeper.config.suggest import did_you_mean, nearest
from sweeper.config.values import show
from sweeper.errors import ConfigError

DEVICES = ("auto", "cpu", "cuda")

_WORDS = ("none", "default", "auto", "checkpoints", "null")
"""Choices of `quantization` that mean something else."""

_NOT_SELECTED_BY_NAME = ("none", "online", PUBLISHED, "gguf", "awq", "gptq")
"""Shipped options whose name among the choices of `quantization` is, or may be, the engine's own
word, or none at all."""


def check_recipes(cfg: SweeperConfig) -> None:
    """Raise ConfigError for the first fault of a recipe, or of a parameter that searches one."""
    _settings(cfg)
    for name, recipe in cfg.quantize.recipes.items():
        check_recipe(name, recipe)
    for name, form in cfg.space.parameters.items():
        if name.startswith(PREFIX):
            _searched(name, form, cfg.quantize.recipes)
    for name, value in cfg.space.fixed.items():
        if name.startswith(PREFIX) and value != "default":
            _fixed(name, value)
    _unselected(cfg)


def check_recipe(name: str, recipe: RecipeConfig) -> None:
    """Check one recipe.

    Raises:
        ConfigError: an unknown tool or method, a field that it does not take, a value out of range.
    """
    where = f"quantize.recipes.{name}"
    if name in _WORDS:
        raise ConfigError(
            f"{where}: a recipe cannot be called {name}, which means something else as a value of "
            "quantization",
            "give it another name",
        )
    if recipe.tool not in NAMES:
        raise ConfigError(
            f"{where}.tool={recipe.tool} is not known",
            did_you_mean(recipe.tool, NAMES, what="tools"),
        )
    _method(where, name, recipe)
    _path(where, recipe)
    fields = fields_of(recipe)
    for field in FIELDS:
        value = getattr(recipe, field)
        if value is not None:
            _field(f"{where}.{field}", _maker(recipe), fields, field, value)


def _settings(cfg: SweeperConfig) -> None:
    quantize = cfg.quantize
    if quantize.device not in DEVICES:
        raise ConfigError(
            f"quantize.device={quantize.device} is not known",
            did_you_mean(quantize.device, DEVICES, what="values"),
        )
    if quantize.python is not None and not quantize.python.strip():
        raise ConfigError(
            "quantize.python is empty", "set the path of an interpreter, or leave it out"
        )
    for key in ("timeout_s", "memory_gib", "cache_limit_gib"):
        value = getattr(quantize, key)
        if value is not None and value <= 0:
            raise ConfigError(
                f"quantize.{key}={value:g} must be above 0",
                f"set quantize.{key}=1 or more, or leave it out",
            )


def _maker(recipe: RecipeConfig) -> str:
    return f"{recipe.tool} {recipe.method}" if recipe.method else recipe.tool


def _method(where: str, name: str, recipe: RecipeConfig) -> None:
    method = recipe.method
    if recipe.tool == ENGINE:
        if method is None:
            raise _no_method(where, name)
        return
    known = [word for word in TOOLS.get(recipe.tool, {}) if word is not None]
    if not known and method is not None:
        raise ConfigError(
            f"{where}.method={method}: {recipe.tool} has no methods to choose from",
            f"leave it out: {where}.method=null",
        )
    if known and method not in known:
        what = "is missing" if method is None else f"{method} is not known"
        raise ConfigError(
            f"{where}.method {what} for {recipe.tool}",
            did_you_mean(str(method), known, what="methods"),
        )


def _no_method(where: str, name: str) -> ConfigError:
    """Mostly a single key of a shipped recipe that was not chosen."""
    if name in options("quantize"):
        return ConfigError(
            f"{where} is set, but the recipe {name} is not chosen", f"add quantize={name}"
        )
    close = nearest(name, options("quantize"), cutoff=0.75)
    return ConfigError(
        f"{where} says neither a tool nor a method",
        f"did you mean quantize.recipes.{close}?"
        if close
        else f"set {where}.tool to one of {', '.join(NAMES)}, or {where}.method to the engine's "
        "name of an online method",
    )


def _path(where: str, recipe: RecipeConfig) -> None:
    if recipe.tool == PUBLISHED and not recipe.path:
        raise ConfigError(
            f"{where} has no path, so there is no checkpoint to serve",
            f"set {where}.path=FOLDER_OR_HUB_ID",
        )
    if recipe.tool != PUBLISHED and recipe.path is not None:
        raise ConfigError(
            f"{where}.path={recipe.path}: only a published checkpoint has a path",
            f"leave it out, or set {where}.tool={PUBLISHED}",
        )


def _field(where: str, maker: str, fields: Fields, field: str, value: Any) -> None:
    if field not in fields:
        takes = f"it takes {', '.join(fields)}" if fields else "it takes none of them"
        raise ConfigError(
            f"{where}={show(value, quote=False)}: {maker} takes no {field}",
            f"leave it out ({where}=null); {takes}",
        )
    if not allows(fields, field, value):
        allowed = fields[field]
        raise ConfigError(
            f"{where}={show(value, quote=False)} is not what {maker} takes",
            f"{_close(value, allowed)}it takes {listed(allowed)}",
        )
    if field.startswith("calibration_") and value < 1:
        raise ConfigError(f"{where}={value} must be above 0", f"set {where}=1 or more")
    if field == "calibration" and not str(value).strip():
        raise ConfigError(f"{where} is empty", f"set {where}=builtin, or the path of a file")


def _close(value: Any, allowed: tuple[Any, ...]) -> str:
    numbers = [one for one in allowed if isinstance(one, int) and not isinstance(one, bool)]
    if isinstance(value, bool) or not isinstance(value, int) or value < 1 or len(numbers) < 2:
        return ""
    return f"the nearest is {min(numbers, key=lambda one: abs(one - value))}; "


def _searched(name: str, form: Any, recipes: Mapping[str, RecipeConfig]) -> None:
    """A space parameter that changes a field of recipes."""
    where, field = f"space.parameters.{name}", name.removeprefix(PREFIX)
    if field not in SEARCHED:
        raise ConfigError(
            f"{where}: a recipe has no {field} to search",
            did_you_mean(field, SEARCHED, what="fields"),
        )
    takers = taking(recipes, field)
    if not takers:
        selected = f"{listed(recipes)} has no choice of it" if recipes else "no recipe is chosen"
        raise ConfigError(
            f"{where} is searched, but {selected}",
            f"choose one that has, for example quantize=w4a16, or take {name} out",
        )
    named = _named(form)
    for recipe in named:
        if recipe not in takers:
            raise ConfigError(
                f"{where}.when: {field} cannot be chosen where quantization is {recipe}",
                did_you_mean(recipe, takers, what="recipes that take it"),
            )
    _shape(where, form)
    for value in _values(form):
        if value is not None and value != "default":
            _searched_value(where, field, value, {one: recipes[one] for one in named or takers})


def _shape(where: str, form: Any) -> None:
    """The default is what each recipe says, so no number can name it."""
    keys = set(form) if isinstance(form, Mapping) else set()
    if keys & {"low", "high"}:
        raise ConfigError(f"{where} is a range", f"list its values: {where}=[a,b]")
    if isinstance(form, Mapping) and form.get("default", "default") != "default":
        raise ConfigError(
            f"{where}.default={form['default']}: by default a recipe's own value holds",
            f"leave it out, and set the recipe's: quantize.recipes.NAME.{where.rsplit('.', 1)[-1]}",
        )


def _fixed(name: str, value: Any) -> None:
    """What is fixed holds for every deployment, the unquantized baseline too."""
    field = name.removeprefix(PREFIX)
    raise ConfigError(
        f"space.fixed.{name}={show(value, quote=False)}: a recipe's field is fixed in the recipe",
        f"set quantize.recipes.NAME.{field}={show(value, quote=False)}",
    )


def _searched_value(
    where: str, field: str, value: Any, recipes: Mapping[str, RecipeConfig]
) -> None:
    """At least one recipe must take it; where another does not, the deployment is infeasible."""
    if value in (AUTO, "none"):
        raise ConfigError(
            f"{where}: {value} is no value to search",
            "leave it out: `default` is the recipe's own value",
        )
    for recipe in recipes.values():
        if allows(fields_of(recipe), field, value):
            break
    else:
        first = next(iter(recipes.values()))
        allowed = tuple(one for one in fields_of(first)[field] if one != AUTO)
        raise ConfigError(
            f"{where}: {show(value, quote=False)} is not what {_maker(first)} takes",
            f"{_close(value, allowed)}it takes {listed(allowed)}",
        )
    if field == "calibration_samples" and value < 1:
        raise ConfigError(f"{where}: {value} must be above 0", "give whole numbers, 1 or more")


def _named(form: Any) -> list[str]:
    """Recipes that the parameter's own condition names."""
    when = form.get("when") if isinstance(form, Mapping) else None
    listed_names = when.get("quantization", []) if isinstance(when, Mapping) else []
    return list(listed_names) if isinstance(listed_names, list) else [str(listed_names)]


def _values(form: Any) -> Iterator[Any]:
    """Choices or ends of a form; what is wrong with its shape, the space's parser says."""
    if isinstance(form, Mapping):
        choices = form.get("choices")
        yield from choices if isinstance(choices, list) else ()
    elif isinstance(form, list):
        yield from form


def _unselected(cfg: SweeperConfig) -> None:
    """Shipped recipes that are named among the choices, but not chosen."""
    form = cfg.space.parameters.get("quantization")
    fixed = cfg.space.fixed.get("quantization")
    known = {*cfg.quantize.recipes, *cfg.model.checkpoints}
    shipped = set(options("quantize")) - set(_NOT_SELECTED_BY_NAME)
    for value in [*_values(form), fixed]:
        if isinstance(value, str) and value in shipped and value not in known:
            raise ConfigError(
                f"quantization={value} is the name of a recipe that is not chosen",
                f"add quantize={value}",
            )
