"""By which rule one operating point is preferred to another. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sweeper.config.schema import SloConfig
from sweeper.pareto.front import knee

# Spans below which the knee does not tell points apart: 5 % in throughput and latency, and a tenth
# of the reference's tokens in quality.
_KNEE_MIN_SPANS = (0.05, 0.05, 0.1)
_UNMEASURED = float("inf")

Row = dict[str, Any]
Missed = dict[str, float | None]
"""Broken promise → how far beyond its limit (1.2 is 20 %), None if it was not measured."""


def limits(slo: SloConfig) -> dict[str, float]:
    """The promises that were made: name → value."""
    return {name: float(value) for name, value in vars(slo).items() if value is not None}


def misses(row: Mapping[str, Any], slo: Mapping[str, float]) -> Missed:
    """Broken promises of a point. A promise whose metric was not measured is broken.

    Where a point is the mean of several launches, each of them must keep the promise.
    """
    broken: Missed = {}
    for name, limit in slo.items():
        is_floor = name == "min_quality"
        value = row.get("quality") if is_floor else _worst(row, name)
        if value is None:
            broken[name] = None
        elif is_floor and value < limit:
            broken[name] = limit / value if value > 0 else None
        elif not is_floor and value > limit:
            broken[name] = value / limit
    return broken


def _worst(row: Mapping[str, Any], metric: str) -> float | None:
    """The highest figure of a point's launches."""
    told = [one["metrics"].get(metric) for one in row.get("repeats", ())] or [row.get(metric)]
    return None if None in told else max(told)


def lasting(rows: Sequence[Row]) -> list[Row]:
    """Points whose load the server could bear; all of them if it could bear none.

    Where requests come faster than they are served the queue grows for as long as they come. Such
    a point's latencies tell how long one measured, and nothing can be promised of them.
    """
    return [row for row in rows if not row.get("saturated")] or list(rows)


@dataclass(frozen=True)
class Rule:
    """How points are ranked. Applied to all of them, and to the baseline's alone."""

    slo: Mapping[str, float]
    prefer: str
    throughput: str
    latency: str

    def best(self, rows: Sequence[Row]) -> Row | None:
        """The best of the rows that keep the promises, None if none does."""
        keeping = [row for row in rows if not misses(row, self.slo)]
        if not keeping:
            return None
        return max(keeping, key=self._rank) if self.slo else self._knee(keeping)

    def nearest(self, rows: Sequence[Row]) -> Row:
        """The row whose worst broken promise is broken least."""

        def distance(row: Row) -> tuple[float, float]:
            far = [_UNMEASURED if f is None else f for f in misses(row, self.slo).values()]
            return max(far), -row[self.throughput]

        return min(rows, key=distance)

    def _rank(self, row: Row) -> tuple[float, ...]:
        throughput, latency = row[self.throughput], -row[self.latency]
        quality = row.get("quality_settled", 0.0)
        return {
            "throughput": (throughput, latency, quality),
            "latency": (latency, throughput, quality),
            "quality": (quality, throughput, latency),
        }[self.prefer]

    def _knee(self, rows: Sequence[Row]) -> Row | None:
        with_quality = all("quality_settled" in row for row in rows)
        columns = [self.throughput, self.latency, *(["quality_settled"] if with_quality else [])]
        found = knee(
            [[row[column] for column in columns] for row in rows],
            [1, -1, 1][: len(columns)],
            log_axes=[True, True, False][: len(columns)],
            min_spans=_KNEE_MIN_SPANS[: len(columns)],
        )
        return None if found is None else rows[found]
