"""One launch, from plan to outcome. What is expected to go wrong becomes a value, not an error."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from sweeper.engine.diagnosis import NO_CAUSE
from sweeper.engine.protocol import Engine, LaunchFailure, LaunchRequest, RunningServer
from sweeper.engine.served import read_log
from sweeper.errors import EngineError
from sweeper.load.address import ServerAddress
from sweeper.load.closed import run_level
from sweeper.load.prompts import PromptSource, tokenize_bank
from sweeper.load.records import LevelRun
from sweeper.load.requests_file import write_requests
from sweeper.metrics.summary import summarise
from sweeper.quality import agreement
from sweeper.quality.agreement import BrokenOutputError, QualityUnavailableError
from sweeper.quality.floor import below_floor
from sweeper.quality.reference import Reference
from sweeper.quality.suite import load_suite
from sweeper.trial import vital
from sweeper.trial.manifest import plan_manifest, server_manifest
from sweeper.trial.outcome import Point, QualityScore, TrialOutcome
from sweeper.trial.plan import TrialPlan
from sweeper.trial.progress import LevelDone, Listener, Note, PhaseChanged
from sweeper.verdicts import Diagnosis, Phase, Verdict


@dataclass(frozen=True)
class TrialResult:
    """The outcome, and the reference if this trial wrote it."""

    outcome: TrialOutcome
    reference: Reference | None = None


@dataclass
class _Progress:
    """What has been measured so far; survives whatever ends the trial."""

    plan: TrialPlan
    listener: Listener
    phase: Phase = Phase.START
    points: list[Point] = field(default_factory=list)
    runs: list[LevelRun] = field(default_factory=list)
    quality: QualityScore | None = None
    reference: Reference | None = None
    timings_s: dict[str, float] = field(default_factory=dict)
    manifest: dict[str, object] = field(default_factory=dict)
    learnt: dict[str, object] = field(default_factory=dict)

    @contextmanager
    def during(self, phase: Phase, detail: str = "") -> Iterator[None]:
        """Announce a phase and add its seconds to the timings."""
        self.phase = phase
        self.listener(PhaseChanged(self.plan.number, phase, detail))
        started = time.monotonic()
        try:
            yield
        finally:
            spent = time.monotonic() - started
            self.timings_s[phase] = round(self.timings_s.get(phase, 0.0) + spent, 3)


def run_trial(plan: TrialPlan, engine: Engine, listener: Listener) -> TrialResult:
    """Launch a deployment, drive it through its ladder, judge its output, stop it.

    Args:
        plan: what to launch and how to measure it.
        engine: the engine variant.
        listener: told of phases and levels as they pass.

    Returns:
        The outcome, whatever it is. Measured points are kept even if a later phase fails.

    Raises:
        KeyboardInterrupt: after the server has been stopped; the trial has no outcome then.
    """
    progress = _Progress(plan, listener, manifest=dict(plan_manifest(plan)))
    started_at = datetime.now(UTC).isoformat(timespec="seconds")
    started = time.monotonic()
    diagnosis = _run(progress, engine)
    progress.timings_s["total"] = round(time.monotonic() - started, 3)
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
        learnt={**progress.learnt, **diagnosis.learnt},
        points=progress.points,
        quality=progress.quality,
        timings_s=progress.timings_s,
        manifest=progress.manifest,
        started_at=started_at,
        attempt=plan.attempt,
    )
    return TrialResult(outcome, progress.reference)


def _run(progress: _Progress, engine: Engine) -> Diagnosis:
    with ExitStack() as stack:
        try:
            with progress.during(Phase.START):
                server = stack.enter_context(engine.serve(_launch_request(progress.plan)))
        except LaunchFailure as failure:
            return failure.diagnosis
        progress.timings_s["ready"] = round(server.ready_after_s, 3)
        progress.manifest.update(server_manifest(server))
        progress.learnt.update(server.learnt)
        diagnosis = _measure(progress, engine, server)
        try:
            with progress.during(Phase.STOP):
                stack.close()
        except EngineError as problem:
            # What was measured stays; what did not end makes the machine unfit for the next launch.
            return Diagnosis(Verdict.INFRA, Phase.STOP, problem.message, problem.remedy)
    return diagnosis


def _launch_request(plan: TrialPlan) -> LaunchRequest:
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
    )


def _measure(progress: _Progress, engine: Engine, server: RunningServer) -> Diagnosis:
    """Load ladder, then quality, on a server that has answered."""
    try:
        _drive_ladder(progress, server)
        if _ended_early(progress) and not vital.answers(server):
            return _crashed(progress, engine, server)
        if not any(point.valid for point in progress.points):
            return _nothing_valid(progress)
        _judge_quality(progress, server)
    except (QualityUnavailableError, EngineError) as problem:
        if not vital.answers(server):
            return _crashed(progress, engine, server)
        if isinstance(problem, BrokenOutputError):
            return Diagnosis(
                Verdict.QUALITY_FAIL,
                Phase.QUALITY,
                f"the output is broken: {problem.message}",
                "leave this combination out",
            )
        return Diagnosis(
            Verdict.MEASUREMENT_INVALID, progress.phase, problem.message, problem.remedy
        )
    return _verdict(progress)


def _drive_ladder(progress: _Progress, server: RunningServer) -> None:
    """All load levels, lowest first, until the server dies. Points and requests are kept."""
    plan = progress.plan
    with progress.during(Phase.WARMUP, "tokenizing prompts"):
        bank = tokenize_bank(server.base_url, server.served_name, server.api_key)
        prompts = PromptSource(bank, seed=plan.seed)
    try:
        for concurrency in plan.load.concurrency:
            if _ended_early(progress):
                return
            with progress.during(Phase.LOAD, f"concurrency {concurrency}"):
                run = _drive_level(plan, server, prompts, concurrency)
                progress.runs.append(run)
                point = _point(run, plan)
            progress.points.append(point)
            progress.listener(LevelDone(plan.number, concurrency, point.metrics))
    finally:
        _write_requests(progress)


def _ended_early(progress: _Progress) -> bool:
    """True if the last level was broken off: the server died, hung, or failed all requests."""
    return bool(progress.runs) and progress.runs[-1].ended_early is not None


def _write_requests(progress: _Progress) -> None:
    """Requests in detail are good to have; without them the measurement still stands."""
    try:
        write_requests(progress.plan.run_dir / "requests.parquet", progress.runs)
    except OSError as error:
        progress.listener(Note(f"requests.parquet was not written: {error.strerror or error}"))


def _drive_level(
    plan: TrialPlan, server: RunningServer, prompts: PromptSource, concurrency: int
) -> LevelRun:
    load = plan.load
    return run_level(
        ServerAddress.of(server),
        concurrency=concurrency,
        requests=max(load.min_requests, load.requests_per_stream * concurrency),
        warmup_requests=load.warmup_requests_per_stream * concurrency,
        prompts=prompts,
        stream=f"trial-{plan.number}-{plan.attempt}/level-{concurrency}",
        input_tokens=plan.workload.input_tokens,
        output_tokens=plan.workload.output_tokens,
        temperature=plan.workload.temperature,
        ignore_eos=plan.workload.ignore_eos,
        request_timeout_s=load.request_timeout_s,
        level_timeout_s=load.level_timeout_s,
        is_alive=server.is_alive,
    )


def _point(run: LevelRun, plan: TrialPlan) -> Point:
    summary = summarise(run, device_count=plan.device_count, seed=plan.seed)
    return Point(
        load=dict(summary.load),
        metrics=dict(summary.metrics),
        intervals={name: list(pair) for name, pair in summary.intervals.items()},
        n=summary.n,
        valid=summary.valid,
        reasons=list(summary.reasons),
        low_confidence=list(summary.low_confidence),
    )


def _judge_quality(progress: _Progress, server: RunningServer) -> None:
    """Score the output, reuse a score with the same key, or write the reference first."""
    plan = progress.plan
    if plan.quality.kind == "none":
        return
    if plan.known_quality is not None:
        known = plan.known_quality
        progress.quality = QualityScore(**{**vars(known), "reused": True})
        return
    address = ServerAddress.of(server)
    with progress.during(Phase.QUALITY):
        if plan.reference is not None:
            score = agreement.score(address, plan.reference, plan.quality.request_timeout_s)
        elif plan.may_write_reference:
            progress.reference = agreement.write_reference(
                address,
                load_suite(plan.quality.max_prompts),
                plan.quality.reference_tokens,
                plan.quality.request_timeout_s,
            )
            score = agreement.own_agreement(progress.reference)
        else:
            return
    progress.quality = QualityScore(
        agreement=score.agreement,
        agreement_se=score.agreement_se,
        loglik_change_nats=score.loglik_change_nats,
        loglik_change_se_nats=score.loglik_change_se_nats,
        tokens=score.tokens,
        key=plan.quality_key,
    )


def _nothing_valid(progress: _Progress) -> Diagnosis:
    """No level passed its gates; judging the output too would be wasted time."""
    reasons = [reason for point in progress.points for reason in point.reasons]
    return Diagnosis(
        Verdict.MEASUREMENT_INVALID,
        Phase.LOAD,
        reasons[0] if reasons else "no load level was driven",
        "see requests.parquet and server.log of the trial; all gates that failed are listed",
        evidence="\n".join(dict.fromkeys(reasons)),
    )


def _verdict(progress: _Progress) -> Diagnosis:
    """Judge what was measured on a server that lived to the end."""
    quality, limits = progress.quality, progress.plan.quality
    if quality is not None and below_floor(
        quality.loglik_change_nats, quality.loglik_change_se_nats, limits.max_loglik_drop_nats
    ):
        return Diagnosis(
            Verdict.QUALITY_FAIL,
            Phase.QUALITY,
            f"log-likelihood of the reference fell by {-quality.loglik_change_nats:.3f} nats a "
            f"token, more than {limits.max_loglik_drop_nats} beyond its error",
            "choose a milder quantization or KV-cache precision, or raise "
            "quality.max_loglik_drop_nats if this loss is acceptable",
            learnt={"loglik_change_nats": quality.loglik_change_nats},
        )
    return Diagnosis(Verdict.OK, Phase.STOP, "", "")


def _crashed(progress: _Progress, engine: Engine, server: RunningServer) -> Diagnosis:
    """The server died or hung while it was driven: explain it from its log."""
    exit_code = server.exit_code()
    found = engine.diagnose(read_log(server.log_path), progress.phase, exit_code)
    found = replace(found, verdict=Verdict.CRASH_UNDER_LOAD, phase=progress.phase)
    if exit_code is None and found.cause == NO_CAUSE:
        return replace(found, cause="the server runs and answers no more completion")
    return found
