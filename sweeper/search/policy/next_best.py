"""`sampler=gp`: the open deployment with the largest expected gain, the cheapest where several tie.

    fewer than `startup_trials` known   of the first points of a low-discrepancy walk the one that
                                        is furthest from all that is known
    then                                ranked by `sweeper.search.policy.model`, fitted anew
    from 100 outcomes on                fitted every 2nd time, from 200 every 4th, then 8th …; what
                                        was ranked best is launched in order in between

The last rule bounds what a decision costs in a study of thousands of replayed launches.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from itertools import islice, takewhile
from typing import TYPE_CHECKING

from sweeper.search.bounds.bound import is_number
from sweeper.search.policy.chooser import Ground, Raw, hashes
from sweeper.search.policy.expect import expectation
from sweeper.search.policy.features import Features
from sweeper.search.policy.inert import inert
from sweeper.search.policy.model import Learnt, Model, learn
from sweeper.search.policy.rows import best_first, kept
from sweeper.search.policy.threads import one_thread
from sweeper.search.policy.walk import Walk
from sweeper.search.samplers import startup_trials
from sweeper.trial.outcome import TrialOutcome

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

NEAR = 5
"""Best deployments whose neighbours are candidates where a space is too large to list."""
EQUAL_SHARE = 0.02
"""Candidates whose expected gain is that near the largest count as equal."""
EQUALS = 32
SPREAD = 64
"""Points of the walk among which the first launches are chosen."""
ALWAYS_UNTIL = 100
HELD = 1e-6
"""What the gain of varying a parameter without effect counts for."""

Ranked = list[tuple[float, str, Raw]]
"""Gain, hash and deployment."""


class NextBest:
    """Chooses by a model of all outcomes.

    Args:
        ground: what the decision rests on.
    """

    def __init__(self, ground: Ground) -> None:
        self._ground = ground
        self._features = Features(ground.space)
        self._is_anchored = False
        self._walk = Walk(ground.space, ground.sampler.seed, ground.open.size)
        self._expect = None if ground.guide is None else expectation(ground.objective, ground.guide)
        self._said: set[str] = set()
        self._coordinates: dict[str, Floats] = {}
        self._ranked: tuple[object, Ranked] | None = None

    def choose(self, outcomes: Sequence[TrialOutcome], trying: Mapping[str, Raw]) -> Raw | None:
        """See `Chooser`."""
        known, open_ = hashes(outcomes, trying), self._ground.open
        if len(known) < startup_trials(self._ground.sampler):
            first = self._furthest(outcomes, trying) or open_.first(self._walk, known)
            if first is not None:
                return first
        ranked = self._ranking(outcomes[: fitted_to(len(outcomes))], trying)
        left = (one for one in ranked if one[1] not in known and open_.is_fit(one[1], one[2]))
        best = next(left, None)
        if best is None:
            return open_.any(known, random.Random(repr((self._ground.sampler.seed, len(known)))))
        least = best[0] * (1.0 - EQUAL_SHARE)
        equal = islice(takewhile(lambda one: one[0] >= least, left), EQUALS)
        return self._preferred([best[2], *(one[2] for one in equal)], outcomes)

    def _furthest(self, outcomes: Sequence[TrialOutcome], trying: Mapping[str, Raw]) -> Raw | None:
        """What differs most from all that is known: every parameter is soon seen at two values.

        Points drawn evenly leave a switch as it is in one launch of two, and a model that has never
        seen its other side has no reason to hurry there.
        """
        known = hashes(outcomes, trying)
        first = dict(islice(self._walk, SPREAD))
        new = [
            one
            for digest, one in first.items()
            if digest not in known and self._ground.open.is_fit(digest, one)
        ]
        if not new or not known:
            return None
        there = self._features.of([*(one.deployment for one in outcomes), *trying.values()])
        apart = ((self._features.of(new)[:, None] - there[None]) ** 2).sum(axis=2).min(axis=1)
        return new[int(apart.argmax())]

    def _preferred(self, equal: Sequence[Raw], outcomes: Sequence[TrialOutcome]) -> Raw:
        """Of equal candidates the cheapest to launch; of those the guide's choice; or the first.

        Without a guide: what leaves most to the engine, so that nothing is set to no purpose.
        """
        guide = self._ground.guide
        steps = list(map(self._ground.costs.after(outcomes), equal))
        cheap = [one for one, step in zip(equal, steps, strict=True) if step == min(steps)]
        if guide is not None and len(cheap) > 1:
            return guide.pick(cheap)
        return min(cheap, key=len)

    def _ranking(self, outcomes: Sequence[TrialOutcome], trying: Mapping[str, Raw]) -> Ranked:
        """Candidates by falling gain; kept as long as nothing that it rests on has changed."""
        state = (len(outcomes), tuple(trying))
        if self._ranked is None or self._ranked[0] != state:
            with one_thread():
                self._ranked = (state, self._rank(outcomes, trying))
        return self._ranked[1]

    def _rank(self, outcomes: Sequence[TrialOutcome], trying: Mapping[str, Raw]) -> Ranked:
        import numpy as np

        ground = self._ground
        self._anchor(outcomes)
        seed = (ground.sampler.seed, len(outcomes), len(trying))
        near = best_first(ground.objective, outcomes)[:NEAR]
        pool = ground.open.pool(
            hashes(outcomes, trying),
            [one.deployment for one in near],
            random.Random(repr(seed)),
        )
        if not pool:
            return []
        rng = np.random.default_rng(seed)
        gain = self._gain(kept(ground.objective, outcomes), trying, pool, rng)
        if ground.by_cost:
            relative, step = ground.costs.relative(outcomes), ground.costs.after(outcomes)
            gain = gain / np.array([relative[step(one)] for one in pool.values()])
        order = np.argsort(-gain, kind="stable")
        entries = list(pool.items())
        return [(float(gain[index]), *entries[index]) for index in order]

    def _anchor(self, outcomes: Sequence[TrialOutcome]) -> None:
        """Put what the engine takes by itself, as the baseline told it, beside its number."""
        told = [one.manifest.get("effective_args") for one in outcomes if one.kind == "baseline"]
        if self._is_anchored or not told:
            return
        self._is_anchored = True
        if isinstance(told[0], Mapping):
            takes = {name: float(value) for name, value in told[0].items() if is_number(value)}
            self._features = Features(self._ground.space, takes)

    def _gain(
        self,
        outcomes: Sequence[TrialOutcome],
        trying: Mapping[str, Raw],
        pool: Mapping[str, Raw],
        rng: np.random.Generator,
    ) -> Floats:
        # Of so many launches a model learns more than from what was expected of them.
        expect = self._expect if len(outcomes) < ALWAYS_UNTIL else None
        learnt = learn(self._ground.objective, self._features, outcomes, expect)
        if learnt is None:
            return rng.random(len(pool))

        def expected(deployments: Sequence[Raw]) -> Floats | None:
            return None if expect is None else expect(deployments, learnt.goal)

        model = Model(learnt, self._features.groups)
        held = self._held(model, learnt)
        if trying:
            believed = list(trying.values())
            model = model.believing(self._features.of(believed), expected(believed))
        gain = model.gain(self._of(pool), expected(list(pool.values())), rng)
        varied = [any(name in deployment for name in held) for deployment in pool.values()]
        gain[varied] *= HELD
        return gain

    def _held(self, model: Model, learnt: Learnt) -> list[str]:
        """Parameters that are left at their defaults from now on, told when they change."""
        ground = self._ground
        names = inert(model, self._features, ground.space, learnt.deployments)
        new = [name for name in names if name not in self._said]
        if new:
            self._said.update(new)
            ground.tell(
                f"no effect in {len(learnt.deployments)} launches, so left at the default where "
                f"anything else is left to try: {', '.join(new)}"
            )
        return names

    def _of(self, pool: Mapping[str, Raw]) -> Floats:
        """Coordinates of candidates; kept where the space is listed, and they come again."""
        import numpy as np

        new = [digest for digest in pool if digest not in self._coordinates]
        rows = self._features.of([pool[digest] for digest in new])
        found = self._coordinates if self._ground.open.listing is not None else {}
        found.update(zip(new, rows, strict=True))
        return np.stack([found[digest] for digest in pool])


def fitted_to(count: int) -> int:
    """How many of so many outcomes a decision rests on: all up to 100, then the last full step."""
    step = 1
    while count >= ALWAYS_UNTIL * step:
        step *= 2
    return count - count % step
