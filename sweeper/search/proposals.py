"""The Optuna study behind a sweep: asks for deployments and is told outcomes.

`trials.jsonl` is the truth. `optuna.journal` is derived from it: each start of the tuner writes it
anew and tells it every outcome so far. So a torn file, a trial left running by a kill, or rules
that have learnt to refuse more can never make a study impossible to continue.

What a sampler of Optuna's proposes follows from what it was told and from the seed: it is made anew
for every question, its seed drawn from the study's and from how much is known. So it does not
matter whether the tuner that asks has run all along or was started a moment ago.
"""

from __future__ import annotations

import json
import random
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sweeper.config.schema import SamplerConfig
from sweeper.search.objective import Objective, Told
from sweeper.search.samplers import is_conditional, make_sampler, sampler_kind
from sweeper.space.canonical import as_raw, canonical, deployment_hash
from sweeper.space.model import Space
from sweeper.tracking.mlflow_metrics import BEST_METRICS, best_point
from sweeper.trial.outcome import TrialOutcome

if TYPE_CHECKING:
    import optuna
    from optuna.samplers import BaseSampler

    from sweeper.search.optuna_file import DerivedStorage

HASH_ATTR = "deployment_hash"
NUMBER_ATTR = "number"


@dataclass(frozen=True)
class Proposal:
    """A deployment to try: Optuna's trial, and its canonical form."""

    trial: optuna.trial.Trial
    deployment: dict[str, Any]
    deployment_hash: str


class Proposals:
    """Ask and tell over one Optuna study kept in a journal file.

    Args:
        path: `optuna.journal` of the study; replaced.
        space: what is searched.
        sampler: which sampler, and its seed.
        objective: names and directions of what is told; anchored, if there is a baseline.
        outcomes: the journal so far, the last attempt of each trial.
    """

    def __init__(
        self,
        path: Path,
        space: Space,
        sampler: SamplerConfig,
        objective: Objective,
        outcomes: Iterable[TrialOutcome] = (),
    ) -> None:
        self._space = space
        self._objective = objective
        self._sampler = sampler
        self._conditional = is_conditional(sampler_kind(sampler))
        self._numbers: set[int] = set()
        self._asked_since = 0
        self._study, self._storage = _fresh_study(path, sampler, objective)
        for outcome in outcomes:
            self._retell(outcome)

    @property
    def sampler(self) -> SamplerConfig:
        return self._sampler

    @property
    def objective(self) -> Objective:
        return self._objective

    def ask(self, raw: Mapping[str, Any] | None = None) -> Proposal:
        """Ask the sampler, or put in a given deployment (`raw`: value by parameter).

        Raises:
            ValueError: a value of `raw` lies outside the searched space.
        """
        proposal = self._sampled() if raw is None else self._given(raw)
        proposal.trial.set_user_attr(HASH_ATTR, proposal.deployment_hash)
        told = json.dumps(proposal.deployment, sort_keys=True)
        proposal.trial.set_user_attr("deployment", told)
        return proposal

    def _sampled(self) -> Proposal:
        from sweeper.space.distributions import flat_distributions

        seed = _drawn(self._sampler.seed, len(self._numbers), self._asked_since)
        self._asked_since += 1
        self._study.sampler = make_sampler(self._sampler, seed)
        if self._conditional:
            with self._storage.few():
                return self._proposal(self._study.ask())
        proposal = self._proposal(self._study.ask(flat_distributions(self._space)))
        # Values of closed branches are not in the journal, so they must not be inherited either.
        self.drop(proposal)
        return self._given(as_raw(self._space, proposal.deployment))

    def _given(self, raw: Mapping[str, Any]) -> Proposal:
        from sweeper.space.distributions import encode, flat_distributions

        flat = None if self._conditional else flat_distributions(self._space)
        with self._without_modelling():
            self._study.enqueue_trial(encode(self._space, raw))
            return self._proposal(self._study.ask(flat))

    def _proposal(self, trial: optuna.trial.Trial) -> Proposal:
        from sweeper.space.distributions import suggest

        suggested = suggest(trial, self._space, conditional=self._conditional)
        deployment = canonical(self._space, suggested)
        return Proposal(trial, deployment, deployment_hash(deployment))

    def assign(self, proposal: Proposal, number: int) -> None:
        """Note which trial of the journal this proposal becomes."""
        proposal.trial.set_user_attr(NUMBER_ATTR, number)

    def tell(self, proposal: Proposal, outcome: TrialOutcome) -> None:
        """Tell the sampler how a proposal ended."""
        self._note(outcome)
        for name, value in for_readers(outcome).items():
            proposal.trial.set_user_attr(name, value)
        self._tell(proposal.trial, self._objective.tell(outcome))

    def drop(self, proposal: Proposal) -> None:
        """Take back a proposal that is known already: told twice, it would count twice."""
        self._tell(proposal.trial, Told(None, 0.0))

    def note_refused(self, outcome: TrialOutcome) -> None:
        """Record a deployment that was refused and lies outside what the sampler searches."""
        import optuna
        from optuna.trial import TrialState

        self._note(outcome)
        self._study.add_trial(
            optuna.trial.create_trial(
                state=TrialState.PRUNED,
                user_attrs={
                    NUMBER_ATTR: outcome.number,
                    HASH_ATTR: outcome.deployment_hash,
                    "deployment": json.dumps(outcome.deployment, sort_keys=True, default=str),
                    **for_readers(outcome),
                },
            )
        )

    def _retell(self, outcome: TrialOutcome) -> None:
        try:
            proposal = self.ask(as_raw(self._space, outcome.deployment))
        except ValueError:
            self.note_refused(outcome)
            return
        self.assign(proposal, outcome.number)
        self.tell(proposal, outcome)

    def _note(self, outcome: TrialOutcome) -> None:
        self._numbers.add(outcome.number)
        self._asked_since = 0

    @contextmanager
    def _without_modelling(self) -> Iterator[None]:
        """Spare the fit of a model whose proposal would be overruled anyway."""
        modelling = self._study.sampler
        self._study.sampler = _overruled(modelling)
        try:
            yield
        finally:
            self._study.sampler = modelling

    def _tell(self, trial: optuna.trial.Trial, told: Told) -> None:
        """COMPLETE with values, PRUNED with a positive constraint, or FAIL (DESIGN: outcomes)."""
        from optuna.trial import TrialState

        if told.values is not None:
            trial.set_constraint("feasible", 0.0)
            self._study.tell(trial, list(told.values))
        elif told.violation > 0:
            trial.set_constraint("feasible", told.violation)
            self._study.tell(trial, state=TrialState.PRUNED)
        else:
            self._study.tell(trial, state=TrialState.FAIL)


def for_readers(outcome: TrialOutcome) -> dict[str, Any]:
    """What people who open the file in Optuna's dashboard see of a trial; no sampler reads it."""
    told = outcome.without_secrets()
    best = best_point(outcome.points)
    known = {
        "kind": told.kind,
        "verdict": str(told.verdict),
        "cause": told.cause or None,
        "remedy": told.remedy or None,
        "partial": told.partial,
        **({} if best is None else {f"best_{n}": best.metrics.get(n) for n in BEST_METRICS}),
    }
    return {name: value for name, value in known.items() if value is not None}


def _drawn(*numbers: int) -> int:
    """A seed for these numbers: near ones must not give near seeds."""
    return random.Random(repr(numbers)).getrandbits(32)


def _overruled(modelling: BaseSampler) -> BaseSampler:
    """A sampler for trials whose values are given; generations are counted all the same."""
    from optuna.samplers import NSGAIISampler, RandomSampler

    class Given(RandomSampler):
        def before_trial(self, study: optuna.Study, trial: optuna.trial.FrozenTrial) -> None:
            if isinstance(modelling, NSGAIISampler):
                generation = modelling.get_trial_generation(study, trial)
                modelling.get_parent_population(study, generation)  # kept, in this order

    return Given(seed=0)


def _fresh_study(
    path: Path, sampler: SamplerConfig, objective: Objective
) -> tuple[optuna.Study, DerivedStorage]:
    import optuna

    from sweeper.search.optuna_file import DerivedStorage

    for stale in (path, path.with_name(path.name + ".lock")):
        stale.unlink(missing_ok=True)
    signs = [1 if direction == "maximize" else -1 for direction in objective.directions]
    storage = DerivedStorage(path, signs)
    study = optuna.create_study(
        study_name="sweeper",
        storage=storage,
        directions=objective.directions,
        sampler=make_sampler(sampler, sampler.seed),
    )
    with warnings.catch_warnings():
        # Names only label plots; that their setter may still change is no user's concern.
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        study.set_metric_names(objective.names)
    return study, storage
