"""The study: candidates are refused by arithmetic or launched, until the budget is used.

    candidate ──► breaks a rule, or lies in a learnt bound? ──► journal without a launch ──┐
        │                                                                                  ▼
        └──► launch (once more if its surroundings failed) ──► journal ──► MLflow ──► tell Optuna
                                                                  │
                                   a fault that will not go away ─┘──► the study stops

The journal line is written before anything else learns of an outcome.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from sweeper.engine.sealed_log import seal
from sweeper.estimate.narrow import narrow
from sweeper.estimate.violation import Violation
from sweeper.launcher.local import LocalLauncher
from sweeper.quality.key import drafting
from sweeper.search import in_flight, stopping
from sweeper.search.bounds.live import LearntBounds
from sweeper.search.budget import Spent, eta_s, exhausted
from sweeper.search.candidates import Candidate, Candidates
from sweeper.search.in_flight import InFlight
from sweeper.search.known_quality import KnownQuality, known_quality
from sweeper.search.objective import Objective
from sweeper.search.progress import summarise_progress
from sweeper.search.proposals import Proposals
from sweeper.search.reference_file import keep_reference, stored_reference
from sweeper.search.refused import refused
from sweeper.search.setup import StudySetup
from sweeper.space.canonical import baseline, canonical
from sweeper.tracking.journal import Journal
from sweeper.tracking.mlflow_log import MlflowTracker
from sweeper.tracking.paths import StudyPaths
from sweeper.trial.checkpoint import LOG_NAME as QUANTIZE_LOG
from sweeper.trial.outcome import TrialOutcome
from sweeper.trial.plan import TrialPlan
from sweeper.trial.progress import Listener, Note, TrialEnded, TrialStarted
from sweeper.verdicts import Verdict

# Refusals are free, but a space that is nearly all infeasible must not spin forever.
MAX_REFUSED_IN_A_ROW = 300


class StudyRun:
    """Runs one study to the end of its budget.

    Args:
        setup: the study's surroundings.
        paths: the study's folder; its lock is held.
        journal: its record, the source of truth.
        tracker: MLflow; never stops a study.
        listener: told of everything worth showing.
    """

    def __init__(
        self,
        setup: StudySetup,
        paths: StudyPaths,
        journal: Journal,
        tracker: MlflowTracker,
        listener: Listener,
    ) -> None:
        self._setup = setup
        self._paths = paths
        self._journal = journal
        self._tracker = tracker
        self._listener = listener
        self._launcher = LocalLauncher(setup.engine)
        self._token = f"sweeper-{secrets.token_hex(8)}"
        self._outcomes: list[TrialOutcome] = journal.read()
        self._reference = stored_reference(paths, self._outcomes)
        cfg = setup.cfg
        self._objective = Objective(
            cfg.objective, cfg.select.slo, cfg.load, cfg.quality.kind != "none"
        )
        self._bounds = LearntBounds(paths.dropped_bounds_json, lambda: self._outcomes, listener)
        self._launches: list[TrialOutcome] = []
        self._refused_in_a_row = 0

    @property
    def outcomes(self) -> list[TrialOutcome]:
        """Every journalled attempt so far, oldest first."""
        return list(self._outcomes)

    def run(self) -> str:
        """Run until the budget is used or the space exhausted.

        Returns:
            Why it ended, one line.

        Raises:
            StudyError: the baseline cannot run, the surroundings fail again and again, or a launch
                left the machine unfit for the next one.
            KeyboardInterrupt: everything measured is kept.
        """
        first = self._latest().get(0)
        self._anchor(first)
        if first is not None and first.verdict.is_config_fault:
            stopping.check_baseline(first, self._paths)
        space = self._setup.space
        searched, dropped = narrow(space, self._violations)
        for item in dropped:
            self._listener(
                Note(f"{item.parameter}={item.value} is left out: {item.violation.cause}")
            )
        sampler = self._setup.cfg.sampler
        lessons = self._bounds.look()
        told = [outcome for outcome in self._latest().values() if not lessons.is_lifted(outcome)]
        proposals = Proposals(self._paths.optuna_journal, searched, sampler, self._objective, told)
        self._tracker.start()
        if self._outcomes:
            self._tracker.replay(self._outcomes)
        candidates = Candidates(
            space,
            searched,
            proposals,
            self._violations,
            self._by_hash,
            seed=sampler.seed,
            lessons=self._bounds.look,
            in_order=sampler.kind == "grid",
        )
        left = in_flight.interrupted(self._paths.in_flight_json, self._outcomes)
        ended = self._out_of_budget()
        if ended is not None:
            return ended
        if left is not None:
            log = self._paths.server_log(left.number, left.attempt)
            for path in (log, log.with_name(QUANTIZE_LOG)):
                seal(path)
        for candidate in candidates.each(left):
            self._try(candidate, proposals)
            ended = self._out_of_budget()
            if ended is not None:
                return ended
        refusing = " or is refused by a learnt bound" if self._bounds.look().active else ""
        return f"every deployment of the space has been tried{refusing}"

    def _try(self, candidate: Candidate, proposals: Proposals) -> None:
        number = candidate.number
        if number is None:
            number = max(self._latest(), default=-1) + 1
        if candidate.proposal is not None:
            proposals.assign(candidate.proposal, number)
        told = refused(number, candidate, self._setup.conditions(), self._paths.name)
        if told is None:
            outcome = self._launch_with_retry(number, candidate)
        else:
            outcome = told
            self._keep(outcome)
            self._note_refused_seed(candidate, outcome)
        self._refused_in_a_row = 0 if outcome.launched else self._refused_in_a_row + 1
        if candidate.kind == "baseline":
            self._anchor(outcome)
        if candidate.proposal is not None:
            proposals.tell(candidate.proposal, outcome)
        else:
            proposals.note_refused(outcome)
        if candidate.kind == "baseline":
            stopping.check_baseline(outcome, self._paths)

    def _note_refused_seed(self, candidate: Candidate, outcome: TrialOutcome) -> None:
        """A seed is its user's own wish: that it was not launched must not go unnoticed."""
        if candidate.kind == "seed" and candidate.bound is not None:
            self._listener(Note(f"seed {outcome.number}: {outcome.cause}; {outcome.remedy}"))

    def _launch_with_retry(self, number: int, candidate: Candidate) -> TrialOutcome:
        outcome = self._launch(number, candidate, candidate.attempt)
        is_first = candidate.attempt % 2 == 1
        if outcome.verdict.is_retryable and is_first and self._out_of_budget() is None:
            self._listener(
                Note(f"trial {number}: {outcome.verdict}: {outcome.cause}; trying once more")
            )
            outcome = self._launch(number, candidate, candidate.attempt + 1)
        return outcome

    def _launch(self, number: int, candidate: Candidate, attempt: int) -> TrialOutcome:
        self._listener(
            TrialStarted(
                number,
                candidate.kind,
                candidate.deployment,
                self._spent().launches,
                self._setup.cfg.budget.launches,
            )
        )
        launch = InFlight(number, attempt, candidate.kind, candidate.deployment)
        in_flight.note(self._paths.in_flight_json, launch)
        result = self._launcher.run(self._plan(number, candidate, attempt), self._listener)
        if result.reference is not None:
            keep_reference(result.reference, self._paths)
            self._reference = result.reference
        self._keep(result.outcome)
        in_flight.clear(self._paths.in_flight_json)
        self._launches.append(result.outcome)
        stopping.check_halt(result, self._paths)
        if candidate.kind != "baseline":
            stopping.check_faults(self._launches, self._bounds.look(), self._paths)
        return result.outcome

    def _plan(self, number: int, candidate: Candidate, attempt: int) -> TrialPlan:
        setup, cfg = self._setup, self._setup.cfg
        resolved = setup.resolve(candidate.deployment)
        key = setup.quality_key(candidate.deployment)
        defaults = canonical(setup.space, baseline(setup.space))
        drafts, plain = drafting(resolved.parameters), drafting(setup.resolve(defaults).parameters)
        known = self._known_quality(key, drafts, plain)
        run_dir = self._paths.trial_dir(number, attempt)
        run_dir.mkdir(parents=True, exist_ok=True)
        return TrialPlan(
            number=number,
            kind=candidate.kind,
            attempt=attempt,
            deployment=candidate.deployment,
            deployment_hash=candidate.deployment_hash,
            checkpoint=resolved.checkpoint,
            engine_parameters=resolved.parameters,
            run_dir=run_dir,
            record_path=self._paths.launch_record,
            token=self._token,
            start_timeout_s=setup.start_timeout_s,
            hang_timeout_s=cfg.engine.hang_timeout_s,
            device_wait_s=cfg.engine.device_wait_s,
            workload=cfg.workload,
            load=cfg.load,
            quality=cfg.quality,
            device_count=setup.device_count(candidate.deployment),
            seed=cfg.workload.seed,
            quality_key=key,
            known_quality=known.score,
            drafting=drafts,
            to_write=known.to_write,
            plain_written=known.plain_written,
            reference=self._reference,
            may_write_reference=key == setup.quality_key(defaults) and drafts == plain,
            conditions=setup.conditions(),
            revision=setup.model.revision if resolved.is_model_itself(setup.model) else None,
            trust_remote_code=cfg.model.trust_remote_code,
            dtype=cfg.model.dtype,
            model=setup.model.facts,
            hardware=setup.hardware,
            record_text=cfg.record.text,
            to_make=resolved.to_make,
            weights=resolved.weights,
        )

    def _known_quality(self, key: str, drafts: str, plain: str) -> KnownQuality:
        known = known_quality(self._outcomes, key, drafts, plain)
        writes = self._reference is not None and self._setup.cfg.quality.written_tokens > 0
        return known if writes else replace(known, to_write=False)

    def _keep(self, outcome: TrialOutcome) -> None:
        """Journal first; then everyone else may know."""
        self._journal.append(outcome)
        self._outcomes.append(outcome)
        self._tracker.record(outcome)
        self._listener(TrialEnded(outcome))
        left_s = eta_s(self._outcomes, self._spent(), self._setup.cfg.budget)
        self._listener(summarise_progress(self._outcomes, self._setup.cfg, left_s))

    def _anchor(self, outcome: TrialOutcome | None) -> None:
        """Fix what the objective measures against once the baseline is known."""
        if outcome is not None and outcome.verdict is Verdict.OK and outcome.valid_points:
            self._objective.anchor(outcome)

    def _violations(self, deployment: Mapping[str, Any]) -> list[Violation]:
        longest = self._reference.longest_tokens if self._reference is not None else 0
        return self._setup.violations(deployment, longest)

    def _latest(self) -> dict[int, TrialOutcome]:
        return {outcome.number: outcome for outcome in self._outcomes}

    def _by_hash(self) -> Mapping[str, TrialOutcome]:
        """What is known; a refusal by a bound that no longer holds is not."""
        lessons = self._bounds.look()
        return {
            outcome.deployment_hash: outcome
            for outcome in self._outcomes
            if not lessons.is_lifted(outcome)
        }

    def _spent(self) -> Spent:
        price = self._setup.cfg.hardware.price_per_hour
        return Spent.of(self._outcomes, price, self._setup.hardware.device_count)

    def _out_of_budget(self) -> str | None:
        if self._refused_in_a_row >= MAX_REFUSED_IN_A_ROW:
            return f"{self._refused_in_a_row} deployments in a row were refused before launch"
        return exhausted(self._spent(), self._setup.cfg.budget)
