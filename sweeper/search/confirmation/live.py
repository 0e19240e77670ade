"""The confirmation of a running study: what the search must leave, and who is launched again."""

from __future__ import annotations

from collections.abc import Sequence

from sweeper.config.schema import SweeperConfig
from sweeper.pareto.contest import Contest, contest_of
from sweeper.pareto.points import latest_attempts, points_frame
from sweeper.pareto.repeats import CONFIRM, repeats_by_trial
from sweeper.pareto.select import rule_of, selectable_rows
from sweeper.search.budget import Account, Spent, exhausted
from sweeper.search.confirmation.design import Design, affordable, planned, set_aside
from sweeper.search.confirmation.turns import Turn, next_turn
from sweeper.trial.outcome import TrialOutcome
from sweeper.trial.run import REAL


class Confirmation:
    """Kept up with the journal; everything it says follows from that.

    Args:
        cfg: of the study.
        devices: those that a launch is charged for whose manifest does not say what it used.
    """

    def __init__(self, cfg: SweeperConfig, devices: int) -> None:
        self._cfg = cfg
        self._searched = Account(cfg.hardware.price_per_hour, devices)
        self._search: list[TrialOutcome] = []
        self._outcomes: Sequence[TrialOutcome] = ()
        self._taken = 0
        self._contest: tuple[tuple[int, int], Contest | None] | None = None

    def update(self, outcomes: Sequence[TrialOutcome]) -> None:
        """Take in what has come to a journal since the last time; it only grows."""
        self._outcomes = outcomes
        self._search += [o for o in outcomes[self._taken :] if o.kind != CONFIRM]
        self._searched.update(self._search)
        self._taken = len(outcomes)

    def ends_search(self, spent: Spent) -> str | None:
        """Why the search is over although the budget is not; None if it may go on.

        Args:
            spent: of the whole study.
        """
        design = self._planned()
        if design is None:
            return None
        aside = set_aside(design, self._searched.spent)
        money = None if spent.money is None else spent.money + (aside.money or 0.0)
        both = Spent(spent.launches + aside.launches, spent.minutes + aside.minutes, money)
        if exhausted(both, self._cfg.budget) is None:
            return None
        return f"the search left {design.launches} launches of the budget to confirm the best"

    def next_turn(self) -> Turn | None:
        """The next launch now that the search is over, None if there is none."""
        design = self._affordable()
        contest = None if design is None else self._current_contest(design)
        if design is None or contest is None:
            return None
        cfg = self._cfg
        return next_turn(self._outcomes, contest, design, cfg.load, cfg.sampler.seed)

    @property
    def summary(self) -> str:
        """What became of it, a few words; empty if nothing was to be confirmed."""
        launched = sum(o.launched for o in self._outcomes if o.kind == CONFIRM)
        if launched:
            return f"{launched} launches went into confirming"
        design = self._planned()
        if design is None or self._current_contest(design) is not None:
            return ""
        return "nothing came near enough to the defaults to be launched again"

    def _planned(self) -> Design | None:
        if not self._is_worth_it:
            return None
        return planned(self._cfg.confirm, self._cfg.budget, self._searched.spent)

    def _affordable(self) -> Design | None:
        if not self._is_worth_it:
            return None
        return affordable(self._cfg.confirm, self._cfg.budget, self._searched.spent)

    @property
    def _is_worth_it(self) -> bool:
        """False before the baseline, and where an engine would only say the same again."""
        return bool(self._search) and not repeats_itself(self._search)

    def _current_contest(self, design: Design) -> Contest | None:
        """Who is compared. Looked for anew where a trial came, or one proved unstable."""
        unstable = {
            number
            for number, repeats in repeats_by_trial(latest_attempts(self._outcomes)).items()
            if repeats.unstable
        }
        state = (len(self._search), len(unstable))
        if self._contest is None or self._contest[0] != state:
            stable = [o for o in self._search if o.number not in unstable or o.number == 0]
            rows = selectable_rows(points_frame(stable))
            self._contest = state, contest_of(rows, rule_of(self._cfg.select), design.entries)
        return self._contest[1]


def repeats_itself(outcomes: Sequence[TrialOutcome]) -> bool:
    """True of an engine on a clock of its own: asked twice it gives the same figures twice."""
    first = next((outcome for outcome in outcomes if outcome.launched), None)
    return first is not None and REAL in first.timings_s
