"""The bounds of a running study, and what its user hears of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from sweeper.errors import StudyError
from sweeper.search.bounds.learn import Learner, Lessons
from sweeper.search.bounds.store import read_dropped
from sweeper.search.bounds.teachings import NCCL
from sweeper.trial.outcome import TrialOutcome
from sweeper.trial.progress import Listener, Note


class LearntBounds:
    """What the journal teaches now; told when it changes.

    Args:
        path: the file of dropped bounds, read anew for every candidate, so that a drop or a
            restore while the study runs counts at once.
        outcomes: the journal so far.
        listener: told of bounds that come and go.
    """

    def __init__(
        self, path: Path, outcomes: Callable[[], Sequence[TrialOutcome]], listener: Listener
    ) -> None:
        self._path = path
        self._outcomes = outcomes
        self._listener = listener
        self._dropped: frozenset[str] = read_dropped(path)
        self._is_damaged = False
        self._seen: tuple[int, frozenset[str]] | None = None
        self._learner = Learner()
        self._lessons = Lessons()
        self.look(quietly=True)

    def look(self, *, quietly: bool = False) -> Lessons:
        """Learn anew if there is a new outcome, or another choice of its user."""
        outcomes = self._outcomes()
        state = (len(outcomes), self._read_dropped())
        if state != self._seen:
            self._learner.follow(outcomes)
            before, self._lessons = self._lessons, self._learner.lessons(state[1])
            self._seen = state
            if not quietly:
                self._tell(before)
        return self._lessons

    def _read_dropped(self) -> frozenset[str]:
        """A list that was damaged by hand is no reason to end a study: the last one stays."""
        try:
            self._dropped = read_dropped(self._path)
            self._is_damaged = False
        except StudyError as problem:
            if not self._is_damaged:
                self._listener(Note(str(problem)))
            self._is_damaged = True
        return self._dropped

    def _tell(self, before: Lessons) -> None:
        known = {bound.id for bound in before.active}
        active = {bound.id for bound in self._lessons.active}
        for bound in self._lessons.active:
            if bound.id not in known:
                loud = "WARNING: " if bound.rule == NCCL else ""
                self._listener(Note(f"{loud}no longer launched ({bound.id}): {bound.text}"))
        for bound, worked in self._lessons.contradicted:
            if bound.id in known:
                self._listener(
                    Note(
                        f"{bound.id} is dropped: trial {worked} worked inside its region "
                        f"({bound.region})"
                    )
                )
        for bound in self._lessons.dropped:
            if bound.id in known - active:
                self._listener(Note(f"{bound.id} was dropped by its user and no longer holds"))
