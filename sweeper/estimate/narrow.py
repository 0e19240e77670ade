"""Take out of a space what can never work here, so that no sampler spends a proposal on it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from sweeper.estimate.violation import Violation
from sweeper.space.canonical import canonical
from sweeper.space.model import CATEGORICAL, Parameter, Scalar, Space

Check = Callable[[Mapping[str, Any]], list[Violation]]
"""A canonical deployment → the rules it breaks (`rules.check` with the facts bound)."""


@dataclass(frozen=True)
class Dropped:
    """A choice that was taken out, and the rule that proves it."""

    parameter: str
    value: Scalar
    violation: Violation


def narrow(space: Space, check: Check) -> tuple[Space, list[Dropped]]:
    """Drop choices that break a rule alone, with everything else at its default.

    Only violations that involve no other parameter count: a choice that fails merely in combination
    stays. The engine's default always stays. Seeds that ask for a dropped choice go with it.

    Returns:
        The narrowed space and what was dropped.
    """
    dropped = [
        Dropped(parameter.name, value, violation)
        for parameter in space.parameters
        if parameter.kind == CATEGORICAL
        for value in parameter.choices
        if (violation := _alone(space, parameter, value, check)) is not None
    ]
    gone = {(item.parameter, item.value) for item in dropped}
    parameters = tuple(_without(parameter, gone) for parameter in space.parameters)
    seeds = tuple(seed for seed in space.seeds if not gone & set(seed.items()))
    return replace(space, parameters=parameters, seeds=seeds), dropped


def _alone(space: Space, parameter: Parameter, value: Scalar, check: Check) -> Violation | None:
    if value == parameter.default or parameter.when:
        return None
    for violation in check(canonical(space, {parameter.name: value})):
        if violation.parameters == (parameter.name,):
            return violation
    return None


def _without(parameter: Parameter, gone: set[tuple[str, Scalar]]) -> Parameter:
    if parameter.kind != CATEGORICAL:
        return parameter
    left = tuple(value for value in parameter.choices if (parameter.name, value) not in gone)
    return replace(parameter, choices=left)
