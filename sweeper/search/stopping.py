"""When a study must not go on, and what its user is told."""

from __future__ import annotations

from collections.abc import Sequence

from sweeper.errors import StudyError
from sweeper.redaction import shown
from sweeper.search.bounds.learn import Lessons
from sweeper.search.faults import persistent
from sweeper.tracking.paths import StudyPaths
from sweeper.trial.checkpoint import LOG_NAME as QUANTIZE_LOG
from sweeper.trial.outcome import TrialOutcome
from sweeper.trial.run import TrialResult
from sweeper.verdicts import Phase, Verdict

EVIDENCE_LINES = 6
EXHAUSTED = "every deployment of the space has been tried"


def check_baseline(outcome: TrialOutcome, paths: StudyPaths) -> None:
    """Nothing can be compared with a baseline that cannot run.

    Raises:
        StudyError: it did not end OK.
    """
    if outcome.verdict is not Verdict.OK:
        raise StudyError(
            f"the baseline (the engine's own defaults) ended {outcome.verdict} in phase "
            f"{outcome.phase}: {outcome.cause}",
            f"{outcome.remedy}; a value for every deployment, baseline included, is set with "
            f"engine.args.NAME=VALUE and study=NEW_NAME{_log_hint(outcome, paths)}",
        )


def check_halt(result: TrialResult, paths: StudyPaths) -> None:
    """A launch that left the machine unfit is the last one; its outcome is journalled by now.

    Raises:
        StudyError: nothing may be launched after it.
    """
    halt = result.halt
    if halt is not None:
        outcome = result.outcome
        raise StudyError(
            f"nothing may be launched after trial {outcome.number}, which ended "
            f"{outcome.verdict} and is recorded: {halt.cause}{_indented(halt.evidence)}",
            _go_on(halt.remedy, paths) + _log_hint(outcome, paths),
        )


def check_faults(launches: Sequence[TrialOutcome], lessons: Lessons, paths: StudyPaths) -> None:
    """A fault that will not go away must not burn the budget.

    What a learnt bound fences off has been dealt with, and no longer counts.

    Args:
        launches: every attempt of this run that was launched, oldest first.
        lessons: what the journal teaches.
        paths: of the study.

    Raises:
        StudyError: see `sweeper.search.faults`.
    """
    fault = persistent(launches, lambda launch: lessons.refusing(launch.deployment) is not None)
    if fault is not None:
        last = fault.last
        raise StudyError(
            f"{fault.message}{_indented(last.evidence)}",
            _go_on(last.remedy, paths) + _log_hint(last, paths),
        )


def _go_on(remedy: str, paths: StudyPaths) -> str:
    mend = remedy or "mend what the cause names"
    return f"{mend}; then `python -m sweeper resume study={paths.name}`"


def _log_hint(outcome: TrialOutcome, paths: StudyPaths) -> str:
    if not outcome.launched:
        return ""
    log = paths.server_log(outcome.number, outcome.attempt)
    if outcome.phase == Phase.QUANTIZE:
        log = log.with_name(QUANTIZE_LOG)
    return f". Log: {log}"


def _indented(evidence: str) -> str:
    """The end of a log's excerpt, under the message it proves."""
    lines = [line for line in shown(evidence).splitlines() if line.strip()]
    return "".join(f"\n    {line}" for line in lines[-EVIDENCE_LINES:])
