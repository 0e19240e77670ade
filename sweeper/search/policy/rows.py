"""Which outcomes a model is fitted to, and which are best. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from sweeper.search.objective import Objective
from sweeper.trial.outcome import TrialOutcome

ROWS = 200
"""Outcomes a model is fitted to at most; a fit grows with their cube."""


def best_first(objective: Objective, outcomes: Sequence[TrialOutcome]) -> list[TrialOutcome]:
    """Outcomes with values, by the first objective."""
    sign = 1.0 if objective.directions[0] == "maximize" else -1.0
    told = [(objective.tell(outcome).values, outcome) for outcome in outcomes]
    valued = [(sign * values[0], outcome) for values, outcome in told if values is not None]
    return [outcome for _, outcome in sorted(valued, key=lambda pair: -pair[0])]


def kept(objective: Objective, outcomes: Sequence[TrialOutcome]) -> Sequence[TrialOutcome]:
    """All outcomes, or of very many the best half and every so many-th of the others."""
    if len(outcomes) <= ROWS:
        return outcomes
    best = {outcome.number for outcome in best_first(objective, outcomes)[: ROWS // 2]}
    others = [outcome for outcome in outcomes if outcome.number not in best]
    spread = {outcome.number for outcome in others[:: -(-len(others) // (ROWS // 2))]}
    return [outcome for outcome in outcomes if outcome.number in best | spread]
