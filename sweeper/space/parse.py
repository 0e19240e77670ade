"""`conf/space/*.yaml` → Space. Every fault names the key and the way out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sweeper.config.edits import flatten
from sweeper.config.schema import SpaceConfig
from sweeper.config.suggest import did_you_mean
from sweeper.errors import ConfigError
from sweeper.space.catalogue import (
    BOOL,
    KNOWN,
    NUMBER,
    PER_CHANNEL,
    SPECULATIVE_METHODS,
    is_free,
    is_neutral,
)
from sweeper.space.forms import fault, parse_form
from sweeper.space.model import Parameter, Space
from sweeper.space.order import in_order
from sweeper.space.seeds import read_seed


def parse_space(cfg: SpaceConfig) -> Space:
    """Read a space.

    Raises:
        ConfigError: an unknown parameter, an empty or doubtful form, a condition on something that
            is not there or goes in a circle, a seed outside the space.
    """
    forms = dict(flatten(cfg.parameters))
    fixed = dict(flatten(cfg.fixed))
    _check_names(forms, fixed)
    parameters = [parse_form(name, form) for name, form in forms.items()]
    for parameter in parameters:
        _check_values(parameter)
    _check_fixed(fixed)
    space = Space(
        name=cfg.name,
        parameters=in_order(parameters, fixed),
        fixed={name: value for name, value in fixed.items() if not is_neutral(name, value)},
    )
    seeds = tuple(read_seed(space, index, _flat_seed(seed)) for index, seed in enumerate(cfg.seeds))
    return Space(space.name, space.parameters, space.fixed, seeds)


def _flat_seed(seed: Any) -> Any:
    return dict(flatten(seed)) if isinstance(seed, Mapping) else seed


def _check_names(forms: Mapping[str, Any], fixed: Mapping[str, Any]) -> None:
    for group, names in (("parameters", forms), ("fixed", fixed)):
        for name in names:
            if name not in KNOWN and not is_free(name):
                raise _unknown(f"space.{group}", name)
    both = sorted(set(forms) & set(fixed))
    if both:
        raise ConfigError(
            f"{both[0]} stands both in space.parameters and in space.fixed",
            f"keep one: search it, or fix it (~space.fixed.{both[0]} removes the fixed value)",
        )


def _unknown(where: str, name: str) -> ConfigError:
    remedy = did_you_mean(name, KNOWN, what="parameters")
    if "." not in name:
        remedy += f"; any other engine flag is flag.{name}, an environment variable env.NAME"
    return ConfigError(f"{where} has an unknown parameter {name}", remedy)


def _check_values(parameter: Parameter) -> None:
    """Values that the parameter's nature excludes, whatever the engine."""
    for value in parameter.values or (parameter.low, parameter.high):
        if not is_neutral(parameter.name, value) and value != parameter.default:
            _check_value(parameter.name, value, f"space.parameters.{parameter.name}")


def _check_value(name: str, value: Any, where: str) -> None:
    kind = KNOWN.get(name)
    if kind == BOOL and not isinstance(value, bool):
        raise fault(where, f"{value!r} is neither true nor false", f"use {name}: true or false")
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if kind == NUMBER and not number and value != "auto":
        raise fault(where, f"{value!r} is not a number", "give numbers without quotes")
    if kind == NUMBER and number:
        _check_number(name, value, where)
    if name == "speculative" and value not in SPECULATIVE_METHODS:
        remedy = did_you_mean(str(value), SPECULATIVE_METHODS, what="methods")
        raise fault(where, f"unknown method {value!r}", remedy)


def _check_number(name: str, value: float, where: str) -> None:
    if name == "gpu_memory_utilization":
        if not 0 < value <= 1:
            raise fault(where, f"{value} is not a share", "give values above 0 and up to 1")
    elif (name, value) != PER_CHANNEL and (value < 1 or value != int(value)):
        raise fault(where, f"{value} is not a whole number from 1", "give whole numbers, 1 or more")


def _check_fixed(fixed: Mapping[str, Any]) -> None:
    for name, value in fixed.items():
        where = f"space.fixed.{name}"
        if isinstance(value, (Mapping, list, tuple)):
            raise fault(
                where, "takes one value", f"to search several: space.parameters.{name}={value}"
            )
        if not is_neutral(name, value):
            _check_value(name, value, where)
