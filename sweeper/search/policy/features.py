"""Deployments as coordinates: what is near in effect is near in number. Pure.

    numbers             one column, 0 to 1; logarithmic where the largest is 8 times the smallest
    numbers + default   the same, and a column that says "left to the engine"
    words, switches     one column a choice, of which any two lie at distance 1
    a closed branch     the middle of its columns: neither near nor far from any of its values

All columns of one parameter share one length scale, so a parameter counts or does not count as a
whole.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sweeper.space.canonical import exists
from sweeper.space.model import Parameter, Scalar, Space

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

LOG_FROM_RATIO = 8.0
CATEGORY = math.sqrt(0.5)
"""Height of a one in a column of a category: two categories then differ by a distance of 1."""
LEFT_OUT = 0.25
"""Distance that leaving a number to the engine adds to the number that the engine takes."""


@dataclass(frozen=True)
class _Axis:
    """One parameter's columns.

    Attributes:
        numbers: its lowest and highest number, None for words and switches.
        log: whether numbers are taken by their logarithm.
        words: choices that get a column each.
        engine_takes: number that stands for the engine's own choice, if the parameter has one.
    """

    numbers: tuple[float, float] | None
    log: bool
    words: tuple[Scalar, ...]
    engine_takes: float | None
    known: dict[tuple[type, Scalar | None], tuple[float, ...]] = field(default_factory=dict)

    @property
    def width(self) -> int:
        return (self.numbers is not None) + len(self.words)

    def columns(self, value: Scalar | None) -> tuple[float, ...]:
        """Coordinates of a value; None is a parameter that does not exist there."""
        key = (type(value), value)
        if key not in self.known:
            self.known[key] = tuple(self._columns(value))
        return self.known[key]

    def _columns(self, value: Scalar | None) -> list[float]:
        number = [] if self.numbers is None else [self._position(value)]
        height = CATEGORY if self.numbers is None else LEFT_OUT
        return [*number, *(height * (value == word) for word in self.words)]

    def _position(self, value: Scalar | None) -> float:
        if isinstance(value, str):
            value = self.engine_takes
        if value is None or self.numbers is None:
            return 0.5
        low, high = self.numbers
        if low == high:
            return 0.5
        number = min(max(float(value), low), high)
        if self.log:
            return math.log(number / low) / math.log(high / low)
        return (number - low) / (high - low)


class Features:
    """Coordinates of the deployments of a space.

    Args:
        space: what is searched.
        engine_takes: parameter → the number the engine takes where it is left out, if known.
    """

    def __init__(self, space: Space, engine_takes: Mapping[str, float] | None = None) -> None:
        self._space = space
        known = engine_takes or {}
        self._axes = [_axis(one, known.get(one.name)) for one in space.parameters]

    @property
    def names(self) -> list[str]:
        """Parameters, one a group of columns."""
        return list(self._space.names)

    @property
    def groups(self) -> list[int]:
        """Group (index into `names`) of each column."""
        return [index for index, axis in enumerate(self._axes) for _ in range(axis.width)]

    def of(self, deployments: Sequence[Mapping[str, Any]]) -> Floats:
        """Coordinates of canonical deployments, shape (deployments, columns)."""
        import numpy as np

        rows = [self._row(deployment) for deployment in deployments]
        return np.array(rows, dtype=float).reshape(len(rows), len(self.groups))

    def with_value(self, x: Floats, name: str, value: Scalar) -> Floats:
        """Coordinates with one parameter changed alone; its branch must be open in all of them."""
        changed = x.copy()
        index = self.names.index(name)
        own = [column for column, group in enumerate(self.groups) if group == index]
        changed[:, own] = self._axes[index].columns(value)
        return changed

    def _row(self, deployment: Mapping[str, Any]) -> list[float]:
        values = existing(self._space, deployment)
        return [
            column
            for parameter, axis in zip(self._space.parameters, self._axes, strict=True)
            for column in axis.columns(values.get(parameter.name))
        ]


def existing(space: Space, deployment: Mapping[str, Any]) -> dict[str, Scalar]:
    """Value of every parameter that exists in a canonical deployment, defaults filled in."""
    values: dict[str, Scalar] = {}
    for parameter in space.parameters:
        if not parameter.when or exists(space, parameter, values):
            values[parameter.name] = deployment.get(parameter.name, parameter.default)
    return values


def _axis(parameter: Parameter, engine_takes: float | None) -> _Axis:
    ends = [parameter.low, parameter.high] if not parameter.choices else list(parameter.choices)
    numbers = [float(v) for v in ends if isinstance(v, int | float) and not isinstance(v, bool)]
    words = [value for value in parameter.choices if isinstance(value, str | bool)]
    if len(numbers) < 2 or len(words) > 1:
        return _Axis(None, False, parameter.choices, None)
    low, high = min(numbers), max(numbers)
    log = parameter.log or (low > 0 and high / low >= LOG_FROM_RATIO)
    return _Axis((low, high), log, tuple(words), engine_takes)
