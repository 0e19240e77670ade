"""The space that a list of deployments spans. Pure.

A parameter is a condition's child where exactly one other explains its absence: it is there if and
only if that other has certain values. A parameter that is missing without such a reason is at the
engine's default there, and one that every deployment has with the same value is fixed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sweeper.config.schema import SpaceConfig
from sweeper.engine.replay.rows import Deployment
from sweeper.space.model import ENGINE_DEFAULT

_PARENTS_FIRST = ("speculative", "quantization", "enable_chunked_prefill")
"""Where several parameters explain an absence equally, the one that opens branches by nature."""

MIN_GIVEN = 2
"""A parameter that one deployment gives goes with everything else of it: that explains nothing."""


def derived_space(
    deployments: Sequence[Deployment], baseline: Deployment, name: str = "table"
) -> SpaceConfig:
    """Parameters, values and conditions of which every deployment is a canonical member.

    Args:
        deployments: canonical, one at least.
        baseline: the one of them where a search begins: its values are the defaults of parameters
            that every deployment gives.
        name: of the space.
    """
    present = _present(deployments)
    fixed = {
        parameter: values[0]
        for parameter, values in present.items()
        if len(_distinct(values)) == 1 and len(values) == len(deployments)
    }
    order = sorted(
        (parameter for parameter in present if parameter not in fixed),
        key=lambda parameter: (-len(present[parameter]), _rank(parameter), parameter),
    )
    parameters: dict[str, Any] = {}
    for index, parameter in enumerate(order):
        parents = {name: "when" in parameters[name] for name in order[:index]}
        when = _condition(parameter, parents, deployments, len(present[parameter]))
        is_always_given = when is not None or len(present[parameter]) == len(deployments)
        choices = _sorted(_distinct(present[parameter]))
        form: dict[str, Any] = {"choices": choices, "required": is_always_given}
        if is_always_given:
            form["default"] = baseline.get(parameter, choices[0])
        else:
            form["choices"] = [ENGINE_DEFAULT, *choices]
        if when is not None:
            form["when"] = when
        parameters[parameter] = form
    return SpaceConfig(name=name, fixed=fixed, parameters=parameters)


def _present(deployments: Sequence[Deployment]) -> dict[str, list[Any]]:
    """Parameter → its value in every deployment that gives it."""
    found: dict[str, list[Any]] = {}
    for deployment in deployments:
        for parameter, value in deployment.items():
            found.setdefault(parameter, []).append(value)
    return found


def _rank(parameter: str) -> int:
    known = parameter in _PARENTS_FIRST
    return _PARENTS_FIRST.index(parameter) if known else len(_PARENTS_FIRST)


def _condition(
    child: str, parents: Mapping[str, bool], deployments: Sequence[Deployment], count: int
) -> dict[str, list[Any]] | None:
    """The one parameter whose values say exactly where `child` is given; None if none does.

    Args:
        child: the parameter.
        parents: those that may be its reason, those given most often first → whether they have a
            condition themselves. Where such a one is absent its branch is closed, and with it every
            branch below.
        deployments: all of them.
        count: how many give `child`.
    """
    if count == len(deployments) or count < MIN_GIVEN:
        return None
    for parent in sorted(parents, key=_rank):
        inside = {_value(one, parent) for one in deployments if child in one}
        outside = {_value(one, parent) for one in deployments if child not in one}
        closes = parents[parent] and ENGINE_DEFAULT in inside
        if not inside & outside and not closes:
            return {parent: _sorted(inside)}
    return None


def _value(deployment: Deployment, parameter: str) -> Any:
    return deployment.get(parameter, ENGINE_DEFAULT)


def _distinct(values: Sequence[Any]) -> list[Any]:
    return list(dict.fromkeys(values))


def _sorted(values: Iterable[Any]) -> list[Any]:
    """Numbers by size, the rest by name: so that the same table always gives the same space."""
    return sorted(values, key=_order)


def _order(value: Any) -> tuple[int, float, str]:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return (0, float(value), "") if is_number else (1, 0.0, str(value))
