"""Where a study stands, for whoever watches it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from sweeper.config.schema import SweeperConfig
from sweeper.pareto.points import is_predicted
from sweeper.pareto.repeats import CONFIRM
from sweeper.pareto.select import LATENCY, THROUGHPUT
from sweeper.search.budget import HOUR_S, Account
from sweeper.search.curve import MIN_LAUNCHES, Outlook
from sweeper.search.front_so_far import FrontSoFar, pareto_axes
from sweeper.search.objective import Objective
from sweeper.search.standing import Standing
from sweeper.trial.outcome import Point, QualityScore, TrialOutcome
from sweeper.trial.progress import StudyProgress
from sweeper.verdicts import Verdict

FURTHEST = 2
"""Launches ahead, for each one seen, of which an outlook is given; see docs/budget.md."""


@dataclass
class Watch:
    """Front size, best point so far and failures by verdict, kept up one outcome at a time.

    Attributes:
        cfg: of the study.
    """

    cfg: SweeperConfig
    _taken: int = 0
    _failures: Counter[str] = field(default_factory=Counter)
    _ranked: FrontSoFar = field(init=False)
    _unranked: FrontSoFar = field(init=False)
    _all_judged: bool = True
    _own_quality: QualityScore | None = None
    _best: tuple[float, int, Point] | None = None
    _baseline: float | None = None
    _predicted: bool = False

    def __post_init__(self) -> None:
        axes = pareto_axes(THROUGHPUT, LATENCY)
        self._ranked, self._unranked = FrontSoFar(axes), FrontSoFar(axes)

    def update(self, outcomes: Sequence[TrialOutcome]) -> None:
        """Take in what has come to a journal since the last time; it only grows."""
        for outcome in outcomes[self._taken :]:
            self._take(outcome)
        self._taken = len(outcomes)

    def now(self, account: Account, standing: Standing) -> StudyProgress:
        """What is shown after a trial."""
        eta = account.eta(self.cfg.budget)
        front = self._ranked if self._all_judged else self._unranked
        return StudyProgress(
            front_size=len(front.entries),
            best=self.best,
            failures=dict(self._failures),
            eta_s=None if eta is None else eta.s,
            eta_low_s=None if eta is None else eta.low_s,
            eta_high_s=None if eta is None else eta.high_s,
            spent=spent_text(account, self.cfg),
            outlook=outlook_text(account, standing),
        )

    @property
    def best(self) -> str:
        """The point with the highest throughput, beside the baseline's highest, in one line."""
        if self._best is None:
            return "nothing measured yet"
        value, number, point = self._best
        mark = " predicted" if self._predicted else ""
        text = f"trial {number} at {point.level}: {value:.1f} tokens/s{mark}"
        if not self._baseline:
            return text
        return f"{text} ({value / self._baseline:.2f}x the baseline)"

    def _take(self, outcome: TrialOutcome) -> None:
        if outcome.verdict is not Verdict.OK:
            self._failures[str(outcome.verdict)] += 1
        elif outcome.partial is None and outcome.kind != CONFIRM:
            self._take_points(outcome)

    def _take_points(self, outcome: TrialOutcome) -> None:
        self._predicted = is_predicted(outcome)
        if outcome.kind == "baseline":
            self._own_quality = outcome.quality
        settled = outcome.quality.settled(self._own_quality) if outcome.quality else None
        for point in outcome.valid_points:
            self._all_judged = self._all_judged and settled is not None
            for front, ranked in ((self._ranked, True), (self._unranked, False)):
                front.add(outcome.number, point, settled, rank_quality=ranked, margin=0.0)
            value = point.metrics.get(self.cfg.objective.throughput_metric)
            if value is None:
                continue
            if self._best is None or value > self._best[0]:
                self._best = (value, outcome.number, point)
            if outcome.kind == "baseline":
                self._baseline = max(value, self._baseline or value)


def take_stock(cfg: SweeperConfig, outcomes: Sequence[TrialOutcome]) -> StudyProgress:
    """Where a study stands by its journal alone, for verbs that only look."""
    with_quality = cfg.quality.kind != "none"
    objective = Objective(cfg.objective, cfg.select.slo, cfg.load, with_quality)
    baseline = next((o for o in outcomes if o.kind == "baseline" and o.valid_points), None)
    if baseline is not None and baseline.verdict is Verdict.OK:
        objective.anchor(baseline)
    watch, standing = Watch(cfg), Standing(cfg, objective)
    account = Account(cfg.hardware.price_per_hour, 1)
    for learner in (watch, standing, account):
        learner.update(outcomes)
    return watch.now(account, standing)


def outlook_text(account: Account, standing: Standing) -> str:
    """What one more hour would probably buy, one line; says so where nobody can tell."""
    launch_s = account.launch_s
    if launch_s is None:
        return ""
    hour, seen = HOUR_S / launch_s, len(standing.curve.gains)
    found = standing.curve.outlook(min(hour, FURTHEST * seen))
    if found is None:
        return (
            f"what one more hour (about {hour:.0f} launches) would add is not known before "
            f"{MIN_LAUNCHES} launches"
        )
    if found.launches == hour:
        return f"one more hour (about {hour:.0f} launches) would probably add {_amount(found)}"
    return (
        f"{found.launches:.0f} more launches would probably add {_amount(found)}; beyond them "
        f"{seen} launches tell nothing (an hour holds about {hour:.0f})"
    )


def spent_text(account: Account, cfg: SweeperConfig) -> str:
    """Launches, minutes and money used, with their limits, one line."""
    spent, budget = account.spent, cfg.budget
    minutes = "virtual minutes" if account.is_virtual else "minutes"
    parts = [
        _of(f"{spent.launches}", budget.launches, "launches"),
        _of(f"{spent.minutes:.1f}", budget.minutes, minutes),
    ]
    if spent.money is not None:
        parts.append(_of(f"{spent.money:.2f}", budget.money, cfg.hardware.currency))
    return ", ".join(parts)


def _of(used: str, limit: float | None, unit: str) -> str:
    return f"{used} {unit}" if limit is None else f"{used} of {limit:g} {unit}"


def _amount(found: Outlook) -> str:
    since = f"; the last {found.quiet} launches added nothing" if found.quiet > 1 else ""
    if found.high < 0.001:
        return f"nothing{since}"
    return (
        f"{found.gain:.1%} throughput at the same latency ({found.low:.1%} to {found.high:.1%})"
        f"{since}"
    )
