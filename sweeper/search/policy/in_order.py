"""Samplers that walk: `grid` through the listed space, `qmc` along a low-discrepancy sequence."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence

from sweeper.search.policy.chooser import Ground, Raw, hashes
from sweeper.search.policy.walk import Walk
from sweeper.trial.outcome import TrialOutcome


class Listed:
    """`sampler=grid`: the listed deployments in their order; random ones where none is listed.

    Optuna's own grid would repeat what was put in, and can only end a study that it runs itself.
    """

    def __init__(self, ground: Ground) -> None:
        self._open = ground.open
        self._seed = ground.sampler.seed

    def choose(self, outcomes: Sequence[TrialOutcome], trying: Mapping[str, Raw]) -> Raw | None:
        """See `Chooser`."""
        known = hashes(outcomes, trying)
        if self._open.listing is not None:
            return self._open.first(self._open.listing.items(), known)
        return self._open.any(known, random.Random(repr((self._seed, len(known)))))


class LowDiscrepancy:
    """`sampler=qmc`: the first point of the walk that is open, then whatever is."""

    def __init__(self, ground: Ground) -> None:
        self._open = ground.open
        self._seed = ground.sampler.seed
        self._walk: Iterable[tuple[str, Raw]] = Walk(ground.space, self._seed, ground.open.size)

    def choose(self, outcomes: Sequence[TrialOutcome], trying: Mapping[str, Raw]) -> Raw | None:
        """See `Chooser`."""
        known = hashes(outcomes, trying)
        found = self._open.first(self._walk, known)
        if found is not None:
            return found
        return self._open.any(known, random.Random(repr((self._seed, len(known)))))
