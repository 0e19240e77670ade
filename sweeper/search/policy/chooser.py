"""Who decides what comes next, and what all of them are given."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from sweeper.config.schema import SamplerConfig
from sweeper.search.objective import Objective
from sweeper.search.policy.costs import Costs
from sweeper.search.policy.open import Open
from sweeper.space.model import Space
from sweeper.trial.outcome import Point, TrialOutcome

Raw = dict[str, Any]
Tell = Callable[[str], None]


class Guide(Protocol):
    """Prior knowledge: what it would launch first, and how it orders what is equal otherwise."""

    def seeds(self, count: int) -> Sequence[Raw]:
        """Deployments to launch right after the space's own seeds."""

    def pick(self, candidates: Sequence[Raw]) -> Raw:
        """The one of several equal candidates that it likes best."""

    def learn(self, outcome: TrialOutcome) -> None:
        """Told of every outcome, so that it knows what it is worth."""

    def expect(self, deployments: Sequence[Raw]) -> Sequence[Sequence[Point] | None]:
        """The points that it expects of each deployment, None where it expects nothing."""


@dataclass(frozen=True)
class Ground:
    """What a decision rests on.

    Attributes:
        space: what is searched.
        open: what of it may still be tried.
        objective: of the study.
        sampler: its settings, the seed among them.
        costs: what a launch of a deployment costs.
        by_cost: True if gain is weighed against cost: the budget is time or money, not launches.
        guide: prior knowledge, if there is any.
        tell: says something to the user.
    """

    space: Space
    open: Open
    objective: Objective
    sampler: SamplerConfig
    costs: Costs = field(default_factory=Costs)
    by_cost: bool = False
    guide: Guide | None = None
    tell: Tell = lambda _: None


class Chooser(Protocol):
    """Decides by the journal alone, so that an interrupted study goes on as it would have."""

    def choose(self, outcomes: Sequence[TrialOutcome], trying: Mapping[str, Raw]) -> Raw | None:
        """The next deployment, canonical; None if nothing is left.

        Args:
            outcomes: the last attempt of each trial, oldest first; no confirmations.
            trying: hash → deployment of what was chosen before and has not ended yet.
        """


def hashes(outcomes: Collection[TrialOutcome], trying: Mapping[str, Raw]) -> set[str]:
    """Of everything that is known or being tried."""
    return {*(outcome.deployment_hash for outcome in outcomes), *trying}
