"""One study on a known problem: the product's own search code, its launches read from the table.

    Candidates ⇄ Proposals ──► deployment ──► table ──► outcome ──► told ──► what is reached so far

This is what `sweeper.search.loop` does with a launcher, less the journal, MLflow and the terminal.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.efficiency.known import Known
from benchmarks.efficiency.policies import Policy
from benchmarks.efficiency.priors import TablePrior
from sweeper.config.schema import SamplerConfig, SelectConfig, SweeperConfig
from sweeper.estimate.narrow import narrow
from sweeper.search.bounds.live import LearntBounds
from sweeper.search.candidates import Candidate, Candidates
from sweeper.search.loop import MAX_REFUSED_IN_A_ROW
from sweeper.search.objective import Objective, load_curve, log_hypervolume
from sweeper.search.priors.guide import Guide
from sweeper.search.proposals import Proposals
from sweeper.search.refused import refused
from sweeper.trial.outcome import TrialOutcome
from sweeper.verdicts import Verdict

FRACTIONS = (0.90, 0.95, 0.99)
FRONTIER, SLO = "frontier", "slo"


@dataclass(frozen=True)
class Reached:
    """When a study came so far.

    Attributes:
        launches: until then, the baseline counted; None if the study ended before.
        virtual_s: of all these launches.
    """

    launches: int | None
    virtual_s: float | None


@dataclass(frozen=True)
class Result:
    """What a study came to.

    Attributes:
        reached: fraction of the best → when.
        launches: of the whole study.
        virtual_s: likewise.
        failed: launches that gave no point.
        share: of the best at its end.
    """

    reached: dict[float, Reached]
    launches: int
    virtual_s: float
    failed: int
    share: float


class Progress:
    """What is reached after each launch, as a share of the best of the whole table."""

    def __init__(self, known: Known, kind: str) -> None:
        self._known = known
        self._kind = kind
        self._curve: list[tuple[float, float]] = []
        self._under_slo = 0.0
        self.virtual_s = 0.0

    def add(self, outcome: TrialOutcome) -> float:
        """Count a launch; returns the share reached."""
        self.virtual_s += outcome.timings_s["total"]
        if outcome.verdict is Verdict.OK:
            if self._kind == FRONTIER:
                self._curve += load_curve(outcome.valid_points, self._known.objective)
            else:
                self._under_slo = max(self._under_slo, self._known.under_slo(outcome) or 0.0)
        return self.share

    @property
    def share(self) -> float:
        if self._kind == FRONTIER:
            return log_hypervolume(self._curve, self._known.corner) / self._known.best_volume
        best = self._known.best_under_slo
        return self._under_slo / best if best else 0.0


def run(
    known: Known, policy: Policy, seed: int, kind: str, most: int, *, other: Known | None = None
) -> Result:
    """A study that ends when the last fraction is reached, or after `most` launches.

    Args:
        known: the problem.
        policy: who proposes.
        seed: of the policy.
        kind: `frontier` or `slo`: what is told, and what is reached.
        most: launches at most.
        other: the same deployments on another GPU: what a prior is made of.
    """
    with tempfile.TemporaryDirectory(prefix="efficiency-", dir=_memory()) as folder:
        return _Study(known, policy, seed, kind, folder=Path(folder), other=other).run(most)


def best_of(
    known: Known, policy: Policy, seed: int, kind: str, launches: int
) -> list[TrialOutcome]:
    """Every outcome of a study of so many launches, whatever its objective."""
    with tempfile.TemporaryDirectory(prefix="efficiency-", dir=_memory()) as folder:
        study = _Study(known, policy, seed, kind, folder=Path(folder), other=None)
        study.run(launches, to_the_end=True)
        return study.outcomes


class _Study:
    """A study that is going on."""

    def __init__(
        self,
        known: Known,
        policy: Policy,
        seed: int,
        kind: str,
        *,
        folder: Path,
        other: Known | None,
    ) -> None:
        self._known = known
        self._kind = kind
        self.outcomes: list[TrialOutcome] = []
        self._by_hash: dict[str, TrialOutcome] = {}
        self._progress = Progress(known, kind)
        self._reached: dict[float, Reached] = {}
        self._launches = self._failed = 0
        objective = replace(known.objective, kind=kind)
        self._objective = Objective(objective, known.slo, known.load, with_quality=False)
        space = policy.order(known.space)
        searched, _ = narrow(space, known.check)
        sampler = SamplerConfig(kind=policy.sampler, seed=seed)
        journal = folder / "optuna.journal"
        self._proposals = Proposals(journal, searched, sampler, self._objective)
        bounds = LearntBounds(folder / "dropped.json", lambda: self.outcomes, _unheard)
        self._guide = None
        if policy.prior != "none" and other is not None:
            self._guide = Guide(
                [TablePrior(other, policy.prior, seed)],
                SweeperConfig(
                    objective=objective,
                    load=known.load,
                    select=SelectConfig(slo=known.slo),
                    sampler=sampler,
                ),
                searched,
                lambda one: bool(known.check(one)) or bounds.look().refusing(one) is not None,
            )
        self._candidates = Candidates(
            space,
            searched,
            self._proposals,
            known.check,
            lambda: self._by_hash,
            lessons=bounds.look,
            guide=self._guide,
        )

    def run(self, most: int, *, to_the_end: bool = False) -> Result:
        """Launch until the last fraction is reached (or on, `to_the_end`), `most` times at most."""
        refused_in_a_row = 0
        for candidate in self._candidates.each():
            number = len(self.outcomes)
            told = refused(number, candidate, {}, self._known.name)
            launched = told is None
            outcome = told or self._launch(number, candidate)
            self.outcomes.append(outcome)
            self._by_hash[outcome.deployment_hash] = outcome
            if self._guide is not None:
                self._guide.learn(outcome)
            refused_in_a_row = 0 if launched else refused_in_a_row + 1
            if candidate.kind == "baseline":
                self._objective.anchor(outcome)
            if candidate.proposal is None:
                self._proposals.note_refused(outcome)
            else:
                self._proposals.assign(candidate.proposal, number)
                self._proposals.tell(candidate.proposal, outcome)
            is_found = len(self._reached) == len(FRACTIONS) and not to_the_end
            if is_found or self._launches >= most or refused_in_a_row >= MAX_REFUSED_IN_A_ROW:
                break
        never = Reached(None, None)
        reached = {fraction: self._reached.get(fraction, never) for fraction in FRACTIONS}
        progress = self._progress
        return Result(reached, self._launches, progress.virtual_s, self._failed, progress.share)

    def _launch(self, number: int, candidate: Candidate) -> TrialOutcome:
        outcome = self._known.outcome(number, candidate.kind, candidate.deployment)
        self._launches += 1
        self._failed += outcome.verdict is not Verdict.OK
        share = self._progress.add(outcome)
        for fraction in FRACTIONS:
            if share >= fraction - 1e-9 and fraction not in self._reached:
                self._reached[fraction] = Reached(self._launches, self._progress.virtual_s)
        return outcome


def _unheard(event: object) -> None:
    """Nobody watches."""


def _memory() -> Path | None:
    """A folder in memory where there is one: the sampler's journal is synced at every line."""
    shared = Path("/dev/shm")
    return shared if shared.is_dir() else None
