"""What the sampler is told of a launch. Pure.

Whatever is chosen here, every metric of every point is journalled; the objective only steers.

`frontier`: area dominated by the trial's load curve in the plane of log throughput (up) and log
latency (down), against a fixed corner taken from the baseline. One launch gives one number, in
nats², that grows when any part of the curve moves out. Natural logarithms make a gain of 10 % worth
the same at every load.

A launch that was cut short is told as what it may have been at best: what was measured, and for
the levels that were not, the bound by which it was cut; never more than the best whole trial had.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from sweeper.config.schema import LoadConfig, ObjectiveConfig, SloConfig
from sweeper.errors import StudyError
from sweeper.pareto.rule import is_floor, limits, metric_of
from sweeper.search.level import LevelChoice
from sweeper.trial.cutting import CEILING, OPTIMISTIC, QUALITY_AT_MOST
from sweeper.trial.outcome import Point, QualityScore, TrialOutcome
from sweeper.verdicts import Verdict

# The corner lies this factor below the baseline's lowest throughput and above its highest latency,
# so that a deployment worse than the baseline still gets a graded answer.
CORNER_MARGIN = 4.0
ONLY_LEVEL = "its only level"


@dataclass(frozen=True)
class Told:
    """What Optuna is told of one trial.

    Attributes:
        values: one an objective, in the order of `Objective.names`; None where the trial gives
            none (it is then pruned with `violation`).
        violation: positive if the trial is infeasible, by how much where that is known.
    """

    values: tuple[float, ...] | None
    violation: float


@dataclass(frozen=True)
class Corner:
    """Fixed reference of the frontier objective, from the baseline's load curve."""

    throughput: float
    latency_ms: float


def corner_from_baseline(outcome: TrialOutcome, cfg: ObjectiveConfig) -> Corner:
    """The corner that all trials of a study are measured against.

    Raises:
        StudyError: no valid point of the baseline has both metrics.
    """
    curve = load_curve(outcome.valid_points, cfg)
    if not curve:
        raise StudyError(
            f"the baseline has no valid point with {cfg.throughput_metric} and "
            f"{cfg.latency_metric}, which the objective compares",
            "choose other objective.throughput_metric and objective.latency_metric; "
            "trials.jsonl lists what was measured",
        )
    return Corner(
        throughput=min(throughput for throughput, _ in curve) / CORNER_MARGIN,
        latency_ms=max(latency for _, latency in curve) * CORNER_MARGIN,
    )


def load_curve(points: Sequence[Point], cfg: ObjectiveConfig) -> list[tuple[float, float]]:
    """(throughput, latency in ms) of each point that has both."""
    return [
        (point.metrics[cfg.throughput_metric], point.metrics[cfg.latency_metric])
        for point in points
        if cfg.throughput_metric in point.metrics and cfg.latency_metric in point.metrics
    ]


def log_hypervolume(curve: Sequence[tuple[float, float]], corner: Corner) -> float:
    """Area dominated by a load curve in (log throughput, log latency), nats².

    A sweep from the lowest latency up: each point adds the strip between its latency and the next
    one's, as high as the best throughput reached so far.
    """
    inside = sorted(
        (math.log(latency), math.log(throughput))
        for throughput, latency in curve
        if throughput > corner.throughput and latency < corner.latency_ms
    )
    floor, right = math.log(corner.throughput), math.log(corner.latency_ms)
    area = 0.0
    best = floor
    for index, (latency, throughput) in enumerate(inside):
        best = max(best, throughput)
        next_latency = inside[index + 1][0] if index + 1 < len(inside) else right
        area += (next_latency - latency) * (best - floor)
    return area


class Objective:
    """The chosen objective: names, directions, and what a trial is worth.

    Args:
        cfg: `objective=...`.
        slo: the promise, for kind `slo`.
        load: the ladder; `point` and `metrics` look at one level of it, see `sweeper.search.level`.
        with_quality: False for `quality=none`.
    """

    def __init__(
        self, cfg: ObjectiveConfig, slo: SloConfig, load: LoadConfig, with_quality: bool
    ) -> None:
        self._cfg = cfg
        self._slo = slo
        self._load = load
        self._level = LevelChoice(load, cfg.concurrency)
        self._with_quality = with_quality
        self.corner: Corner | None = None
        self._own_quality: QualityScore | None = None

    def anchor(self, baseline: TrialOutcome) -> None:
        """Fix what all trials are measured against: the baseline's load curve and quality."""
        self.corner = corner_from_baseline(baseline, self._cfg)
        self._own_quality = baseline.quality

    @property
    def names(self) -> list[str]:
        return [name for name, _ in self._signed_names()]

    @property
    def directions(self) -> list[Literal["minimize", "maximize"]]:
        return ["maximize" if sign > 0 else "minimize" for _, sign in self._signed_names()]

    @property
    def kind(self) -> str:
        return self._cfg.kind

    @property
    def with_quality(self) -> bool:
        return self._with_quality

    def quality(self, outcome: TrialOutcome) -> float | None:
        """What counts as the outcome's quality, None if it was not measured or does not count."""
        if not self._with_quality:
            return None
        if outcome.quality is None:
            # Nobody judges the output of a launch that was cut short: what it may be at best.
            at_most = outcome.learnt.get(QUALITY_AT_MOST)
            return None if at_most is None else float(at_most)
        return self._quality(outcome.quality)

    def levels(self, outcome: TrialOutcome) -> dict[str, tuple[float, ...]]:
        """Load level → log throughput, and minus log latency (`slo`: log room under the limits).

        Larger is better in both. Empty where levels do not compare: other kinds of objective, and
        ladders that end where the deployment does. A trial that stands at one load alone has one
        level whatever that load is: there the load follows from the deployment, as the size of a
        batch does.
        """
        if self._cfg.kind not in {"frontier", "slo"}:
            return {}
        is_given = self._load.levels == "given"
        if not is_given and len(outcome.points) != 1:
            return {}
        if outcome.verdict is not Verdict.OK or (self._cfg.kind == "frontier" and not self.corner):
            return {}
        found: dict[str, tuple[float, ...]] = {}
        for point in outcome.valid_points:
            throughput = point.metrics.get(self._cfg.throughput_metric)
            second = self._second(point)
            if throughput and second is not None:
                name = point.level if is_given else ONLY_LEVEL
                found[name] = (math.log(throughput), second)
        return found

    def _second(self, point: Point) -> float | None:
        """What stands against throughput at a level; None if it was not measured."""
        if self._cfg.kind == "slo":
            room = -slo_excess(point, self._slo)
            return room if math.isfinite(room) else 1.0  # without limits all are kept
        latency = point.metrics.get(self._cfg.latency_metric)
        return -math.log(latency) if latency else None

    def _signed_names(self) -> list[tuple[str, int]]:
        quality = [("quality", +1)] if self._with_quality else []
        match self._cfg.kind:
            case "frontier":
                return [("log_hypervolume", +1), *quality]
            case "slo":
                return [("throughput_under_slo", +1), *quality]
            case "point":
                return [(self._cfg.throughput_metric, +1), (self._cfg.latency_metric, -1), *quality]
            case _:
                return [(name[1:], -1 if name[0] == "-" else +1) for name in self._cfg.metrics]

    def tell(self, outcome: TrialOutcome) -> Told:
        """Values of an OK trial; a violation for a deployment's fault or a missed SLO.

        Neither where a measurement is missing: that says nothing of the deployment.
        """
        if outcome.verdict.is_config_fault:
            return Told(None, _violation(outcome))
        if outcome.verdict is not Verdict.OK or not outcome.valid_points:
            return Told(None, 0.0)
        values = self._bound(outcome) if outcome.partial is not None else self._values(outcome)
        if values is None:
            # A missed promise is the deployment's; a missing measurement is not.
            return Told(None, max(0.0, self._slo_excess(outcome), self._rate_missed(outcome)))
        if not all(math.isfinite(value) for value in values):
            raise ValueError(f"trial {outcome.number}: non-finite objective values {values}")
        return Told(values, 0.0)

    def _values(self, outcome: TrialOutcome) -> tuple[float, ...] | None:
        first = self._performance(outcome)
        if first is None:
            return None
        if not self._with_quality or self._cfg.kind == "metrics":
            return first
        if outcome.quality is None:
            return None
        return (*first, self._quality(outcome.quality))

    def _bound(self, outcome: TrialOutcome) -> tuple[float, ...] | None:
        """The most that a launch which was cut short may be worth; None if not even that counts."""
        is_of_all_levels = self._cfg.kind in {"frontier", "slo"}
        bounds = _bounds(outcome.learnt.get(OPTIMISTIC, {})) if is_of_all_levels else []
        first = self._performance(replace(outcome, points=[*outcome.points, *bounds]))
        if first is None:
            return None
        values = first
        if self._with_quality and self._cfg.kind != "metrics":
            quality = outcome.learnt.get(QUALITY_AT_MOST)
            if quality is None:
                return None
            values = (*first, float(quality))
        ceiling = outcome.learnt.get(CEILING) or [None] * len(values)
        signs = [sign for _, sign in self._signed_names()]
        return tuple(
            value if most is None else sign * min(sign * value, sign * most)
            for value, most, sign in zip(values, ceiling, signs, strict=True)
        )

    def _quality(self, score: QualityScore) -> float:
        """The baseline's own where the two cannot be told apart: noise is no goal."""
        return score.settled(self._own_quality)

    def _performance(self, outcome: TrialOutcome) -> tuple[float, ...] | None:
        match self._cfg.kind:
            case "frontier":
                curve = load_curve(outcome.valid_points, self._cfg)
                if self.corner is None or not curve:
                    return None
                return (log_hypervolume(curve, self.corner),)
            case "slo":
                keeping = [
                    point.metrics[self._cfg.throughput_metric]
                    for point in outcome.valid_points
                    if slo_excess(point, self._slo) <= 0
                ]
                return (max(keeping),) if keeping else None
            case _:
                return self._at_level(outcome)

    def _at_level(self, outcome: TrialOutcome) -> tuple[float, ...] | None:
        point = self._level.point(outcome)
        if point is None:
            return None
        values = dict(point.metrics)
        if outcome.quality is not None:
            values["quality"] = self._quality(outcome.quality)
        elif QUALITY_AT_MOST in outcome.learnt:
            values["quality"] = float(outcome.learnt[QUALITY_AT_MOST])
        wanted = self.names if self._cfg.kind == "metrics" else self.names[:2]
        found = [values[name] for name in wanted if name in values]
        return tuple(found) if len(found) == len(wanted) else None

    def _slo_excess(self, outcome: TrialOutcome) -> float:
        if self._cfg.kind != "slo":
            return 0.0
        return min(slo_excess(point, self._slo) for point in outcome.valid_points)

    def _rate_missed(self, outcome: TrialOutcome) -> float:
        if self._cfg.kind not in {"point", "metrics"}:
            return 0.0
        return self._level.missed(outcome)


def _bounds(optimistic: Mapping[str, Mapping[str, float]]) -> list[Point]:
    """Bounds of levels that were not driven, as points: for the arithmetic here alone."""
    return [Point({}, dict(metrics), {}, 0, True) for metrics in optimistic.values()]


def slo_excess(point: Point, slo: SloConfig) -> float:
    """How far a point misses the promise: the largest log ratio to a limit; ≤ 0 if it keeps all.

    A latency that was not measured counts as missed by a factor of e. A floor counts where its
    metric was measured: bounds of levels that were not driven have few of them.
    """
    found = [-math.inf]
    for name, limit in limits(slo).items():
        measured = point.metrics.get(metric_of(name))
        if is_floor(name):
            found += [math.log(limit / measured)] if measured and limit > 0 else []
        else:
            found.append(math.log(measured / limit) if measured else 1.0)
    return max(found)


def _violation(outcome: TrialOutcome) -> float:
    """How far an infeasible trial missed, where its diagnosis says so; else 1."""
    needed = outcome.learnt.get("needed_gib")
    available = outcome.learnt.get("available_gib")
    if isinstance(needed, int | float) and isinstance(available, int | float) and available > 0:
        return max(math.log(needed / available), 1e-3)
    return 1.0
