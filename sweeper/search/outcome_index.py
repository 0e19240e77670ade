"""A study's outcomes by number and by deployment, kept as the journal grows.

Both are asked for several times a trial, and a study may have ten thousand: nothing here goes
through the journal twice.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from sweeper.pareto.repeats import CONFIRM
from sweeper.trial.outcome import TrialOutcome

Lifted = Callable[[TrialOutcome], bool]


class OutcomeIndex:
    """What is known of trials and deployments."""

    def __init__(self) -> None:
        self._taken = 0
        self._latest: dict[int, TrialOutcome] = {}
        self._next = 0
        self._outcomes: list[TrialOutcome] = []
        self._known: dict[str, TrialOutcome] = {}
        self._looked_at = 0
        self._reasons: object = None

    def update(self, outcomes: Sequence[TrialOutcome]) -> None:
        """Take up what has come to a journal since the last time; it only grows."""
        for outcome in outcomes[self._taken :]:
            self._latest[outcome.number] = outcome
            self._next = max(self._next, outcome.number + 1)
            if outcome.kind != CONFIRM:
                self._outcomes.append(outcome)
        self._taken = len(outcomes)

    @property
    def latest(self) -> Mapping[int, TrialOutcome]:
        """Trial number → its last attempt."""
        return self._latest

    @property
    def next_number(self) -> int:
        """Of a trial that is new."""
        return self._next

    def by_hash(self, is_lifted: Lifted, reasons: object) -> Mapping[str, TrialOutcome]:
        """Deployment hash → its last outcome, confirmations left out.

        Args:
            is_lifted: whether a refusal has been taken back: then the deployment is open again.
            reasons: what `is_lifted` rests on; all refusals are looked at anew when it changes.
        """
        if reasons != self._reasons:
            self._known, self._looked_at, self._reasons = {}, 0, reasons
        for outcome in self._outcomes[self._looked_at :]:
            if outcome.launched or not is_lifted(outcome):
                self._known[outcome.deployment_hash] = outcome
        self._looked_at = len(self._outcomes)
        return self._known
