"""Seeds: deployments to try first, checked against the space they belong to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sweeper.config.suggest import nearest
from sweeper.space.canonical import active
from sweeper.space.forms import fault
from sweeper.space.match import describe, match
from sweeper.space.model import Scalar, Space


def read_seed(space: Space, index: int, seed: Any) -> dict[str, Scalar]:
    """One entry of `space.seeds`, in the space's own values; what it does not name is at default.

    Raises:
        ConfigError: not a mapping, an unknown parameter, a value outside, a closed branch.
    """
    where = f"space.seeds[{index}]"
    if not isinstance(seed, Mapping):
        raise fault(where, "is not a mapping", "write a seed as {parameter: value, ...}")
    values = {str(name): _value(space, where, str(name), value) for name, value in seed.items()}
    present = active(space, values)
    for name in values:
        if name not in present:
            raise _closed(space, where, name)
    return values


def _value(space: Space, where: str, name: str, value: Any) -> Scalar:
    if name not in space.names:
        close = nearest(name, space.names)
        remedy = f"did you mean {close}? Or " if close else ""
        raise fault(
            where,
            f"{name} is not a parameter of this space",
            f"{remedy}add it to space.parameters, or take it out of the seed",
        )
    found = match(space[name], value)
    if found is None:
        raise fault(
            where,
            f"{name}={value} is outside space.parameters.{name} ({describe(space[name])})",
            "take a value from there, widen the parameter, or remove the seed (space.seeds=[])",
        )
    return found


def _closed(space: Space, where: str, name: str) -> Exception:
    conditions = " and ".join(
        f"{parent} is {' or '.join(map(str, allowed))}"
        for parent, allowed in space[name].when.items()
    )
    return fault(
        where,
        f"{name} only exists when {conditions}",
        "give the seed that value too, or take this one out",
    )
