"""How far the nearest point is from a promise that nothing keeps, limit by limit. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sweeper.pareto.rule import Limits, Row, excess, figure_of, is_floor


@dataclass(frozen=True)
class Shortfall:
    """One limit of a promise, at the point that comes nearest to keeping it whole.

    Attributes:
        name: of the limit, as in `SloConfig`.
        limit: what was asked.
        value: what the point has; None if it was not measured.
        factor: how far that is beyond the limit (1.2 is 20 %), at most 1 where it is kept; None
            where that cannot be said.
        best: the best that any point has of it, whatever else it breaks; None if none measured it.
        best_trial, best_level: which point that is.
    """

    name: str
    limit: float
    value: float | None
    factor: float | None
    best: float | None = None
    best_trial: int | None = None
    best_level: str | None = None

    @property
    def is_kept(self) -> bool:
        """Whether the point keeps this limit."""
        return self.factor is not None and self.factor <= 1

    @property
    def is_within_reach(self) -> bool:
        """Whether some point keeps this limit, if not the others."""
        found = excess(self.best, self.name, self.limit)
        return found is not None and found <= 1


def shortfalls(point: Row, rows: Sequence[Row], slo: Limits) -> tuple[Shortfall, ...]:
    """Every limit in the order asked.

    Args:
        point: the nearest.
        rows: all points that may be chosen.
        slo: the promise.
    """
    return tuple(_one(point, rows, name, limit) for name, limit in slo.items())


def _one(point: Row, rows: Sequence[Row], name: str, limit: float) -> Shortfall:
    value = figure_of(point, name)
    known = [(figure, row) for row in rows if (figure := figure_of(row, name)) is not None]
    told = Shortfall(name, limit, value, excess(value, name, limit))
    if not known:
        return told
    best = (max if is_floor(name) else min)(known, key=lambda one: one[0])
    figure, row = best
    return Shortfall(name, limit, value, told.factor, figure, int(row["trial"]), str(row["level"]))
