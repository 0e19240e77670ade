"""The Optuna study behind a sweep: asks for deployments and is told outcomes.

`trials.jsonl` is the truth. `optuna.journal` is derived from it: each start of the tuner writes it
anew and tells it every outcome so far. So a torn file, a trial left running by a kill, or rules
that have learnt to refuse more can never make a study impossible to continue.
"""

from __future__ import annotations

import json
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
from sweeper.trial.outcome import TrialOutcome

if TYPE_CHECKING:
    import optuna

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
        self._conditional = is_conditional(sampler_kind(sampler))
        self._study = _fresh_study(path, sampler, objective)
        for outcome in outcomes:
            self._retell(outcome)

    def ask(self, raw: Mapping[str, Any] | None = None) -> Proposal:
        """Ask the sampler, or put in a given deployment (`raw`: value by parameter).

        Raises:
            ValueError: a value of `raw` lies outside the searched space.
        """
        from sweeper.space.distributions import encode, flat_distributions, suggest

        joint = raw is not None or not self._conditional
        if raw is None:
            trial = self._study.ask(flat_distributions(self._space) if joint else None)
        else:
            with self._without_modelling():
                self._study.enqueue_trial(encode(self._space, raw))
                trial = self._study.ask(flat_distributions(self._space))
        suggested = suggest(trial, self._space, conditional=not joint)
        deployment = canonical(self._space, suggested)
        digest = deployment_hash(deployment)
        trial.set_user_attr(HASH_ATTR, digest)
        trial.set_user_attr("deployment", json.dumps(deployment, sort_keys=True))
        return Proposal(trial, deployment, digest)

    def assign(self, proposal: Proposal, number: int) -> None:
        """Note which trial of the journal this proposal becomes."""
        proposal.trial.set_user_attr(NUMBER_ATTR, number)

    def tell(self, proposal: Proposal, outcome: TrialOutcome) -> None:
        """Tell the sampler how a proposal ended (or how its earlier twin did)."""
        self._tell(proposal.trial, self._objective.tell(outcome))

    def note_refused(self, outcome: TrialOutcome) -> None:
        """Record a deployment that was refused and lies outside what the sampler searches."""
        import optuna
        from optuna.trial import TrialState

        self._study.add_trial(
            optuna.trial.create_trial(
                state=TrialState.PRUNED,
                user_attrs={NUMBER_ATTR: outcome.number, HASH_ATTR: outcome.deployment_hash},
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

    @contextmanager
    def _without_modelling(self) -> Iterator[None]:
        """Spare the fit of a model whose proposal would be overruled anyway."""
        from optuna.samplers import RandomSampler

        modelling, self._study.sampler = self._study.sampler, RandomSampler()
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


def _fresh_study(path: Path, sampler: SamplerConfig, objective: Objective) -> optuna.Study:
    import optuna
    from optuna.storages import JournalStorage
    from optuna.storages.journal import JournalFileBackend, JournalFileOpenLock

    for stale in (path, path.with_name(path.name + ".lock")):
        stale.unlink(missing_ok=True)
    backend = JournalFileBackend(str(path), lock_obj=JournalFileOpenLock(str(path)))
    study = optuna.create_study(
        study_name="sweeper",
        storage=JournalStorage(backend),
        directions=objective.directions,
        sampler=make_sampler(sampler),
    )
    with warnings.catch_warnings():
        # Names only label plots; that their setter may still change is no user's concern.
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        study.set_metric_names(objective.names)
    return study
