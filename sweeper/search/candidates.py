"""What a study tries next. New deployments only: planned ones first, then the sampler's.

    baseline → seeds → what an earlier run left in mid-air → sampler ⇄ (known or refused: ask again)

A sampler that keeps proposing what is known, or what arithmetic refuses, is helped out with a
random deployment that is neither.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sweeper.estimate.violation import Violation
from sweeper.search.proposals import Proposal, Proposals
from sweeper.space.canonical import baseline, canonical, deployment_hash, enumerate_canonical
from sweeper.space.model import Space
from sweeper.trial.outcome import TrialOutcome

Check = Callable[[Mapping[str, Any]], list[Violation]]
Raw = dict[str, Any]

MAX_FRUITLESS_IN_A_ROW = 5
ENUMERATION_LIMIT = 20_000
RANDOM_TRIES = 200


@dataclass(frozen=True)
class Candidate:
    """A deployment nobody tried.

    Attributes:
        kind: baseline | seed | search.
        deployment: canonical form.
        deployment_hash: of it.
        proposal: Optuna's side of it; None if it lies outside what the sampler searches.
        violations: the rules it breaks; empty if it can be launched.
    """

    kind: str
    deployment: Raw
    deployment_hash: str
    proposal: Proposal | None
    violations: tuple[Violation, ...] = ()


class Candidates:
    """Yields candidates of one study.

    Args:
        space: the whole space.
        searched: the part of it the sampler searches (choices proven impossible taken out).
        proposals: the Optuna study over `searched`.
        check: rules a canonical deployment breaks.
        known: deployment hash → its outcome; read anew each time.
        seed: of the random way out.
        in_order: walk the listed space instead of asking the sampler (`sampler=grid`).
    """

    def __init__(
        self,
        space: Space,
        searched: Space,
        proposals: Proposals,
        check: Check,
        known: Callable[[], Mapping[str, TrialOutcome]],
        *,
        seed: int,
        in_order: bool = False,
    ) -> None:
        self._space = space
        self._searched = searched
        self._proposals = proposals
        self._check = check
        self._known = known
        self._random = random.Random(seed)
        self._in_order = in_order

    def each(self, interrupted: Sequence[Raw]) -> Iterator[Candidate]:
        """All candidates in order; ends when nothing is left to try.

        Args:
            interrupted: raw deployments that were running when an earlier run died.
        """
        for kind, raw in self._planned(interrupted):
            deployment = canonical(self._space, raw)
            digest = deployment_hash(deployment)
            if digest in self._known():
                continue
            violations = tuple(self._check(deployment))
            proposal = None if violations else self._proposals.ask(raw)
            yield Candidate(kind, deployment, digest, proposal, violations)
        yield from self._sampled()

    def _planned(self, interrupted: Sequence[Raw]) -> Iterator[tuple[str, Raw]]:
        base = baseline(self._space)
        yield "baseline", base
        for seed in self._space.seeds:
            yield "seed", {**base, **seed}
        for raw in interrupted:
            yield "search", {**base, **raw}

    def _sampled(self) -> Iterator[Candidate]:
        fruitless = 0
        while True:
            proposal = self._next(helped=fruitless >= MAX_FRUITLESS_IN_A_ROW)
            if proposal is None:
                return
            twin = self._known().get(proposal.deployment_hash)
            if twin is not None:
                self._proposals.tell(proposal, twin)
                fruitless += 1
                continue
            violations = tuple(self._check(proposal.deployment))
            fruitless = fruitless + 1 if violations else 0
            yield Candidate(
                "search", proposal.deployment, proposal.deployment_hash, proposal, violations
            )

    def _next(self, *, helped: bool) -> Proposal | None:
        if not helped and not self._in_order:
            return self._proposals.ask()
        raw = self._untried()
        return None if raw is None else self._proposals.ask(raw)

    def _untried(self) -> Raw | None:
        """A random deployment that is new and breaks no rule; None if there is none."""
        everything = enumerate_canonical(self._searched, ENUMERATION_LIMIT)
        drawn: Iterator[Raw]
        if everything is None:
            drawn = (self._draw() for _ in range(RANDOM_TRIES))
        else:
            if not self._in_order:
                self._random.shuffle(everything)
            drawn = iter(everything)
        known = self._known()
        for deployment in drawn:
            if deployment_hash(deployment) not in known and not self._check(deployment):
                return as_raw(self._searched, deployment)
        return None

    def _draw(self) -> Raw:
        raw = {
            parameter.name: self._random.choice(parameter.values)
            if parameter.values is not None
            else self._random.uniform(float(parameter.low or 0), float(parameter.high or 0))
            for parameter in self._searched.parameters
        }
        return canonical(self._searched, raw)


def as_raw(space: Space, deployment: Mapping[str, Any]) -> Raw:
    """Canonical form → a value for every parameter, defaults where it says nothing."""
    return {name: deployment.get(name, value) for name, value in baseline(space).items()}
