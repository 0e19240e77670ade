"""One launch, from plan to outcome. What is expected to go wrong becomes a value, not an error."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial

from sweeper.engine.diagnosis import NO_CAUSE, settle
from sweeper.engine.failed_start import with_surroundings
from sweeper.engine.log_file import read_log
from sweeper.engine.log_lines import lines, tail
from sweeper.engine.protocol import Engine, LaunchFailure, LaunchRequest, RunningServer
from sweeper.errors import EngineError
from sweeper.quality.asking import BrokenOutputError, QualityUnavailableError
from sweeper.quality.reference import Reference
from sweeper.trial import failures, judging, vital
from sweeper.trial.checkpoint import note_bytes, obtain
from sweeper.trial.climb import climb
from sweeper.trial.manifest import plan_manifest, server_manifest
from sweeper.trial.outcome import TrialOutcome
from sweeper.trial.patience import HungError
from sweeper.trial.plan import TrialPlan
from sweeper.trial.progress import Listener, Note
from sweeper.trial.seen_in_effect import ignored_batch_limit
from sweeper.trial.state import TrialState
from sweeper.verdicts import Diagnosis, Phase, Verdict

REAL = "real"
"""Under it a trial on an engine's own clock has the seconds that it really took."""


@dataclass(frozen=True)
class TrialResult:
    """What a launch leaves.

    Attributes:
        outcome: as measured, whatever happened at the stop.
        reference: what the output of all others is compared with, if this trial wrote it.
        halt: why nothing may be launched after this (a process outlived KILL, memory did not come
            back), None in all ordinary cases.
    """

    outcome: TrialOutcome
    reference: Reference | None = None
    halt: Diagnosis | None = None


def run_trial(plan: TrialPlan, engine: Engine, listener: Listener) -> TrialResult:
    """Launch a deployment, drive it through its ladder, judge its output, stop it.

    Args:
        plan: what to launch and how to measure it.
        engine: the engine variant.
        listener: told of phases and levels as they pass.

    Returns:
        The outcome, whatever it is, a fault of our own included. Measured points are kept even if
        a later phase fails.

    Raises:
        KeyboardInterrupt, SystemExit: after the server has been stopped; the trial has no outcome
            then.
    """
    state = TrialState(plan, listener, manifest=dict(plan_manifest(plan)))
    started_at = datetime.now(UTC).isoformat(timespec="seconds")
    started = time.monotonic()
    diagnosis = _run(state, engine)
    note_bytes(state)
    _total(state, time.monotonic() - started)
    outcome = TrialOutcome(
        number=plan.number,
        kind=plan.kind,
        deployment=dict(plan.deployment),
        deployment_hash=plan.deployment_hash,
        verdict=diagnosis.verdict,
        phase=diagnosis.phase,
        cause=diagnosis.cause,
        remedy=diagnosis.remedy,
        evidence=diagnosis.evidence,
        learnt={**state.learnt, **diagnosis.learnt},
        points=state.points,
        quality=state.quality,
        timings_s=state.timings_s,
        manifest=state.manifest,
        started_at=started_at,
        attempt=plan.attempt,
        repeats=plan.repeats,
        partial=_partial(state, diagnosis),
        skipped=state.skipped,
    )
    return TrialResult(outcome.without_secrets(), state.reference, state.halt)


def _total(state: TrialState, spent_s: float) -> None:
    """What the trial cost: on the engine's own clock, if it has one, and then on ours beside it."""
    if state.virtual_s is None:
        state.timings_s["total"] = round(spent_s, 3)
    else:
        state.timings_s["total"] = round(state.virtual_s(), 3)
        state.timings_s[REAL] = round(spent_s, 3)


def _run(state: TrialState, engine: Engine) -> Diagnosis:
    """Start, measure, stop. What the stop comes to never changes what was measured."""
    with ExitStack() as stack:
        unmade = obtain(state, stack)
        if unmade is not None:
            return unmade
        try:
            with state.during(Phase.START):
                server = stack.enter_context(engine.serve(_launch_request(state)))
        except LaunchFailure as failure:
            state.halt = failure.halt
            if failure.virtual_s is not None:
                _on_the_engines_clock(state, partial(float, failure.virtual_s))
            return failure.diagnosis
        except Exception as problem:
            return failures.at_start(problem, state)
        try:
            diagnosis = _measured(state, engine, server)
        except LaunchFailure as failure:  # an engine that answers has none for this deployment
            diagnosis = failure.diagnosis
        except Exception as problem:
            diagnosis = failures.unexpected(problem, state)
        try:
            with state.during(Phase.STOP):
                stack.close()
        except Exception as problem:
            state.halt = failures.at_stop(problem, state)
    return diagnosis


def _measured(state: TrialState, engine: Engine, server: RunningServer) -> Diagnosis:
    state.timings_s["ready"] = round(server.ready_after_s, 3)
    if server.virtual_s is not None:
        _on_the_engines_clock(state, server.virtual_s)
        state.timings_s["ready"] = state.timings_s[Phase.START]
    state.manifest.update(server_manifest(server))
    state.learnt.update(server.learnt)
    found = _measure(state, engine, server)
    if found.verdict is Verdict.OK or found.evidence:
        return found
    return replace(found, evidence=tail(lines(read_log(server.log_path))))


def _on_the_engines_clock(state: TrialState, virtual_s: Callable[[], float]) -> None:
    """From here on time is the engine's own; the start, which is over, too."""
    state.virtual_s = virtual_s
    state.timings_s[Phase.START] = round(virtual_s(), 3)


def _launch_request(state: TrialState) -> LaunchRequest:
    plan = state.plan
    return LaunchRequest(
        model_path=plan.checkpoint,
        parameters=plan.engine_parameters,
        run_dir=plan.run_dir,
        served_name=plan.served_name,
        start_timeout_s=plan.start_timeout_s,
        token=plan.token,
        record_path=plan.record_path,
        revision=plan.revision,
        trust_remote_code=plan.trust_remote_code,
        dtype=plan.dtype,
        deployment=plan.deployment,
        weights=plan.weights,
        study="" if plan.record_path is None else plan.record_path.parent.name,
        tell=lambda text: state.listener(Note(f"trial {plan.number}: {text}")),
    )


def _measure(state: TrialState, engine: Engine, server: RunningServer) -> Diagnosis:
    """Load ladder, then quality, on a server that has answered."""
    try:
        climb(state, server)
        failed = _failed_under_load(state, engine, server)
        if failed is not None:
            return failed
        if state.cut is None:
            judging.judge(state, server)
    except HungError as problem:
        vital.let_die(server)
        return _crashed(state, engine, server, seen=problem.message)
    except (QualityUnavailableError, EngineError) as problem:
        if not vital.answers(server):
            return _crashed(state, engine, server)
        if isinstance(problem, BrokenOutputError):
            return Diagnosis(
                Verdict.QUALITY_FAIL,
                Phase.QUALITY,
                f"the output is broken: {problem.message}",
                "leave this combination out",
            )
        return Diagnosis(Verdict.MEASUREMENT_INVALID, state.phase, problem.message, problem.remedy)
    return judging.fault(state) or Diagnosis(Verdict.OK, Phase.STOP, "", "")


def _partial(state: TrialState, diagnosis: Diagnosis) -> str | None:
    """Why a launch was cut; one that failed did not end by that."""
    if state.cut is None or diagnosis.verdict is not Verdict.OK:
        return None
    return state.cut.reason


def _failed_under_load(
    state: TrialState, engine: Engine, server: RunningServer
) -> Diagnosis | None:
    """What the load showed to be wrong; judging the output too would then be wasted time."""
    if (hung := state.hung) is not None:
        # It is not asked again: that some request could be answered does not help those it left.
        vital.let_die(server)
        return _crashed(state, engine, server, seen=hung)
    if state.ended_early and not vital.answers(server):
        return _crashed(state, engine, server)
    ignored = ignored_batch_limit(state.plan, state.most_running)
    if ignored is None and not any(point.valid for point in state.points):
        return _nothing_valid(state)
    return ignored


def _nothing_valid(state: TrialState) -> Diagnosis:
    """No level passed its gates; judging the output too would be wasted time."""
    reasons = [reason for point in state.points for reason in point.reasons]
    return Diagnosis(
        Verdict.MEASUREMENT_INVALID,
        Phase.LOAD,
        reasons[0] if reasons else "no load level was driven",
        "see requests.parquet and server.log of the trial; all gates that failed are listed",
        evidence="\n".join(dict.fromkeys(reasons)),
    )


_HUNG_REMEDY = (
    "leave this combination out; if it is only very slow here, give it more time: "
    "engine.hang_timeout_s"
)


def _crashed(
    state: TrialState, engine: Engine, server: RunningServer, seen: str | None = None
) -> Diagnosis:
    """The server died or hung while it was driven: explain it from its log.

    What the machine is to blame for stays so (a full disk, a server that is not ours and has gone);
    everything else is a crash of the deployment.

    Args:
        seen: how the hang showed, if it was one.
    """
    exit_code = server.exit_code()
    found = engine.diagnose(read_log(server.log_path), state.phase, exit_code)
    found = settle(found, state.phase)
    if exit_code is None and found.cause == NO_CAUSE:
        cause = seen or "the server runs and answers no more completion"
        found = replace(found, cause=cause, remedy=_HUNG_REMEDY)
    elif seen is not None:
        found = replace(found, cause=f"{seen}; {found.cause}")
    if seen is not None:
        found = replace(found, learnt={"rule": "hung_under_load", **found.learnt})
    return with_surroundings(found, server.log_path)
