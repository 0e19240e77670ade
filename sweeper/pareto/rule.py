"""By which rule one operating point is preferred to another. Pure.

Of the points that keep the limits (`SloConfig`), `select.prefer` chooses

throughput   the highest output tokens/s per device
latency      the lowest latency
quality      the best quality; where it cannot be told apart, the highest throughput
cost         the lowest cost per million output tokens, see `sweeper.pareto.cost`
balanced     the knee of their front, see below
auto         throughput where anything is promised, balanced where nothing is

What is equal goes by the other two of throughput, latency and quality.

`balanced` takes the knee (`sweeper.pareto.front.knee`): the point of the front at which throughput,
latency (both as logarithms) and quality, each scaled to the front's own span, add up to most. It is
where the front bends: past it a share of one costs more than a like share of the other. It lies on
the front, and no unit, price or weight enters it. Its one parameter is the front itself, so a point
that extends the front may move it; the point next to utopia, or the product of the two, would
depend on the front less, and on an idea of what a halved latency is worth instead.
"""

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
PER_DEVICE = "output_tokens_per_s_per_gpu"
"""What a device serves: the fewer seconds of it a token takes, the less it costs."""

Row = dict[str, Any]
Missed = dict[str, float | None]
"""Broken promise → how far beyond its limit (1.2 is 20 %), None if it was not measured."""
Limits = Mapping[str, float]
"""Name of a limit, as in `SloConfig` → its value."""


def limits(slo: SloConfig) -> dict[str, float]:
    """The promises that were made: name → value."""
    return {name: float(value) for name, value in vars(slo).items() if value is not None}


def is_floor(limit: str) -> bool:
    """Whether a limit is the least that is accepted; else it is the most."""
    return limit.startswith("min_")


def metric_of(limit: str) -> str:
    """The metric that a limit holds to: that of ``min_quality`` is ``quality``."""
    return limit.removeprefix("min_")


def excess(value: float | None, name: str, limit: float) -> float | None:
    """How far a figure is beyond its limit: 1.2 is 20 %, 1 and less keeps it.

    None if it was not measured; and for a floor that is missed by a figure of nothing, which is
    no multiple away from it.
    """
    if value is None:
        return None
    if not is_floor(name):
        return value / limit
    if value >= limit:
        return 1.0
    return limit / value if value > 0 else None


def misses(row: Mapping[str, Any], slo: Limits) -> Missed:
    """Broken promises of a point. A promise whose metric was not measured is broken.

    Where a point is the mean of several launches, each of them must keep the promise.
    """
    factors = {name: excess(figure_of(row, name), name, limit) for name, limit in slo.items()}
    return {name: factor for name, factor in factors.items() if factor is None or factor > 1}


def figure_of(row: Mapping[str, Any], name: str) -> float | None:
    """What a point has of a limit's metric: of several launches the worst; None if unmeasured."""
    metric = metric_of(name)
    if metric == "quality":  # of the deployment, not of a launch
        return row.get(metric)
    told = [one["metrics"].get(metric) for one in row.get("repeats", ())] or [row.get(metric)]
    if None in told:
        return None
    return float(min(told) if is_floor(name) else max(told))


def lasting(rows: Sequence[Row]) -> list[Row]:
    """Points whose load the server could bear; all of them if it could bear none.

    Where requests come faster than they are served the queue grows for as long as they come. Such
    a point's latencies tell how long one measured, and nothing can be promised of them.
    """
    return [row for row in rows if not row.get("saturated")] or list(rows)


@dataclass(frozen=True)
class Rule:
    """How points are ranked. Applied to all of them, and to the baseline's alone."""

    slo: Limits
    prefer: str
    throughput: str
    latency: str

    @property
    def preference(self) -> str:
        """What is preferred, ``auto`` resolved."""
        if self.prefer != "auto":
            return self.prefer
        return "throughput" if self.slo else "balanced"

    def best(self, rows: Sequence[Row]) -> Row | None:
        """The best of the rows that keep the promises, None if none does."""
        keeping = [row for row in rows if not misses(row, self.slo)]
        if not keeping:
            return None
        if self.preference == "balanced":
            return self._knee(keeping)
        return max(keeping, key=self._rank)

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
            "cost": (row.get(PER_DEVICE, throughput), latency, quality),
        }[self.preference]

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
