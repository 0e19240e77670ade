"""What a study tries next. New deployments only: planned ones first, then the sampler's.

    what an earlier run left in mid-air → retries it still owed → baseline → seeds
        → sampler ⇄ (known or refused: ask again)

A sampler that keeps proposing what is known, or what arithmetic or a learnt bound refuses, is
helped out with a random deployment that is neither. The baseline is never refused by a bound.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sweeper.estimate.violation import Violation
from sweeper.search.bounds.bound import Bound
from sweeper.search.bounds.learn import Lessons
from sweeper.search.in_flight import InFlight
from sweeper.search.proposals import Proposal, Proposals
from sweeper.space.canonical import (
    as_raw,
    baseline,
    canonical,
    deployment_hash,
    enumerate_canonical,
)
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
        violations: the rules it breaks; empty if arithmetic has nothing against it.
        bound: the learnt bound it lies in; None if no failed launch speaks against it.
        number: of the trial it goes on with; None for a new one.
        attempt: which launch of that trial it is.
    """

    kind: str
    deployment: Raw
    deployment_hash: str
    proposal: Proposal | None
    violations: tuple[Violation, ...] = ()
    bound: Bound | None = None
    number: int | None = None
    attempt: int = 1


class Candidates:
    """Yields candidates of one study.

    Args:
        space: the whole space.
        searched: the part of it the sampler searches (choices proven impossible taken out).
        proposals: the Optuna study over `searched`.
        check: rules a canonical deployment breaks.
        known: deployment hash → its outcome; read anew each time.
        seed: of the random way out.
        lessons: what failed launches teach; read anew each time.
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
        lessons: Callable[[], Lessons] = Lessons,
        in_order: bool = False,
    ) -> None:
        self._space = space
        self._searched = searched
        self._proposals = proposals
        self._check = check
        self._known = known
        self._lessons = lessons
        self._random = random.Random(seed)
        self._in_order = in_order

    def each(self, interrupted: InFlight | None = None) -> Iterator[Candidate]:
        """All candidates in order; ends when nothing is left to try.

        Args:
            interrupted: the launch that was running when an earlier tuner died.
        """
        if interrupted is not None:
            yield self._planned(
                interrupted.kind,
                as_raw(self._space, interrupted.deployment),
                number=interrupted.number,
                attempt=interrupted.attempt,
            )
        yield from self._owed()
        for kind, raw in self._plans():
            digest = deployment_hash(canonical(self._space, raw))
            known = self._known().get(digest)
            if known is None:
                yield self._planned(kind, raw)
            elif kind == "baseline" and known.verdict.is_retryable:
                # Nothing can be compared without it, so a later run tries it again.
                attempt = known.attempt + 1
                yield self._planned(kind, raw, number=known.number, attempt=attempt)
        yield from self._sampled()

    def _owed(self) -> Iterator[Candidate]:
        """Second attempts that the end of an earlier run cut off: every fault gets exactly one."""
        for known in list(self._known().values()):
            is_first = known.launched and known.attempt == 1
            if is_first and known.verdict.is_retryable and known.kind != "baseline":
                raw = as_raw(self._space, known.deployment)
                yield self._planned(known.kind, raw, number=known.number, attempt=2)

    def _plans(self) -> Iterator[tuple[str, Raw]]:
        base = baseline(self._space)
        yield "baseline", base
        for seed in self._space.seeds:
            yield "seed", {**base, **seed}

    def _planned(
        self, kind: str, raw: Raw, number: int | None = None, attempt: int = 1
    ) -> Candidate:
        """A given deployment; refused ones may lie outside what the sampler can be told."""
        deployment = canonical(self._space, raw)
        violations = tuple(self._check(deployment))
        proposal = None if violations else self._proposals.ask(raw)
        digest = deployment_hash(deployment)
        bound = None if kind == "baseline" else self._lessons().refusing(deployment)
        return Candidate(kind, deployment, digest, proposal, violations, bound, number, attempt)

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
            bound = self._lessons().refusing(proposal.deployment)
            fruitless = fruitless + 1 if violations or bound is not None else 0
            yield Candidate(
                "search",
                proposal.deployment,
                proposal.deployment_hash,
                proposal,
                violations,
                bound,
            )

    def _next(self, *, helped: bool) -> Proposal | None:
        if not helped and not self._in_order:
            return self._proposals.ask()
        raw = self._untried()
        return None if raw is None else self._proposals.ask(raw)

    def _untried(self) -> Raw | None:
        """A random deployment that is new and that nothing refuses; None if there is none."""
        everything = enumerate_canonical(self._searched, ENUMERATION_LIMIT)
        drawn: Iterator[Raw]
        if everything is None:
            drawn = (self._draw() for _ in range(RANDOM_TRIES))
        else:
            if not self._in_order:
                self._random.shuffle(everything)
            drawn = iter(everything)
        known, lessons = self._known(), self._lessons()
        for deployment in drawn:
            is_new = deployment_hash(deployment) not in known
            if is_new and lessons.refusing(deployment) is None and not self._check(deployment):
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
