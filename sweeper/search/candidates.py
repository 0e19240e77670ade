"""What a study tries next. New deployments only: planned ones first, then the sampler's.

    what an earlier run left in mid-air → retries it still owed → baseline → seeds of the space
        → seeds of prior knowledge → sampler ⇄ (known or refused: ask again)

A sampler that keeps proposing what is known, or what arithmetic or a learnt bound refuses, is
helped out with a random deployment that is neither. The baseline is never refused by a bound.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from sweeper.estimate.violation import Violation
from sweeper.pareto.repeats import CONFIRM
from sweeper.search.bounds.bound import Bound
from sweeper.search.bounds.learn import Lessons
from sweeper.search.confirmation.turns import Turn
from sweeper.search.in_flight import InFlight
from sweeper.search.policy.chooser import Ground, Guide
from sweeper.search.policy.costs import Costs
from sweeper.search.policy.open import Check, Open, Raw
from sweeper.search.proposals import Proposal, Proposals
from sweeper.search.samplers import is_modelling, make_chooser, sampler_kind
from sweeper.space.canonical import as_raw, baseline, canonical, deployment_hash
from sweeper.space.model import Space
from sweeper.trial.outcome import TrialOutcome

MAX_FRUITLESS_IN_A_ROW = 5


@dataclass(frozen=True)
class Candidate:
    """A deployment nobody tried.

    Attributes:
        kind: baseline | seed | search | confirm.
        deployment: canonical form.
        deployment_hash: of it.
        proposal: Optuna's side of it; None if it lies outside what the sampler searches.
        violations: the rules it breaks; empty if arithmetic has nothing against it.
        bound: the learnt bound it lies in; None if no failed launch speaks against it.
        number: of the trial it goes on with; None for a new one.
        attempt: which launch of that trial it is.
        turn: of a confirmation, which launches what is known already: what it repeats, and how.
    """

    kind: str
    deployment: Raw
    deployment_hash: str
    proposal: Proposal | None
    violations: tuple[Violation, ...] = ()
    bound: Bound | None = None
    number: int | None = None
    attempt: int = 1
    turn: Turn | None = None

    @classmethod
    def of_turn(cls, turn: Turn) -> Candidate:
        """The launch of a confirmation. The sampler is not told of it."""
        return cls(
            CONFIRM,
            dict(turn.deployment),
            turn.deployment_hash,
            None,
            number=turn.number,
            attempt=turn.attempt,
            turn=turn,
        )


class Candidates:
    """Yields candidates of one study.

    Args:
        space: the whole space.
        searched: the part of it the sampler searches (choices proven impossible taken out).
        proposals: the Optuna study over `searched`.
        check: rules a canonical deployment breaks.
        known: deployment hash → its outcome; read anew each time.
        lessons: what failed launches teach; read anew each time.
        guide: prior knowledge, which seeds and orders; None without any.
        costs: what a launch of a deployment costs.
        by_cost: True where the budget is time or money, and not launches.
        era: changes when what `check` refuses may have changed.
        tell: says something to the user.
    """

    def __init__(
        self,
        space: Space,
        searched: Space,
        proposals: Proposals,
        check: Check,
        known: Callable[[], Mapping[str, TrialOutcome]],
        *,
        lessons: Callable[[], Lessons] = Lessons,
        guide: Guide | None = None,
        costs: Costs | None = None,
        by_cost: bool = False,
        era: Callable[[], object] = lambda: None,
        tell: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._space = space
        self._searched = searched
        self._proposals = proposals
        self._check = check
        self._known = known
        self._lessons = lessons
        self._guide = guide
        self._seed = proposals.sampler.seed
        self._open = Open(searched, check, lessons, era)
        self._chooser = make_chooser(
            Ground(
                searched,
                self._open,
                proposals.objective,
                proposals.sampler,
                costs or Costs(),
                by_cost=by_cost,
                guide=guide,
                tell=tell,
            )
        )

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
        yield from self._guided()
        yield from self._sampled()

    def _guided(self) -> Iterator[Candidate]:
        """What prior knowledge would launch first, one at a time: each is learnt from."""
        while self._guide is not None:
            suggested = self._guide.seeds(1)
            known = self._known()
            new = [
                raw
                for raw in suggested
                if deployment_hash(canonical(self._space, raw)) not in known
            ]
            if not new:
                return
            yield self._planned("seed", new[0])

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
        if self._chooser is None:
            yield from self._proposed()
            return
        while True:
            outcomes = sorted(self._known().values(), key=lambda outcome: outcome.number)
            deployment = self._chooser.choose(outcomes, {})
            if deployment is None:
                return
            proposal = self._proposals.ask(as_raw(self._searched, deployment))
            yield Candidate("search", deployment, proposal.deployment_hash, proposal)

    def _proposed(self) -> Iterator[Candidate]:
        """What one of Optuna's samplers proposes, helped out where it only repeats itself."""
        fruitless = 0
        while True:
            known = self._known()
            helped = fruitless >= MAX_FRUITLESS_IN_A_ROW
            proposal = self._untried(known) if helped else self._proposals.ask()
            if proposal is None:
                return
            if proposal.deployment_hash in known:
                self._proposals.drop(proposal)
                fruitless += 1
                continue
            if not self._open.has(proposal.deployment_hash):
                self._proposals.drop(proposal)
                proposal = self._listed_instead(proposal.deployment, known)
                if proposal is None:
                    return
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

    def _listed_instead(
        self, deployment: Raw, known: Mapping[str, TrialOutcome]
    ) -> Proposal | None:
        """What a space that lists its deployments has in the place of one that it has not.

        The nearest, so that a sampler that models gets what it asked for; at random, if it does not
        model and was to draw evenly.
        """
        chance = random.Random(repr((self._seed, len(known))))
        found = (
            self._open.nearest(deployment, known, chance)
            if is_modelling(sampler_kind(self._proposals.sampler))
            else self._open.any(known, chance)
        )
        return None if found is None else self._proposals.ask(as_raw(self._searched, found))

    def _untried(self, known: Mapping[str, TrialOutcome]) -> Proposal | None:
        """A random deployment that is new and that nothing refuses; None if there is none."""
        chance = random.Random(repr((self._seed, len(known))))
        deployment = self._open.any(known, chance)
        if deployment is None:
            return None
        return self._proposals.ask(as_raw(self._searched, deployment))
