"""What may still be tried: new deployments that neither arithmetic nor a learnt bound refuses."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

from sweeper.estimate.violation import Violation
from sweeper.search.bounds.learn import Lessons
from sweeper.search.policy.walk import at, deployment_at, spoken
from sweeper.space.canonical import (
    as_raw,
    deployment_hash,
    enumerate_canonical,
)
from sweeper.space.model import INT, Parameter, Scalar, Space

Check = Callable[[Mapping[str, Any]], list[Violation]]
Raw = dict[str, Any]

LISTED_AT_MOST = 20_000
"""Spaces up to this size are listed; larger ones are drawn from."""
POOL = 3_000
"""Candidates of one decision; what it costs grows with them."""
BLIND_DRAWS = 64
"""Random deployments to look at before all of a listed space are shuffled."""
STEPS_IN_A_RANGE = 8


class Open:
    """The deployments of a space that are open.

    Args:
        space: what is searched.
        check: rules a canonical deployment breaks.
        lessons: what failed launches teach; read anew each time.
        era: changes when what `check` refuses may have changed; until then it is asked once.
    """

    def __init__(
        self,
        space: Space,
        check: Check,
        lessons: Callable[[], Lessons] = Lessons,
        era: Callable[[], object] = lambda: None,
    ) -> None:
        self._space = space
        self._check = check
        self._lessons = lessons
        self._era = era
        self._unfit: tuple[object, set[str]] = (None, set())

    @cached_property
    def listing(self) -> dict[str, Raw] | None:
        """Hash → deployment, all of the space in order; None if there are too many to list."""
        everything = enumerate_canonical(self._space, LISTED_AT_MOST)
        if everything is None:
            return None
        return {deployment_hash(one): one for one in everything}

    @cached_property
    def _entries(self) -> list[tuple[str, Raw]]:
        """The listing, to draw from; empty where there is none."""
        return list((self.listing or {}).items())

    @property
    def size(self) -> int | None:
        """Deployments of the space, None if there are too many to list."""
        return None if self.listing is None else len(self.listing)

    def has(self, digest: str) -> bool:
        """Whether the space has a deployment: where it does not list its own, it has them all."""
        return self._space.listed is None or self.listing is None or digest in self.listing

    def nearest(self, deployment: Raw, known: Collection[str], rng: random.Random) -> Raw | None:
        """The listed one that is new, fit and differs in the fewest parameters.

        Of several a random one; None if none is left.
        """
        listed = list((self.listing or {}).items())
        rng.shuffle(listed)
        asked = set(deployment.items())
        listed.sort(key=lambda entry: len(asked ^ set(entry[1].items())))
        return self.first(listed, known)

    def is_fit(self, digest: str, deployment: Raw) -> bool:
        """Whether the space has a deployment, and neither arithmetic nor a bound refuses it."""
        era = self._era()
        if era != self._unfit[0]:
            self._unfit = (era, set())
        if digest in self._unfit[1]:
            return False
        if (self.listing is not None and digest not in self.listing) or self._check(deployment):
            self._unfit[1].add(digest)
            return False
        return self._lessons().refusing(deployment) is None

    def first(self, ordered: Iterable[tuple[str, Raw]], known: Collection[str]) -> Raw | None:
        """The first of an order (hash and deployment) that is new and fit."""
        new = (entry for entry in ordered if entry[0] not in known)
        return next((one for digest, one in new if self.is_fit(digest, one)), None)

    def any(self, known: Collection[str], rng: random.Random) -> Raw | None:
        """A random one that is new and fit; None if there is none, or none was found."""
        for digest, one in rng.choices(self._entries, k=BLIND_DRAWS) if self._entries else ():
            if digest not in known and self.is_fit(digest, one):
                return one
        drawn = list(self._drawn((), rng).items() if self.listing is None else self.listing.items())
        rng.shuffle(drawn)
        return self.first(drawn, known)

    def pool(
        self, known: Collection[str], near: Sequence[Raw], rng: random.Random
    ) -> dict[str, Raw]:
        """Hash → deployment of new ones to choose among; whoever chooses one asks `is_fit` of it.

        All of a space of some thousand; of a larger one a sample, and the neighbours of `near`.
        """
        listing = self.listing
        if listing is None:
            found = self._drawn(near, rng)
        elif len(listing) <= POOL:
            found = listing
        else:
            around = {deployment_hash(n): n for one in near for n in neighbours(self._space, one)}
            found = {digest: one for digest, one in around.items() if digest in listing}
            found.update(rng.sample(list(listing.items()), POOL))
        return {digest: one for digest, one in found.items() if digest not in known}

    def _drawn(self, near: Sequence[Raw], rng: random.Random) -> dict[str, Raw]:
        drawn = [self._draw(rng) for _ in range(POOL)]
        drawn += [other for one in near for other in neighbours(self._space, one)]
        return {deployment_hash(one): one for one in drawn}

    def _draw(self, rng: random.Random) -> Raw:
        return deployment_at(self._space, [rng.random() for _ in self._space.parameters])


def neighbours(space: Space, deployment: Mapping[str, Any]) -> list[Raw]:
    """Every deployment that differs in one parameter's value."""
    raw = as_raw(space, deployment)
    return [
        spoken(space, {**raw, parameter.name: value})
        for parameter in space.parameters
        for value in values_of(parameter)
        if value != raw[parameter.name]
    ]


def values_of(parameter: Parameter) -> Sequence[Scalar]:
    """A parameter's values; of a continuum, or of very many, some at equal distances."""
    is_short = bool(parameter.choices) or count(parameter) <= 2 * STEPS_IN_A_RANGE
    values = parameter.values if is_short else None
    if values is not None:
        return values
    return [at(parameter, index / STEPS_IN_A_RANGE) for index in range(STEPS_IN_A_RANGE + 1)]


def count(parameter: Parameter) -> float:
    """Number of values of a range, without listing them; infinity for a continuum."""
    step = 1 if parameter.kind == INT and parameter.step is None else parameter.step
    if step is None:
        return math.inf
    return round((float(parameter.high or 0) - float(parameter.low or 0)) / step) + 1
