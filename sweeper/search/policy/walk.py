"""A low-discrepancy walk through a space: `sampler=qmc`, and the model's first launches."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import islice
from typing import Any

from sweeper.space.canonical import canonical_of_active, deployment_hash, exists
from sweeper.space.model import INT, Parameter, Scalar, Space

Raw = dict[str, Any]

AT_ONCE = 64
LONGEST = 2**14
"""Points of a walk at most."""
ROUNDS = 8
"""Points for each deployment of a listed space: what they miss is found otherwise."""


class Walk:
    """Scrambled Sobol points as deployments, always the same for a seed.

    Args:
        space: what is walked through.
        seed: of the scrambling.
        size: number of its deployments, None if there are too many to count.
    """

    def __init__(self, space: Space, seed: int, size: int | None = None) -> None:
        self._space = space
        self._seed = seed
        self._length = LONGEST if size is None else min(LONGEST, ROUNDS * size)
        self._walked: list[tuple[str, Raw]] = []

    def __iter__(self) -> Iterator[tuple[str, Raw]]:
        """Hash and deployment of each point in order, repeated where points fall together."""
        index = 0
        while index < self._length and self._space.parameters:
            if index == len(self._walked):
                self._walked += islice(self._points, AT_ONCE)
            yield self._walked[index]
            index += 1

    @cached_property
    def _points(self) -> Iterator[tuple[str, Raw]]:
        from scipy.stats import qmc

        engine = qmc.Sobol(len(self._space.parameters), scramble=True, seed=self._seed)
        while True:
            for row in engine.random(AT_ONCE):
                deployment = deployment_at(self._space, [float(share) for share in row])
                yield deployment_hash(deployment), deployment


def deployment_at(space: Space, shares: Sequence[float]) -> Raw:
    """The canonical deployment whose parameters lie at these shares of their ranges."""
    return spoken(
        space,
        {one.name: at(one, share) for one, share in zip(space.parameters, shares, strict=True)},
    )


def spoken(space: Space, raw: Mapping[str, Scalar]) -> Raw:
    """The canonical form of full coordinates that are known to be the space's own."""
    values: dict[str, Scalar] = {}
    for parameter in space.parameters:
        if not parameter.when or exists(space, parameter, values):
            values[parameter.name] = raw[parameter.name]
    return canonical_of_active(space, values)


def at(parameter: Parameter, share: float) -> Scalar:
    """The value that lies at a share (0 to 1) of a parameter's choices or range."""
    choices = parameter.choices
    if choices:
        return choices[min(int(share * len(choices)), len(choices) - 1)]
    low, high = float(parameter.low or 0), float(parameter.high or 0)
    step = 1 if parameter.kind == INT and parameter.step is None else parameter.step
    if parameter.log:
        value = low * math.exp(share * math.log(high / low))
    elif step is not None:
        value = low + step * min(int(share * (round((high - low) / step) + 1)), (high - low) / step)
    else:
        value = low + share * (high - low)
    value = min(max(value, low), high)
    return round(value) if parameter.kind == INT else round(value, 12)
