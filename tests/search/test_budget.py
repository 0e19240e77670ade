"""When a study has spent what it was given."""

from __future__ import annotations

import pytest

from sweeper.config.schema import BudgetConfig
from sweeper.search.budget import Account, Eta, Spent, exhausted
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


def account(*trials: TrialOutcome, price: float | None = None, devices: int = 1) -> Account:
    made = Account(price, devices)
    made.update(trials)
    return made


def test_eta_from_the_mean_launch_and_how_they_vary() -> None:
    eta = account(*TRIALS).eta(BudgetConfig(launches=4))
    assert eta is not None and eta.s == pytest.approx(2 * 90)
    # Two to come and two seen: the deviation counts sqrt(2 + 2) times.
    assert eta.high_s == pytest.approx(180 + 1.2816 * 42.4264 * 2, rel=1e-3)
    assert eta.low_s == pytest.approx(180 - 1.2816 * 42.4264 * 2, rel=1e-3)
    assert account().eta(BudgetConfig(launches=4)) is None
    assert account(*TRIALS).eta(BudgetConfig(launches=None)) is None


def test_one_launch_does_not_tell_how_they_vary() -> None:
    assert account(TRIALS[0]).eta(BudgetConfig(launches=3)) == Eta(120.0)


def test_what_ends_first_ends_the_study() -> None:
    soon = account(*TRIALS).eta(BudgetConfig(launches=100, minutes=4))
    assert soon == Eta(60.0, 60.0, 60.0)
    paid = account(*TRIALS, price=2.0, devices=1)
    eta = paid.eta(BudgetConfig(launches=None, money=0.2))
    assert eta is not None and eta.s == pytest.approx(180.0)


def test_a_launch_costs_the_devices_that_it_used() -> None:
    two, all_eight = trial(0, 3600), trial(1, 3600)
    two.manifest = {"devices": 2}
    assert account(two, all_eight, price=3.0, devices=8).spent.money == pytest.approx(30.0)


def test_an_account_kept_step_by_step_is_the_same() -> None:
    made = Account(4.0, 2)
    for count in range(len(TRIALS) + 1):
        made.update(TRIALS[:count])
    assert made == account(*TRIALS, price=4.0, devices=2)


def test_patience_ends_a_search_that_gains_nothing() -> None:
    spent, patient = Spent.of(TRIALS, None, 1), BudgetConfig(launches=9, patience_launches=5)
    assert exhausted(spent, patient, quiet_launches=4) is None
    reason = exhausted(spent, patient, quiet_launches=5, noise_share=0.05)
    assert reason is not None and "last 5 launches gained nothing beyond noise (5.0%)" in reason
    assert exhausted(spent, BudgetConfig(launches=9), quiet_launches=500) is None


def test_a_clock_of_the_engines_own_says_what_was_spent_and_not_how_long_one_waits() -> None:
    launches = [trial(0, 100), trial(1, 100)]
    for launch in launches:
        launch.timings_s["real"] = 1.0
    virtual = account(*launches)
    assert virtual.is_virtual and virtual.spent.minutes == pytest.approx(200 / 60)
    eta = virtual.eta(BudgetConfig(launches=12))
    assert eta is not None and eta.s == pytest.approx(10.0)
    assert not account(*TRIALS).is_virtual
