"""Parents before children, and conditions that can hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from typing import Any

from sweeper.config.suggest import nearest
from sweeper.errors import ConfigError
from sweeper.space.forms import fault
from sweeper.space.model import Parameter


def in_order(parameters: Sequence[Parameter], fixed: Mapping[str, Any]) -> tuple[Parameter, ...]:
    """The parameters sorted so that parents come first, otherwise as given.

    Raises:
        ConfigError: a condition on something that is not there, on values that cannot occur, or
            in a circle.
    """
    by_name = {parameter.name: parameter for parameter in parameters}
    for parameter in parameters:
        for parent, values in parameter.when.items():
            _check_condition(parameter.name, parent, values, by_name, fixed)
    depth = _depths(by_name)
    return tuple(sorted(parameters, key=lambda parameter: depth[parameter.name]))


def _check_condition(
    child: str,
    parent: str,
    values: tuple[Any, ...],
    by_name: Mapping[str, Parameter],
    fixed: Mapping[str, Any],
) -> None:
    where = f"space.parameters.{child}.when"
    if parent in fixed:
        return  # the branch may be closed by a fixed value; that is a choice, not a fault
    if parent not in by_name:
        close = nearest(parent, set(by_name) - {child})
        remedy = f"did you mean {close}?" if close else f"add {parent} to space.parameters"
        raise fault(where, f"{parent} is not a parameter of this space", remedy)
    choices = by_name[parent].values
    impossible = [value for value in values if choices is not None and value not in choices]
    if len(impossible) == len(values):
        raise fault(
            where,
            f"{parent} is never {' or '.join(map(str, impossible))}",
            f"add it to space.parameters.{parent}.choices, or remove {child}",
        )


def _depths(by_name: Mapping[str, Parameter]) -> dict[str, int]:
    graph = {
        name: [parent for parent in parameter.when if parent in by_name]
        for name, parameter in by_name.items()
    }
    try:
        order = list(TopologicalSorter(graph).static_order())
    except CycleError as error:
        circle = " → ".join(error.args[1])
        raise ConfigError(
            f"space.parameters: conditions go in a circle: {circle}", "remove one `when` of them"
        ) from error
    depths: dict[str, int] = {}
    for name in order:
        depths[name] = 1 + max((depths[parent] for parent in graph[name]), default=-1)
    return depths
