"""When a study has spent what it was given."""

from __future__ import annotations

import pytest

from sweeper.config.schema import BudgetConfig
from sweeper.search.budget import Spent, eta_s, exhausted
from sweeper.trial.outcome import TrialOutcome
from sweeper.verdicts import Verdict


def trial(number: int, total_s: float, launched: bool = True) -> TrialOutcome:
    return TrialOutcome(
        number, "search", {}, str(number), Verdict.OK, "stop", launched=launched,
        timings_s={"total": total_s},
    )  # fmt: skip


TRIALS = [trial(0, 60), trial(1, 120), trial(2, 0, launched=False)]


def test_only_launches_count_as_launches() -> None:
    assert Spent.of(TRIALS, None, 1).launches == 2


def test_money_counts_every_device() -> None:
    assert Spent.of(TRIALS, 4.0, 8).money == pytest.approx(3 / 60 * 4.0 * 8)
    assert Spent.of(TRIALS, None, 8).money is None


@pytest.mark.parametrize(
    ("budget", "word"),
    [
        (BudgetConfig(launches=2), "launches"),
        (BudgetConfig(launches=None, minutes=3), "minutes"),
        (BudgetConfig(launches=None, money=0.1), "budget of 0.1"),
    ],
)
def test_whichever_is_reached_first(budget: BudgetConfig, word: str) -> None:
    reason = exhausted(Spent.of(TRIALS, 4.0, 1), budget)
    assert reason is not None
    assert word in reason


def test_an_open_budget_goes_on() -> None:
    assert exhausted(Spent.of(TRIALS, 4.0, 1), BudgetConfig(launches=3, minutes=4)) is None


def test_eta_from_the_mean_launch() -> None:
    spent = Spent.of(TRIALS, None, 1)
    assert eta_s(TRIALS, spent, BudgetConfig(launches=4)) == pytest.approx(2 * 90)
    assert eta_s([], Spent.of([], None, 1), BudgetConfig(launches=4)) is None
    assert eta_s(TRIALS, spent, BudgetConfig(launches=None)) is None
