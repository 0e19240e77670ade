"""From what is known of some deployments to all others: the mean of the nearest ones. Pure.

A distance counts parameters that differ: 1 for words and switches, for numbers the share of the
way between the least and the largest. Metrics are averaged as logarithms, because what a flag
changes it changes by a factor. One that is known itself is its own answer.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sweeper.load.level import level_name
from sweeper.search.priors.prior import Deployment, PredictedPoint, Prediction

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

NEAREST = 6
FAREST = 2.0
"""Beyond this nothing is inferred."""
AT_ONCE = 1_000
"""Deployments whose distances are held at a time."""


class Neighbours:
    """Known curves, and what they say of deployments near them.

    Args:
        known: canonical deployments and their predictions; at least one.
        names: parameters that count; None takes all that occur.
        defaults: parameter → its value where a deployment does not name it.
    """

    def __init__(
        self,
        known: Sequence[tuple[Deployment, Prediction]],
        names: Iterable[str] | None = None,
        defaults: Mapping[str, Any] | None = None,
    ) -> None:
        self._defaults = dict(defaults or {})
        found = {name for deployment, _ in known for name in deployment}
        self._names = sorted(found if names is None else names)
        self._predictions = [prediction for _, prediction in known]
        self._rows = [self._row(deployment) for deployment, _ in known]
        self._loads: dict[str, Mapping[str, Any]] = {}
        self._cells: dict[tuple[str, str], int] = {}
        self._logs = self._table()

    def predict(self, deployments: Sequence[Deployment]) -> list[Prediction | None]:
        """The curve of each deployment: its own if it is known, else inferred and marked so."""
        rows = [self._row(deployment) for deployment in deployments]
        parts = (rows[start : start + AT_ONCE] for start in range(0, len(rows), AT_ONCE))
        return [answer for part in parts for answer in self._answers(part)]

    def _row(self, deployment: Deployment) -> tuple[Any, ...]:
        return tuple(deployment.get(name, self._defaults.get(name)) for name in self._names)

    def _table(self) -> Floats:
        """Logarithms of all known figures, shape (known, cells); NaN where there is none."""
        import numpy as np

        entries: list[tuple[int, int, float]] = []
        for row, prediction in enumerate(self._predictions):
            for point in prediction.points:
                level = level_name(point.load)
                self._loads.setdefault(level, point.load)
                for name, value in point.metrics.items():
                    if value > 0:
                        cell = self._cells.setdefault((level, name), len(self._cells))
                        entries.append((row, cell, math.log(value)))
        table = np.full((len(self._predictions), len(self._cells)), math.nan)
        for row, cell, value in entries:
            table[row, cell] = value
        return table

    def _answers(self, rows: Sequence[tuple[Any, ...]]) -> list[Prediction | None]:
        import numpy as np

        apart = self._distances(rows)
        order = np.argsort(apart, axis=1, kind="stable")[:, :NEAREST]
        near = np.take_along_axis(apart, order, axis=1)
        return [self._one(order[i], near[i]) for i in range(len(rows))]

    def _one(self, order: NDArray[np.intp], near: Floats) -> Prediction | None:
        import numpy as np

        within = near <= FAREST
        if not within.any():
            return None
        same = order[near == 0.0]
        if len(same) == 1:
            own: Prediction = self._predictions[int(same[0])]
            return own
        chosen = same if len(same) else order[within]
        weights = np.ones(len(same)) if len(same) else 1.0 / near[within] ** 2
        logs = self._logs[chosen]
        seen = np.where(np.isnan(logs), 0.0, weights[:, None])
        total = seen.sum(axis=0)
        mean = (seen * np.nan_to_num(logs)).sum(axis=0) / np.where(total > 0, total, 1.0)
        return self._prediction(np.where(total > 0, np.exp(mean), math.nan), not len(same))

    def _prediction(self, figures: Floats, inferred: bool) -> Prediction:
        metrics: dict[str, dict[str, float]] = {}
        for (level, name), cell in self._cells.items():
            if not math.isnan(figures[cell]):
                metrics.setdefault(level, {})[name] = float(figures[cell])
        points = (PredictedPoint(self._loads[level], found) for level, found in metrics.items())
        return Prediction(tuple(points), inferred)

    def _distances(self, rows: Sequence[tuple[Any, ...]]) -> Floats:
        """Shape (rows, known): by column a table of the values that occur, looked up."""
        import numpy as np

        apart = np.zeros((len(rows), len(self._rows)))
        for column in range(len(self._names)):
            own, known = [row[column] for row in rows], [row[column] for row in self._rows]
            span = _span(known)
            here, there = _Codes(own), _Codes(known)
            table = np.array([[_apart(a, b, span) for b in there.values] for a in here.values])
            apart += table[np.ix_(here.codes, there.codes)]
        return apart


class _Codes:
    """A column as the values that occur and an index into them; 1 and true are kept apart."""

    def __init__(self, column: Sequence[Any]) -> None:
        places: dict[tuple[type, Any], int] = {}
        self.codes = [places.setdefault((type(value), value), len(places)) for value in column]
        self.values = [value for _, value in places]


def _span(column: Sequence[Any]) -> float | None:
    """Between the least and the largest number of a column, None if there are not two."""
    numbers = {number for value in column if (number := _number(value)) is not None}
    return max(numbers) - min(numbers) if len(numbers) > 1 else None


def _apart(one: Any, other: Any, span: float | None) -> float:
    if type(one) is type(other) and one == other:
        return 0.0
    a, b = _number(one), _number(other)
    if a is None or b is None:
        return 1.0
    if a == b:
        return 0.0
    return 1.0 if span is None else min(1.0, abs(a - b) / span)


def _number(value: Any) -> float | None:
    """On the scale that distances are taken on: sizes by their logarithm, shares as they are."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return math.log2(value) if value > 1 else float(value)
