from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweeper.config.schema import BudgetConfig, ConfirmConfig
from sweeper.search.budget import Spent
from sweeper.search.confirmation.design import Design, affordable, planned, set_aside


def spent(launches: int, minutes: float = 0.0, money: float | None = None) -> Spent:
    return Spent(launches, minutes, money)


@pytest.mark.parametrize(
    ("budget", "expected"),
    [
        (17, None),
        (18, Design(3, 1)),
        (20, Design(3, 1)),
        (21, Design(3, 2)),
        (100, Design(3, 2)),
    ],
)
def test_the_search_keeps_its_room(budget: int, expected: Design | None) -> None:
    assert planned(ConfirmConfig(), BudgetConfig(launches=budget), spent(1)) == expected


def test_who_asks_for_it_has_it_in_a_small_budget_too() -> None:
    asked = ConfirmConfig(repeats=3)
    assert planned(asked, BudgetConfig(launches=11), spent(1)) == Design(3, 2)
    assert planned(asked, BudgetConfig(launches=8), spent(1)) == Design(3, 1)
    assert planned(asked, BudgetConfig(launches=7), spent(1)) is None


def test_who_does_not_want_it_has_none() -> None:
    nothing = ConfirmConfig(repeats=0)
    assert planned(nothing, BudgetConfig(launches=100), spent(1)) is None
    assert affordable(nothing, BudgetConfig(launches=100), spent(1)) is None


def test_a_third_of_the_time_at_most() -> None:
    """Nine launches of two minutes are 18 minutes."""
    seen = spent(4, minutes=8.0)
    hour, half = BudgetConfig(launches=None, minutes=60), BudgetConfig(launches=None, minutes=50)
    assert planned(ConfirmConfig(), hour, seen) == Design(3, 2)
    assert planned(ConfirmConfig(), half, seen) == Design(3, 1)
    assert planned(ConfirmConfig(), BudgetConfig(launches=None, minutes=30), seen) is None


def test_what_is_set_aside_goes_by_what_launches_took() -> None:
    assert set_aside(Design(3, 2), spent(4, 8.0, 2.0)) == Spent(9, 18.0, 4.5)
    assert set_aside(Design(3, 2), spent(0)) == Spent(9, 0.0, None)
    assert set_aside(None, spent(4, 8.0)).launches == 0


def test_after_the_search_what_is_left_decides() -> None:
    budget = BudgetConfig(launches=20)
    left = {n: affordable(ConfirmConfig(), budget, spent(n)) for n in (11, 12, 14, 15, 20)}
    assert left == {
        11: Design(3, 2), 12: Design(3, 1), 14: Design(3, 1), 15: None, 20: None,
    }  # fmt: skip
    assert affordable(ConfirmConfig(), BudgetConfig(launches=None), spent(50)) == Design(3, 2)


@given(st.integers(1, 60), st.integers(1, 4), st.sampled_from([None, 3, 5]), st.integers(0, 60))
def test_what_was_planned_can_be_afforded(
    launches: int, candidates: int, repeats: int | None, used: int
) -> None:
    confirm, budget = ConfirmConfig("", candidates, repeats), BudgetConfig(launches=launches)
    design = planned(confirm, budget, spent(used))
    if design is not None and used + design.launches <= launches:
        found = affordable(confirm, budget, spent(used))
        assert found is not None and found.launches >= design.launches


def test_time_that_was_set_aside_is_enough_for_cheaper_launches() -> None:
    """The search's last launch went over: half of what was set aside is left."""
    budget: Any = BudgetConfig(launches=None, minutes=60)
    assert affordable(ConfirmConfig(), budget, spent(25, 50.5)) == Design(3, 2)
    assert affordable(ConfirmConfig(), budget, spent(25, 53.5)) == Design(3, 1)
    assert affordable(ConfirmConfig(), budget, spent(25, 59.0)) is None
