"""The canonical form of a deployment: what is really different, once.

raw coordinates
    → active(): closed branches dropped, defaults filled in
    → canonical(): defaults dropped, fixed values added, sorted
    → deployment_hash(): 12 hex digits
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sweeper.space.catalogue import is_neutral
from sweeper.space.match import describe, match
from sweeper.space.model import ENGINE_DEFAULT, Parameter, Raw, Scalar, Space


def active(space: Space, raw: Mapping[str, Any]) -> Raw:
    """Every parameter that exists at these coordinates; what `raw` does not name is at its default.

    Raises:
        ValueError: a name or value that is not of the space.
    """
    _refuse_strangers(space, raw)
    values: Raw = {}
    for parameter in space.parameters:  # parents stand first
        if exists(space, parameter, values):
            values[parameter.name] = _own_value(parameter, raw)
    return values


def exists(space: Space, parameter: Parameter, values: Mapping[str, Any]) -> bool:
    """True if the parameter's conditions hold, given the values of its parents.

    A parent that does not exist closes the branch; one that is fixed at the engine's default counts
    as that default.
    """
    return all(
        (parent in values or parent not in space.names)
        and _holds(parent, values.get(parent, space.fixed.get(parent, ENGINE_DEFAULT)), allowed)
        for parent, allowed in parameter.when.items()
    )


def _holds(parent: str, value: Scalar, allowed: tuple[Scalar, ...]) -> bool:
    if value in allowed:
        return True
    return is_neutral(parent, value) and any(is_neutral(parent, other) for other in allowed)


def canonical(space: Space, raw: Mapping[str, Any]) -> Raw:
    """Fixed and active non-default values, sorted by name: equal deployments give equal results.

    Raises:
        ValueError: a name or value that is not of the space.
    """
    return canonical_of_active(space, active(space, raw))


def canonical_of_active(space: Space, present: Mapping[str, Any]) -> Raw:
    """`canonical` of what `active` gives, or of values that need no check."""
    values = dict(space.fixed)
    recipe = present.get("quantization")
    for parameter in space.parameters:
        name = parameter.name
        if name not in present:
            continue
        value = present[name]
        if not parameter.is_default(value) and not parameter.is_own(value, recipe):
            values[name] = value
    return dict(sorted(values.items()))


def deployment_hash(parameters: Mapping[str, Any]) -> str:
    """12 hex digits of a canonical deployment; the order of its keys does not matter."""
    text = json.dumps(dict(parameters), sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def baseline(space: Space) -> Raw:
    """Full raw coordinates of the engine's defaults (closed branches at their first value)."""
    return {parameter.name: parameter.default for parameter in space.parameters}


def as_raw(space: Space, deployment: Mapping[str, Any]) -> Raw:
    """Canonical form → a value for every parameter, its default where the form says nothing."""
    return {name: deployment.get(name, value) for name, value in baseline(space).items()}


def size(space: Space) -> int | None:
    """Number of distinct deployments, None if a dimension is continuous."""
    if space.listed is not None:
        return len(_listed_inside(space, space.listed))
    if any(parameter.values is None for parameter in space.parameters):
        return None
    parents = {parent for parameter in space.parameters for parent in parameter.when}
    total = 0
    for values in _branches(space, [p for p in space.parameters if p.name in parents]):
        count = 1
        for parameter in space.parameters:
            if parameter.name not in parents and exists(space, parameter, values):
                count *= len(_different(parameter, values))
        total += count
    return total


def enumerate_canonical(space: Space, limit: int) -> list[Raw] | None:
    """All distinct canonical deployments, None if more than `limit` or a continuum.

    Those of a space that lists its own are in memory already: they are all given, whatever `limit`.
    """
    if space.listed is not None:
        return _listed_inside(space, space.listed)
    total = size(space)
    if total is None or total > limit:
        return None
    branches = _branches(space, list(space.parameters))
    return [canonical_of_active(space, values) for values in branches]


def contains(space: Space, deployment: Mapping[str, Any]) -> bool:
    """Whether a canonical deployment is one of the space's combinations."""
    try:
        return canonical(space, as_raw(space, deployment)) == deployment
    except ValueError:
        return False


def _listed_inside(space: Space, listed: Sequence[Raw]) -> list[Raw]:
    """The listed deployments that the space, which may have been narrowed, still has."""
    return [deployment for deployment in listed if contains(space, deployment)]


def _branches(space: Space, parameters: list[Parameter]) -> Iterator[Raw]:
    """All assignments of these parameters, each only where it exists."""

    def extend(index: int, values: Raw) -> Iterator[Raw]:
        if index == len(parameters):
            yield dict(values)
            return
        parameter = parameters[index]
        if not exists(space, parameter, values):
            yield from extend(index + 1, values)
            return
        for value in _different(parameter, values):
            yield from extend(index + 1, {**values, parameter.name: value})

    yield from extend(0, {})


def _different(parameter: Parameter, values: Mapping[str, Any]) -> list[Scalar]:
    """A parameter's values without the one that says by itself what its default says here."""
    recipe = values.get("quantization")
    return [value for value in parameter.values or () if not parameter.is_own(value, recipe)]


def _refuse_strangers(space: Space, raw: Mapping[str, Any]) -> None:
    for name, value in raw.items():
        if name not in space.names and name not in space.fixed:
            raise ValueError(f"{name} is not a parameter of space {space.name}")
        if name in space.fixed and name not in space.names and value != space.fixed[name]:
            raise ValueError(f"{name} is fixed to {space.fixed[name]} in space {space.name}")


def _own_value(parameter: Parameter, raw: Mapping[str, Any]) -> Scalar:
    if parameter.name not in raw:
        return parameter.default
    value = match(parameter, raw[parameter.name])
    if value is None:
        raise ValueError(
            f"{parameter.name}={raw[parameter.name]!r} is outside ({describe(parameter)})"
        )
    return value
