"""The study: candidates are refused by arithmetic or launched, until the budget is used.

    candidate ──► breaks a rule, or lies in a learnt bound? ──► journal without a launch ──┐
        │                                                                                  ▼
        └──► launch (once more if its surroundings failed) ──► journal ──► MLflow ──► tell Optuna
                                                                  │
                                   a fault that will not go away ─┘──► the study stops
    then the best and the baseline once more, in turns ──► journal ──► MLflow

The journal line is written before anything else learns of an outcome.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sweeper.engine.sealed_log import seal
from sweeper.estimate.narrow import narrow
from sweeper.estimate.violation import Violation
from sweeper.launcher.local import LocalLauncher
from sweeper.pareto.repeats import CONFIRM
from sweeper.search import in_flight, stopping
from sweeper.search.bounds.live import LearntBounds
from sweeper.search.budget import Account, Spent, exhausted
from sweeper.search.calibration import LiveCalibration
from sweeper.search.candidates import Candidate, Candidates
from sweeper.search.confirmation.live import Confirmation
from sweeper.search.in_flight import InFlight
from sweeper.search.objective import Objective
from sweeper.search.outcome_index import OutcomeIndex
from sweeper.search.planner import Planner
from sweeper.search.policy.costs import Costs
from sweeper.search.priors.guide import Guide
from sweeper.search.priors.lead import guide_of
from sweeper.search.progress import Watch
from sweeper.search.proposals import Proposals
from sweeper.search.reference_file import keep_reference, stored_reference
from sweeper.search.refused import refused
from sweeper.search.setup import StudySetup
from sweeper.search.sharing import share_conditions
from sweeper.search.standing import Standing
from sweeper.tracking.journal import Journal
from sweeper.tracking.mlflow_log import MlflowTracker
from sweeper.tracking.paths import StudyPaths
from sweeper.trial.checkpoint import LOG_NAME as QUANTIZE_LOG
from sweeper.trial.outcome import TrialOutcome
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
        self._outcomes: list[TrialOutcome] = journal.read()
        share_conditions(self._outcomes)
        # A table tells the quality of its deployments: nothing is scored against a reference.
        is_scored = setup.table is None
        self._reference = stored_reference(paths, self._outcomes) if is_scored else None
        cfg = setup.cfg
        self._objective = Objective(
            cfg.objective, cfg.select.slo, cfg.load, cfg.quality.kind != "none"
        )
        self._calibration = LiveCalibration(setup, lambda: self._outcomes, listener)
        self._bounds = LearntBounds(paths.dropped_bounds_json, lambda: self._outcomes, listener)
        self._standing = Standing(cfg, self._objective)
        self._planner = Planner(setup, paths, self._standing)
        self._watch = Watch(cfg)
        self._index = OutcomeIndex()
        self._account = Account(cfg.hardware.price_per_hour, setup.hardware.device_count)
        self._confirmation = Confirmation(cfg, setup.hardware.device_count)
        self._confirming = False
        self._guide: Guide | None = None
        self._launches: list[TrialOutcome] = []
        self._refused_in_a_row = 0

    @property
    def outcomes(self) -> list[TrialOutcome]:
        """Every journalled attempt so far, oldest first."""
        return list(self._outcomes)

    def run(self) -> str:
        """Run until the budget is used or the space exhausted, and confirm the best.

        Returns:
            Why it ended, one line.

        Raises:
            StudyError: the baseline cannot run, the surroundings fail again and again, or a launch
                left the machine unfit for the next one.
            KeyboardInterrupt: everything measured is kept.
        """
        ended = self._search()
        self._confirming = True
        while (turn := self._confirmation.next_turn()) is not None:
            if (used := self._out_of_budget()) is not None:
                return f"{ended}; the confirmation was cut off: {used}"
            candidate = Candidate.of_turn(turn)
            self._launch_with_retry(self._number_of(candidate), candidate)
        return f"{ended}; {self._confirmation.summary}".removesuffix("; ")

    def _search(self) -> str:
        first = self._latest().get(0)
        self._anchor(first)
        self._take_stock()
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
        latest = [outcome for outcome in self._latest().values() if outcome.kind != CONFIRM]
        told = [outcome for outcome in latest if not lessons.is_lifted(outcome)]
        proposals = Proposals(self._paths.optuna_journal, searched, sampler, self._objective, told)
        self._tracker.start()
        if self._outcomes:
            self._tracker.replay(self._outcomes)
        self._guide = guide_of(self._setup, searched, told, self._refuses, self._say)
        candidates = Candidates(
            space,
            searched,
            proposals,
            self._violations,
            self._by_hash,
            lessons=self._bounds.look,
            guide=self._guide,
            costs=Costs(lambda deployment: self._setup.resolve(deployment).to_make is not None),
            by_cost=self._setup.cfg.budget.launches is None,
            era=lambda: self._calibration.look().notes,
            tell=self._say,
        )
        left = in_flight.interrupted(self._paths.in_flight_json, self._outcomes)
        if left is not None:
            log = self._paths.server_log(left.number, left.attempt)
            for path in (log, log.with_name(QUANTIZE_LOG)):
                seal(path)
        ended = self._out_of_budget()
        if ended is not None:
            return ended
        for candidate in candidates.each(None if left is None or left.kind == CONFIRM else left):
            self._try(candidate, proposals)
            ended = self._out_of_budget()
            if ended is not None:
                return ended
        refusing = " or is refused by a learnt bound" if self._bounds.look().active else ""
        return f"{stopping.EXHAUSTED}{refusing}"

    def _try(self, candidate: Candidate, proposals: Proposals) -> None:
        number = self._number_of(candidate)
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
        if candidate.proposal is not None:
            proposals.tell(candidate.proposal, outcome)
        else:
            proposals.note_refused(outcome)
        if candidate.kind == "baseline":
            stopping.check_baseline(outcome, self._paths)

    def _number_of(self, candidate: Candidate) -> int:
        """Of the trial that it goes on with, or the next."""
        if candidate.number is not None:
            return candidate.number
        self._index.update(self._outcomes)
        return self._index.next_number

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
        plan = self._planner.plan(
            number,
            candidate,
            attempt,
            outcomes=self._outcomes,
            reference=self._reference,
            guide=self._guide,
        )
        result = self._launcher.run(plan, self._listener)
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

    def _keep(self, outcome: TrialOutcome) -> None:
        """Journal first; then everyone else may know."""
        self._journal.append(outcome)
        share_conditions([outcome], self._outcomes[-1] if self._outcomes else None)
        self._outcomes.append(outcome)
        if self._guide is not None:
            self._guide.learn(outcome)
        self._tracker.record(outcome)
        self._listener(TrialEnded(outcome))
        if outcome.kind == "baseline":
            self._anchor(outcome)
        self._take_stock()
        self._listener(self._watch.now(self._account, self._standing))

    def _take_stock(self) -> None:
        """Learn what the journal says more than before."""
        for learner in (self._standing, self._watch, self._account, self._confirmation):
            learner.update(self._outcomes)

    def _anchor(self, outcome: TrialOutcome | None) -> None:
        """Fix what the objective measures against once the baseline is known."""
        if outcome is not None and outcome.verdict is Verdict.OK and outcome.valid_points:
            self._objective.anchor(outcome)

    def _violations(self, deployment: Mapping[str, Any]) -> list[Violation]:
        longest = self._reference.longest_tokens if self._reference is not None else 0
        return self._setup.violations(deployment, longest, self._calibration.look())

    def _refuses(self, deployment: Mapping[str, Any]) -> bool:
        is_bound = self._bounds.look().refusing(deployment) is not None
        return is_bound or bool(self._violations(deployment))

    def _say(self, text: str) -> None:
        self._listener(Note(text))

    def _latest(self) -> Mapping[int, TrialOutcome]:
        self._index.update(self._outcomes)
        return self._index.latest

    def _by_hash(self) -> Mapping[str, TrialOutcome]:
        """What is known; a refusal by a bound that no longer holds is not."""
        self._index.update(self._outcomes)
        lessons, calibration = self._bounds.look(), self._calibration.look()
        return self._index.by_hash(
            lambda refused: (
                lessons.is_lifted(refused) or self._calibration.is_lifted(refused, self._violations)
            ),
            ([bound.id for bound in lessons.active], calibration if calibration.notes else None),
        )

    def _spent(self) -> Spent:
        return self._account.spent

    def _out_of_budget(self) -> str | None:
        if self._confirming:
            return exhausted(self._spent(), self._setup.cfg.budget)
        if self._refused_in_a_row >= MAX_REFUSED_IN_A_ROW:
            return f"{self._refused_in_a_row} deployments in a row were refused before launch"
        standing = self._standing
        quiet, noise = standing.quiet_launches, standing.noise_share
        used = exhausted(self._spent(), self._setup.cfg.budget, quiet, noise)
        return used or self._confirmation.ends_search(self._spent())
