"""How many launches a confirmation takes, and what the search leaves it. Pure.

The launches are set aside from the start, so that the search does not eat them. Nothing is
confirmed that would cost the search its own room: unless it was asked for, the search keeps at
least `SEARCH_LAUNCHES` launches, and two thirds of a budget in minutes or money.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sweeper.config.schema import BudgetConfig, ConfirmConfig
from sweeper.search.budget import Spent

REPEATS = 3
SEARCH_LAUNCHES = 12
"""Launches after which a search has found 95 to 99 % of what it will find, in the trial runs behind
the default sampler."""
_SHARE = 1 / 3
_CHEAPER = 0.5
"""Share of a search's launch that one of a confirmation costs at least: the start is the same, but
only the load levels that matter are driven."""


@dataclass(frozen=True)
class Design:
    """Launches of a confirmation.

    Attributes:
        repeats: of each deployment.
        entries: deployments beside the defaults.
    """

    repeats: int
    entries: int

    @property
    def launches(self) -> int:
        """All of them, those of the defaults too."""
        return self.repeats * (self.entries + 1)


def planned(confirm: ConfirmConfig, budget: BudgetConfig, searched: Spent) -> Design | None:
    """What the search sets launches aside for; None if it may use the whole budget.

    Args:
        confirm: the configuration.
        budget: of the whole study.
        searched: what the search has used so far; tells what a launch takes.
    """
    return _largest(confirm, lambda design: _leaves_room(design, confirm, budget, searched))


def affordable(confirm: ConfirmConfig, budget: BudgetConfig, searched: Spent) -> Design | None:
    """What can be confirmed with what the search has left, now that it is over.

    Args:
        confirm: the configuration.
        budget: of the whole study.
        searched: what the search used.
    """
    return _largest(confirm, lambda design: _is_left(design, budget, searched))


def set_aside(design: Design | None, searched: Spent) -> Spent:
    """What a design takes of the budget, by what the search's launches took."""
    if design is None:
        return Spent(0, 0.0, None)
    count, each = design.launches, max(1, searched.launches)
    money = None if searched.money is None else searched.money / each * count
    return Spent(count, searched.minutes / each * count, money)


def _largest(confirm: ConfirmConfig, fits: Callable[[Design], bool]) -> Design | None:
    repeats = REPEATS if confirm.repeats is None else confirm.repeats
    designs = (Design(repeats, entries) for entries in range(confirm.candidates, 0, -1))
    return next((design for design in designs if fits(design)), None) if repeats else None


def _leaves_room(
    design: Design, confirm: ConfirmConfig, budget: BudgetConfig, searched: Spent
) -> bool:
    floor = SEARCH_LAUNCHES if confirm.repeats is None else 2
    if budget.launches is not None and budget.launches - design.launches < floor:
        return False
    if confirm.repeats is not None:
        return True
    aside = set_aside(design, searched)
    in_time = budget.minutes is None or aside.minutes <= _SHARE * budget.minutes
    in_money = budget.money is None or (aside.money or 0.0) <= _SHARE * budget.money
    return in_time and in_money


def _is_left(design: Design, budget: BudgetConfig, searched: Spent) -> bool:
    least = set_aside(design, searched)
    if budget.launches is not None and budget.launches - searched.launches < design.launches:
        return False
    if budget.minutes is not None:
        return budget.minutes - searched.minutes >= _CHEAPER * least.minutes
    if budget.money is not None and searched.money is not None and least.money is not None:
        return budget.money - searched.money >= _CHEAPER * least.money
    return True
