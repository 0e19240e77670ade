"""What each launch added to what a study has found, and what more of them would probably add. Pure.

The curve is in nats of throughput: by how much the front was lifted, averaged over its latencies
(the area that a launch added in log throughput and log latency, over the width of the area), or by
how much the best throughput under the SLO grew. 0.02 is two per cent more throughput.

The outlook is a bootstrap of the gains of the later half of the launches. Gains grow rarer and
smaller as a search goes on. Were launches drawn at random from an endless supply, the n-th would be
a record with probability 1 / n; supplies end and samplers learn, so that a gain seen at launch m
counts (m / n) ** `DECAY` at launch n. Each resample draws both which gains were seen and which ones
come, so that its spread holds what chance may bring. It stays a guess, and is worded as one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from sweeper.config.schema import ObjectiveConfig, SloConfig
from sweeper.search.front_so_far import FrontSoFar, pareto_axes, plane_values
from sweeper.search.objective import Corner, log_hypervolume, slo_excess
from sweeper.trial.outcome import TrialOutcome

MIN_LAUNCHES = 8
"""Below that nobody knows."""
RESAMPLES = 400
LOW, HIGH = 0.01, 0.99
DECAY = 1.5
"""Chosen on 756 simulated deployments, see docs/budget.md: with 1 the median of what is expected is
1.0 to 2.1 times that of what comes, with 1.5 0.7 to 1.6 times, with 2 0.5 to 1.2 times."""
MOST_DRAWN = 200
"""Launches that are looked back on, and those to come that are drawn one by one: more tell no more,
and cost time after every launch of a long study."""


@dataclass(frozen=True)
class Outlook:
    """What more launches would probably add.

    Attributes:
        launches: how many more.
        gain: median gain in throughput as a share; 0.02 is 2 %.
        low, high: between which it lies in nearly all resamples, and lay in 7 of 10 studies that
            were looked at (docs/budget.md): the past tells less of the future than it seems.
        quiet: launches since the last that added anything.
    """

    launches: float
    gain: float
    low: float
    high: float
    quiet: int


@dataclass
class GainCurve:
    """Gains of a study, one a launch.

    Attributes:
        cfg: metrics and kind of the objective.
        slo: the promise, for kind `slo`.
        gains: of every launch, in nats of throughput; the first, with nothing before it, has none.
    """

    cfg: ObjectiveConfig
    slo: SloConfig
    gains: list[float] = field(default_factory=list)
    _plane: FrontSoFar = field(init=False)
    _reached: float | None = None

    def __post_init__(self) -> None:
        axes = pareto_axes(self.cfg.throughput_metric, self.cfg.latency_metric)
        self._plane = FrontSoFar(axes)

    def add(self, outcome: TrialOutcome | None, corner: Corner | None) -> None:
        """Add a launch.

        Args:
            outcome: measured whole; None for one that ended otherwise and so added nothing.
            corner: of the objective, once there is one.
        """
        before = self._reached
        if outcome is not None:
            self._take(outcome, corner)
        added = 0.0 if before is None or self._reached is None else self._reached - before
        self.gains.append(max(0.0, added) / self._width(corner))

    def outlook(self, launches: float) -> Outlook | None:
        """What so many more launches would probably add; None where too few have been seen."""
        seen = len(self.gains)
        if seen < MIN_LAUNCHES or launches <= 0:
            return None
        import numpy as np

        start, chance = max(seen // 2, seen - MOST_DRAWN), np.random.default_rng(seen)
        rates = np.asarray(self.gains[start:]) * np.arange(start + 1, seen + 1) ** DECAY
        known = chance.choice(rates, size=(RESAMPLES, len(rates)))
        count = max(1, min(round(launches), MOST_DRAWN))
        drawn = np.take_along_axis(
            known, chance.integers(len(rates), size=(RESAMPLES, count)), axis=1
        )
        # The launches to come stand for equal parts of the time, the last count at its end.
        places = seen + launches * (np.arange(count) + 0.5) / count
        total = (drawn / places**DECAY).sum(axis=1) * launches / count
        low, middle, high = (float(np.expm1(np.quantile(total, q))) for q in (LOW, 0.5, HIGH))
        quiet = next((n for n, gain in enumerate(reversed(self.gains)) if gain > 0), seen - 1)
        return Outlook(launches, middle, low, high, quiet)

    def _take(self, outcome: TrialOutcome, corner: Corner | None) -> None:
        if self.cfg.kind == "slo":
            kept = [
                point.metrics[self.cfg.throughput_metric]
                for point in outcome.valid_points
                if slo_excess(point, self.slo) <= 0
            ]
            best = [math.log(value) for value in kept if value > 0]
            known = [] if self._reached is None else [self._reached]
            self._reached = max([*best, *known], default=None)
            return
        for point in outcome.valid_points:
            self._plane.add(outcome.number, point, None, rank_quality=False, margin=0.0)
        if corner is not None:
            self._reached = log_hypervolume(plane_values(self._plane.entries), corner)

    def _width(self, corner: Corner | None) -> float:
        """Of the area, in nats of latency; 1 where the curve is in nats of throughput already."""
        if self.cfg.kind == "slo" or corner is None or not self._plane.entries:
            return 1.0
        lowest = min(latency for _, latency in plane_values(self._plane.entries))
        return max(1e-9, math.log(corner.latency_ms / lowest))

    @property
    def front(self) -> Sequence[tuple[float, float]]:
        """(throughput, latency in ms) of the front, quality left out."""
        return plane_values(self._plane.entries)
