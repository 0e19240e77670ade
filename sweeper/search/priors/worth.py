"""Predictions on the study's own scale: calibrated by its baseline, judged by its objective. Pure.

A predicted metric is multiplied by what the baseline measured over what was predicted of the
baseline, level by level. So a prior need not know how fast the machine is, only what a deployment
changes; and a throughput of another GPU can be held against a promise for this one.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from sweeper.config.schema import ObjectiveConfig, SweeperConfig
from sweeper.load.level import level_name
from sweeper.search.objective import Objective, load_curve, log_hypervolume
from sweeper.search.priors.prior import PredictedPoint, Prediction
from sweeper.trial.outcome import Point, TrialOutcome
from sweeper.verdicts import Phase, Verdict

Ratios = Mapping[tuple[str, str], float]
"""(level, metric) → measured over predicted."""


def ratios(predicted: Prediction | None, measured: TrialOutcome) -> dict[tuple[str, str], float]:
    """What one trial measured over what was predicted of it; only what both have, above 0."""
    if predicted is None:
        return {}
    seen = {point.level: point.metrics for point in measured.valid_points}
    return {
        (level, name): seen[level][name] / value
        for point in predicted.points
        if (level := level_name(point.load)) in seen
        for name, value in point.metrics.items()
        if value > 0 and seen[level].get(name, 0.0) > 0
    }


def as_points(prediction: Prediction, scale: Ratios) -> list[Point]:
    """A prediction in the form of measured points, calibrated.

    A level that the baseline did not reach takes the metric's mean ratio over the others.
    """
    mean = _mean_ratios(scale)
    return [_as_point(point, scale, mean) for point in prediction.points]


def _as_point(point: PredictedPoint, scale: Ratios, mean: Mapping[str, float]) -> Point:
    level = level_name(point.load)
    metrics = {
        name: value * scale.get((level, name), mean.get(name, 1.0))
        for name, value in point.metrics.items()
    }
    return Point(dict(point.load), metrics, {}, 0, True)


def _mean_ratios(scale: Ratios) -> dict[str, float]:
    logs: dict[str, list[float]] = {}
    for (_, name), ratio in scale.items():
        logs.setdefault(name, []).append(math.log(ratio))
    return {name: math.exp(math.fsum(found) / len(found)) for name, found in logs.items()}


class Worth:
    """What load curves are worth to a study, measured and predicted ones alike.

    Quality is left out: no prior knows it.

    Args:
        cfg: the study's configuration.
        baseline: measured; what everything is held against.
    """

    def __init__(self, cfg: SweeperConfig, baseline: TrialOutcome) -> None:
        self._cfg = _without_quality(cfg.objective)
        self._objective = Objective(self._cfg, cfg.select.slo, cfg.load, with_quality=False)
        if self._cfg.kind == "frontier":
            self._objective.anchor(baseline)
        self._signs = [1 if way == "maximize" else -1 for way in self._objective.directions]

    def of(self, points: Sequence[Point]) -> float | None:
        """One number, more is better: the objective's value, or the mean of the logarithms of
        several, each with its sign. Below all of these for a missed promise, by how far it was
        missed. None if the points do not tell.
        """
        told = self._objective.tell(_outcome(points))
        if told.values is None:
            is_graded = told.violation > 0 and self._signs == [1]
            return -told.violation if is_graded else None
        if len(told.values) == 1:
            return self._signs[0] * told.values[0]
        if min(told.values) <= 0:
            return None
        parts = zip(self._signs, told.values, strict=True)
        return math.fsum(sign * math.log(value) for sign, value in parts) / len(told.values)

    def area(self, points: Iterable[Point]) -> float | None:
        """Area that points of several trials dominate together; None for other objectives."""
        corner = self._objective.corner
        if corner is None:
            return None
        return log_hypervolume(load_curve(list(points), self._cfg), corner)

    def outline(self, points: Iterable[Point]) -> list[Point]:
        """Those of many points that alone make up their area; all for other objectives."""
        if self._objective.corner is None:
            return list(points)
        names = self._cfg.throughput_metric, self._cfg.latency_metric
        whole = [point for point in points if all(name in point.metrics for name in names)]
        kept: list[Point] = []
        best = -math.inf
        for point in sorted(whole, key=lambda p: (p.metrics[names[1]], -p.metrics[names[0]])):
            if point.metrics[names[0]] > best:
                best = point.metrics[names[0]]
                kept.append(point)
        return kept


def _without_quality(cfg: ObjectiveConfig) -> ObjectiveConfig:
    return replace(cfg, metrics=[name for name in cfg.metrics if name[1:] != "quality"])


def _outcome(points: Sequence[Point]) -> TrialOutcome:
    """A trial of these points, as the objective wants to see one."""
    return TrialOutcome(
        number=0,
        kind="search",
        deployment={},
        deployment_hash="",
        verdict=Verdict.OK,
        phase=Phase.STOP,
        points=list(points),
    )
