"""Does a value belong to a parameter, and how is it written there?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sweeper.space.catalogue import is_neutral
from sweeper.space.model import Parameter, Scalar


def match(parameter: Parameter, value: Any) -> Scalar | None:
    """The parameter's own value that equals `value`, or None if there is none.

    Words that mean the engine's default match the default; 8192.0 matches 8192.
    """
    if is_neutral(parameter.name, value):
        return None if parameter.required else parameter.default
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return next((v for v in parameter.values or () if same(v, value)), None)
    return _match_number(parameter, value)


def _match_number(parameter: Parameter, value: float) -> Scalar | None:
    values: Sequence[Scalar] | None = parameter.values
    if values is not None:
        return next((v for v in values if same(v, value)), None)
    low, high = parameter.low, parameter.high
    inside = low is not None and high is not None and low <= value <= high
    return float(value) if inside else None


def same(one: Any, other: Any) -> bool:
    """Equality that keeps true apart from 1, and forgives the last bits of a float."""
    if isinstance(one, bool) or isinstance(other, bool) or isinstance(one, str):
        return type(one) is type(other) and bool(one == other)
    if isinstance(other, str):
        return False
    return bool(abs(one - other) <= 1e-9 * max(abs(one), abs(other)))


def describe(parameter: Parameter) -> str:
    """A parameter's values in a few words."""
    if parameter.choices:
        return ", ".join(str(choice) for choice in parameter.choices)
    return f"{parameter.low} to {parameter.high}"
