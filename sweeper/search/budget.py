"""When a study has spent what it was given. Pure, but for the clock handed in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sweeper.config.schema import BudgetConfig
from sweeper.trial.outcome import TrialOutcome


@dataclass(frozen=True)
class Spent:
    """What a study has used so far: launches, and the minutes its trials took.

    Making a checkpoint is part of its trial: its time counts, and so does a making that failed,
    as the launch that it would have been. None can go on for ever without using the budget.
    """

    launches: int
    minutes: float
    money: float | None

    @classmethod
    def of(
        cls, outcomes: Sequence[TrialOutcome], price_per_hour: float | None, devices: int
    ) -> Spent:
        """Add up a journal; a resumed study goes on with what is left."""
        minutes = sum(outcome.timings_s.get("total", 0.0) for outcome in outcomes) / 60
        money = None if price_per_hour is None else minutes / 60 * price_per_hour * devices
        return cls(sum(outcome.launched for outcome in outcomes), minutes, money)


def exhausted(spent: Spent, budget: BudgetConfig) -> str | None:
    """Why no further launch may start, or None."""
    if budget.launches is not None and spent.launches >= budget.launches:
        return f"budget of {budget.launches} launches used"
    if budget.minutes is not None and spent.minutes >= budget.minutes:
        return f"budget of {budget.minutes:g} minutes used"
    if budget.money is not None and spent.money is not None and spent.money >= budget.money:
        return f"budget of {budget.money:g} used"
    return None


def eta_s(outcomes: Sequence[TrialOutcome], spent: Spent, budget: BudgetConfig) -> float | None:
    """Seconds until the budget is used, from the mean launch so far; None before the first."""
    launched = [outcome for outcome in outcomes if outcome.launched]
    if not launched:
        return None
    mean_s = spent.minutes * 60 / len(launched)
    left = []
    if budget.launches is not None:
        left.append((budget.launches - spent.launches) * mean_s)
    if budget.minutes is not None:
        left.append((budget.minutes - spent.minutes) * 60)
    return max(0.0, min(left)) if left else None
