"""Which of a trial's points speaks for it, where an objective looks at one load level. Pure.

given   the level that `objective.concurrency` names, or the highest of the ladder: the same in
        every trial. A trial without a valid point there says nothing
found   each trial's own highest valid level: ladders end where the deployment does
slo     each trial's own answer: the highest rate that kept the limits. A trial whose limits were
        kept at no rate misses them by what its best level lacked
"""

from __future__ import annotations

import math

from sweeper.config.schema import LoadConfig
from sweeper.load.ladder import top_level
from sweeper.load.level import level_name
from sweeper.trial.ladder import pressure
from sweeper.trial.outcome import Point, TrialOutcome

SLO_RATE = "slo_rate_per_s"


class LevelChoice:
    """The level of an objective.

    Args:
        load: the configured ladder.
        concurrency: `objective.concurrency`; None takes the highest.
    """

    def __init__(self, load: LoadConfig, concurrency: int | None = None) -> None:
        self._load = load
        top = top_level(load)
        self._level = None if top is None else top.name
        if concurrency is not None:
            self._level = level_name({"kind": load.kind, "concurrency": concurrency})

    @property
    def name(self) -> str | None:
        """The level's name where it is the same in every trial, else None."""
        return self._level

    def point(self, outcome: TrialOutcome) -> Point | None:
        """The valid point that speaks for a trial, None if there is none."""
        valid = outcome.valid_points
        if self._level is not None:
            return next((point for point in valid if point.level == self._level), None)
        if self._load.levels == "slo":
            rate = outcome.learnt.get(SLO_RATE)
            return next((p for p in valid if rate is not None and p.rate_per_s == rate), None)
        return max(valid, key=lambda point: pressure(point.load), default=None)

    def missed(self, outcome: TrialOutcome) -> float:
        """How far a search for a rate was from keeping the limits: a log ratio, 0 if it was not.

        0 too where nothing says how far: a failed measurement is not the deployment's fault.
        """
        if self._load.levels != "slo" or outcome.learnt.get(SLO_RATE) is not None:
            return 0.0
        shares = [
            point.metrics["goodput_share"]
            for point in outcome.valid_points
            if "goodput_share" in point.metrics
        ]
        if not shares:
            return 0.0
        # One request in a thousand is what a share of none counts as, so that the log is finite.
        best = max(*shares, 1e-3)
        return max(1e-3, math.log(self._load.goodput.share / best))
