"""The Optuna study behind a sweep: asks for deployments, is told outcomes, survives a kill.

`optuna.journal` is Optuna's own record; `trials.jsonl` is the truth. `reconcile` brings the first
up to date with the second: a trial that was running when the tuner died is told its outcome if the
journal has it, and FAIL if not.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sweeper.config.schema import SamplerConfig
from sweeper.search.objective import Objective, Told
from sweeper.search.samplers import is_conditional, make_sampler, sampler_kind
from sweeper.space.canonical import canonical, deployment_hash
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
        path: `optuna.journal` of the study.
        space: what is searched.
        sampler: which sampler, and its seed.
        objective: names and directions of what is told.
    """

    def __init__(
        self, path: Path, space: Space, sampler: SamplerConfig, objective: Objective
    ) -> None:
        import optuna
        from optuna.storages import JournalStorage
        from optuna.storages.journal import JournalFileBackend, JournalFileOpenLock

        self._space = space
        self._objective = objective
        self._conditional = is_conditional(sampler_kind(sampler))
        backend = JournalFileBackend(str(path), lock_obj=JournalFileOpenLock(str(path)))
        self._study = optuna.create_study(
            study_name="sweeper",
            storage=JournalStorage(backend),
            directions=objective.directions,
            sampler=make_sampler(sampler),
            load_if_exists=True,
        )
        with warnings.catch_warnings():
            # Names only label plots; that their setter may still change is no user's concern.
            warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
            self._study.set_metric_names(objective.names)

    def ask(self, raw: Mapping[str, Any] | None = None) -> Proposal:
        """Ask the sampler, or put in a given deployment (`raw`: value by parameter)."""
        from sweeper.space.distributions import encode, flat_distributions, suggest

        if raw is not None:
            self._study.enqueue_trial(encode(self._space, raw))
        if self._conditional and raw is None:
            trial = self._study.ask()
        else:
            trial = self._study.ask(flat_distributions(self._space))
        suggested = suggest(trial, self._space, conditional=self._conditional and raw is None)
        deployment = canonical(self._space, suggested)
        digest = deployment_hash(deployment)
        trial.set_user_attr(HASH_ATTR, digest)
        trial.set_user_attr("deployment", json.dumps(deployment, sort_keys=True))
        return Proposal(trial, deployment, digest)

    def assign(self, proposal: Proposal, number: int) -> None:
        """Note which trial of the journal this proposal becomes, before anything is launched."""
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

    def reconcile(self, outcomes: Mapping[int, TrialOutcome]) -> list[dict[str, Any]]:
        """Close what an earlier run left open; the deployments that never got an outcome."""
        import optuna
        from optuna.trial import TrialState

        interrupted: list[dict[str, Any]] = []
        stale = self._study.get_trials(deepcopy=False, states=(TrialState.RUNNING,))
        for frozen in stale:
            outcome = outcomes.get(frozen.user_attrs.get(NUMBER_ATTR, -1))
            trial = optuna.trial.Trial(self._study, frozen._trial_id)
            same = outcome and outcome.deployment_hash == frozen.user_attrs.get(HASH_ATTR)
            if outcome is not None and same:
                self._tell(trial, self._objective.tell(outcome))
            else:
                self._study.tell(trial, state=TrialState.FAIL)
                interrupted.append(json.loads(frozen.user_attrs.get("deployment", "{}")))
        return interrupted

    def missing(self, outcomes: Sequence[TrialOutcome]) -> list[TrialOutcome]:
        """Journalled trials that Optuna has never heard of (its journal was lost or cut)."""
        from optuna.trial import TrialState

        told = {
            frozen.user_attrs.get(NUMBER_ATTR)
            for frozen in self._study.get_trials(deepcopy=False)
            if frozen.state != TrialState.WAITING
        }
        return [outcome for outcome in outcomes if outcome.number not in told]

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
