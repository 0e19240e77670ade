"""What the outcomes of one study have in common, held in memory once."""

from __future__ import annotations

from collections.abc import Iterable

from sweeper.trial.outcome import TrialOutcome


def share_conditions(outcomes: Iterable[TrialOutcome], before: TrialOutcome | None = None) -> None:
    """Let each outcome hold the conditions of the one before it, where they are the same.

    A manifest is most of an outcome, and nearly all of it is the study's. In place; nothing that
    can be read changes.

    Args:
        outcomes: in the order of the journal.
        before: the outcome before the first of them.
    """
    for outcome in outcomes:
        if before is not None:
            known = before.manifest
            outcome.manifest = {
                name: known[name] if name in known and known[name] == value else value
                for name, value in outcome.manifest.items()
            }
        before = outcome
