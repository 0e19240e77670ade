"""How far a search of a table fell short of the table's best. Pure.

Only where every deployment has been measured already can anybody know what a search missed. Both
sides are judged alike: at the study's load levels, by its metrics and its promise, with the corner
of its own baseline.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sweeper.config.schema import ObjectiveConfig, SloConfig
from sweeper.config.select_checks import has_latency_limit
from sweeper.engine.replay.rows import Level, Row
from sweeper.engine.replay.table import Table
from sweeper.search.objective import corner_from_baseline, load_curve, log_hypervolume, slo_excess
from sweeper.trial.outcome import Point, TrialOutcome
from sweeper.verdicts import Verdict


@dataclass(frozen=True)
class Best:
    """The highest throughput that keeps the promise, if there is one.

    Attributes:
        value: of the objective's throughput metric.
        deployment: that reaches it.
        level: at which load.
    """

    value: float
    deployment: Mapping[str, Any]
    level: str


@dataclass(frozen=True)
class Regret:
    """What a search found, and what there was to find.

    Attributes:
        launches: of the search.
        deployments: that the table would have launched.
        volume, volume_in_table: area dominated by all points in (log throughput, log latency),
            nats², against the study's own corner.
        found, in_table: the best points; None where none keeps the promise.
        metric: what `Best.value` is.
        promised: whether there is a promise to keep.
    """

    launches: int
    deployments: int
    volume: float
    volume_in_table: float
    found: Best | None
    in_table: Best | None
    metric: str
    promised: bool

    @property
    def volume_share(self) -> float:
        """Of the table's hypervolume, what was found."""
        return self.volume / self.volume_in_table if self.volume_in_table > 0 else 1.0


def regret(
    outcomes: Sequence[TrialOutcome], table: Table, objective: ObjectiveConfig, slo: SloConfig
) -> Regret | None:
    """Compare a study with the whole table; None if its baseline was not measured.

    Args:
        outcomes: of the study.
        table: that it searched.
        objective: names the metrics.
        slo: promises at P95.
    """
    baseline = next(
        (
            one
            for one in outcomes
            if one.kind == "baseline" and load_curve(one.valid_points, objective)
        ),
        None,
    )
    if baseline is None:
        return None
    corner = corner_from_baseline(baseline, objective)
    found = [
        (point, outcome.deployment)
        for outcome in outcomes
        if outcome.verdict is Verdict.OK
        for point in outcome.valid_points
    ]
    levels = {point.level for outcome in outcomes for point in outcome.points}
    everything = list(_points(table.rows, levels))
    return Regret(
        launches=sum(outcome.launched for outcome in outcomes),
        deployments=sum(row.launched for row in table.rows),
        volume=log_hypervolume(load_curve([one for one, _ in found], objective), corner),
        volume_in_table=log_hypervolume(
            load_curve([one for one, _ in everything], objective), corner
        ),
        found=_best(found, objective.throughput_metric, slo),
        in_table=_best(everything, objective.throughput_metric, slo),
        metric=objective.throughput_metric,
        promised=has_latency_limit(slo),
    )


def _points(rows: Iterable[Row], levels: set[str]) -> Iterator[tuple[Point, Mapping[str, Any]]]:
    """Valid points of the table at load levels that the study asked for."""
    for row in rows:
        for level in row.levels if row.verdict is Verdict.OK else ():
            point = _point(level)
            if point.valid and point.level in levels:
                yield point, row.deployment


def _point(level: Level) -> Point:
    asked = {
        "kind": level.kind,
        "concurrency": level.concurrency,
        "rate_per_s": level.rate_per_s,
    }
    told = {name: value for name, value in asked.items() if value is not None}
    return Point(told, dict(level.metrics), {}, level.n, not level.reasons)


def _best(
    points: Iterable[tuple[Point, Mapping[str, Any]]], metric: str, slo: SloConfig
) -> Best | None:
    kept = [
        Best(point.metrics[metric], deployment, point.level)
        for point, deployment in points
        if metric in point.metrics and slo_excess(point, slo) <= 0
    ]
    return max(kept, key=lambda best: best.value, default=None)
