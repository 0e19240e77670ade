"""Drive a running server up its ladder of load levels, and keep what each of them showed.

An engine that answers with figures is asked for its levels instead, on the same ladder.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field, replace

from sweeper.config.deadlines import tokenize_s
from sweeper.engine.levels import LevelAnswer, LevelAsk
from sweeper.engine.protocol import RunningServer
from sweeper.estimate import speed
from sweeper.load.address import ServerAddress
from sweeper.load.decoding import Decoding
from sweeper.load.drive import DriveOptions, Listeners, run_level
from sweeper.load.ladder import Seen, slo_result
from sweeper.load.level import LoadLevel
from sweeper.load.prompts import sentences, tokenize_bank
from sweeper.load.records import LevelRun
from sweeper.load.workload import registry
from sweeper.load.workload.item import Workload
from sweeper.metrics.goodput import GoodputLimits
from sweeper.metrics.summary import summarise
from sweeper.trial.batch import run_batch
from sweeper.trial.cutting import Course
from sweeper.trial.figures import answered_point, level_ask, unsent_workload
from sweeper.trial.kept import Kept
from sweeper.trial.outcome import Point
from sweeper.trial.patience import patiently
from sweeper.trial.plan import TrialPlan
from sweeper.trial.progress import LevelDone
from sweeper.trial.seen_in_effect import most_running
from sweeper.trial.state import TrialState
from sweeper.verdicts import Phase

Drive = Callable[[LoadLevel, str, Listeners], LevelRun]
Answer = Callable[[LevelAsk], LevelAnswer]


@dataclass
class _Rung:
    """A level, all its drives, and the point they make together."""

    level: LoadLevel
    point: Point
    runs: list[LevelRun] = field(default_factory=list)
    drives: int = 1

    def seen(self) -> Seen:
        metrics = self.point.metrics
        _, high = self.point.intervals.get("goodput_share", (None, None))
        return Seen(
            self.level,
            self.point.valid,
            metrics.get("output_tokens_per_s"),
            metrics.get("goodput_share"),
            high,
            sum(len(run.records) for run in self.runs) or self.point.n,
            self.drives,
        )


Climber = Callable[[list[_Rung], LoadLevel], _Rung]


def climb(state: TrialState, server: RunningServer) -> None:
    """Drive all levels, until the ladder ends or the server does. Points and requests are kept.

    Raises:
        EngineError: the server cannot tokenize the prompts.
        LaunchFailure: the engine has no answer for this deployment.
    """
    plan = state.plan
    rungs: list[_Rung] = []
    course = Course(plan.load, plan.to_beat)
    with ExitStack() as stack:
        rung_of = _climber(state, server, stack)
        while (level := course.next([r.seen() for r in rungs], state.points)) is not None:
            with state.during(Phase.LOAD, level.name):
                rung = rung_of(rungs, level)
            state.points = [rung.point for rung in rungs]
            predicted = plan.conditions.get("measured") is False
            state.listener(LevelDone(plan.number, level.name, rung.point.metrics, predicted))
            if state.ended_early:
                break
    state.cut, state.skipped = course.cut, course.skipped
    if state.cut is not None:
        state.learnt |= state.cut.learnt()
    if plan.load.levels == "slo":
        _note_slo(state, rungs)


def _climber(state: TrialState, server: RunningServer, stack: ExitStack) -> Climber:
    """How this server takes a rung. `stack` closes what is kept of its requests."""
    plan = state.plan
    if server.answer is not None:
        answer = server.answer
        workload = unsent_workload(plan.workload, plan.seed)
        state.manifest["workload"] = described(plan, workload)
        return lambda rungs, level: _answered(rungs, level, plan, answer)
    with state.during(Phase.WARMUP, "tokenizing prompts"):
        workload = _workload(plan, server)
    state.manifest["workload"] = described(plan, workload)
    drive = _drive(plan, server, workload)
    kept = stack.enter_context(Kept(plan, state.listener))
    return lambda rungs, level: _drive_level(state, rungs, level, drive, kept)


def _answered(rungs: list[_Rung], level: LoadLevel, plan: TrialPlan, answer: Answer) -> _Rung:
    """A rung of figures; the same question has the same answer, so it is asked once."""
    told = answer(level_ask(level, plan.workload, plan.seed))
    point = answered_point(level, told, _speed_of_light(plan, dict(told.metrics)))
    rungs.append(_Rung(level, point))
    return rungs[-1]


def described(plan: TrialPlan, workload: Workload) -> dict[str, object]:
    """A workload for the manifest: its conditions and their hash.

    The hash covers prompts, lengths and decoding, since all of them decide what a number means.
    """
    told = {"name": plan.workload.name, **workload.conditions}
    hashed = {**workload.conditions, "decoding": Decoding.of(plan.workload).conditions()}
    text = json.dumps(hashed, sort_keys=True, default=str)
    return {**told, "sha256": hashlib.sha256(text.encode()).hexdigest()[:16]}


def _workload(plan: TrialPlan, server: RunningServer) -> Workload:
    if server.measure is None:
        bank = patiently(
            lambda: tokenize_bank(server.base_url, server.served_name, server.api_key),
            server,
            what="tokenizing the prompts",
            timeout_s=tokenize_s(plan.start_timeout_s),
        )
    elif server.tokenize is not None:
        bank = server.tokenize(sentences())
    else:
        bank = sentences()
    return registry.create(plan.workload, bank, plan.seed)


def _drive(plan: TrialPlan, server: RunningServer, workload: Workload) -> Drive:
    """How a level of this server is driven: over HTTP, or by the engine itself."""
    decoding = Decoding.of(plan.workload)
    options = DriveOptions.of(plan.load, plan.hang_after_s)
    if server.measure is None:
        address = ServerAddress.of(server)

        def over_http(level: LoadLevel, stream: str, listeners: Listeners) -> LevelRun:
            return run_level(
                address,
                level,
                workload,
                stream=stream,
                decoding=decoding,
                options=options,
                listeners=replace(listeners, is_alive=server.is_alive),
            )

        return over_http
    measure = server.measure

    def directly(level: LoadLevel, stream: str, listeners: Listeners) -> LevelRun:
        run = run_batch(
            measure,
            level,
            workload,
            stream=stream,
            decoding=decoding,
            warm_up_requests=(level.concurrency or 1) * options.warmup_requests_per_stream,
            timeout_s=options.level_timeout_s,
        )
        for record in run.records:
            if listeners.on_record is not None:
                listeners.on_record(record)
        return run

    return directly


def _drive_level(
    state: TrialState, rungs: list[_Rung], level: LoadLevel, drive: Drive, kept: Kept
) -> _Rung:
    """Drive a level with all its repeats; one that was driven before gains by it."""
    plan = state.plan
    place = next((i for i, rung in enumerate(rungs) if rung.level == level), len(rungs))
    known = rungs[place] if place < len(rungs) else None
    runs = list(known.runs) if known else []
    for _ in range(plan.load.repeats):
        listeners = kept.begin(place, level, len(runs))
        stream = f"trial-{plan.number}-{plan.attempt}/{level.name}/{len(runs)}"
        state.last_run = drive(level, stream, listeners)
        runs.append(state.last_run)
        state.most_running = max(state.most_running, most_running(state.last_run))
        if state.ended_early:
            break
    rung = _Rung(level, _point(runs, plan), runs, known.drives + 1 if known else 1)
    rungs[place : place + 1] = [rung]
    return rung


def _point(runs: list[LevelRun], plan: TrialPlan) -> Point:
    summary = summarise(runs, device_count=plan.device_count, seed=plan.seed, limits=_limits(plan))
    return Point(
        load=dict(summary.load),
        metrics=dict(summary.metrics),
        intervals={name: list(pair) for name, pair in summary.intervals.items()},
        n=summary.n,
        valid=summary.valid,
        reasons=list(summary.reasons),
        low_confidence=list(summary.low_confidence),
        predicted=_speed_of_light(plan, summary.metrics),
    )


def _limits(plan: TrialPlan) -> GoodputLimits | None:
    asked = plan.load.goodput
    limits = (asked.ttft_ms, asked.tpot_ms, asked.e2e_ms)
    return GoodputLimits(*limits) if any(limit is not None for limit in limits) else None


def _speed_of_light(plan: TrialPlan, metrics: dict[str, float]) -> dict[str, float]:
    """Bounds at the point as it was reached, and how near it came; empty if nothing is known."""
    needed = ("achieved_concurrency", "input_tokens_mean", "output_tokens_mean")
    if plan.model is None or plan.hardware is None or not all(name in metrics for name in needed):
        return {}
    batch, input_tokens, output_tokens = (metrics[name] for name in needed)
    bounds = speed.bounds(
        {**plan.engine_parameters, "dtype": plan.engine_parameters.get("dtype", plan.dtype)},
        plan.model,
        plan.hardware,
        batch=max(1.0, batch),
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        prefix_hit_share=metrics.get("prefix_cache_hit_share", 0.0),
        decoding=speed.decoding_streams(metrics),
        weights=plan.weights,
    )
    told = {**bounds, **speed.nearness(bounds, metrics)}
    return {name: value for name, value in told.items() if math.isfinite(value)}


def _note_slo(state: TrialState, rungs: list[_Rung]) -> None:
    found = slo_result(state.plan.load, [rung.seen() for rung in rungs])
    if found.rate_per_s is not None:
        state.learnt["slo_rate_per_s"] = found.rate_per_s
        state.learnt["slo_rate_confirmed"] = found.confirmed
    if found.lowest_bad_per_s is not None:
        state.learnt["slo_rate_missed_per_s"] = found.lowest_bad_per_s
