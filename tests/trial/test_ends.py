"""However a trial ends, it has an outcome, and what was measured is kept."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sweeper.config.schema import EngineConfig, LoadConfig, QualityConfig
from sweeper.engine.protocol import LaunchFailure, LaunchRequest, RunningServer, StopFailure
from sweeper.engine.registry import create
from sweeper.errors import EngineError
from sweeper.trial import climb, judging, run, vital
from sweeper.trial.plan import TrialPlan
from sweeper.trial.progress import silent
from sweeper.trial.run import run_trial
from sweeper.verdicts import Diagnosis, Phase, Verdict
from tests.engine.conftest import living_with
from tests.trial.conftest import CALM, plan_in


class Broken:
    """An engine that breaks where it is told to."""

    name, kind, predicted, needs_checkpoint = "broken", "served", False, True

    def __init__(self, inner: Any, *, start: Any = None, stop: Any = None) -> None:
        self._inner, self._start, self._stop = inner, start, stop

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    @contextmanager
    def serve(self, request: LaunchRequest) -> Iterator[RunningServer]:
        if self._start is not None:
            raise self._start
        with self._inner.serve(request) as server:
            yield server
        if self._stop is not None:
            raise self._stop


def mock(tmp_path: Path, **dials: Any) -> Any:
    cfg = EngineConfig(name="mock", options=CALM | dials, stop_timeout_s=2)
    return create(cfg, cache_dir=tmp_path / "cache")


def short_plan(tmp_path: Path, **changes: Any) -> TrialPlan:
    load = LoadConfig(concurrency=[1], requests_per_stream=2, min_requests=2, request_timeout_s=30)
    given = {"load": load, "may_write_reference": False, **changes}
    return plan_in(tmp_path, **given)


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vital, "ANSWER_TIMEOUT_S", 1.0)
    monkeypatch.setattr(vital, "DYING_S", 0.3)


@pytest.mark.parametrize(
    ("problem", "rule"),
    [
        (StopFailure("process 7 of the engine outlived SIGKILL", "free it"), "not_ended"),
        (EngineError("something is left", "remove it"), None),
        (RuntimeError("a fault of ours"), None),
    ],
    ids=["outlived", "engine", "fault"],
)
def test_a_stop_that_fails_halts_and_leaves_the_verdict(
    tmp_path: Path, problem: Exception, rule: str | None
) -> None:
    result = run_trial(short_plan(tmp_path), Broken(mock(tmp_path), stop=problem), silent)
    assert result.outcome.verdict is Verdict.OK, result.outcome.cause
    assert result.outcome.valid_points
    assert result.halt is not None
    assert (result.halt.verdict, result.halt.phase) == (Verdict.INFRA, Phase.STOP)
    assert result.halt.learnt.get("rule") == rule


def test_a_start_that_left_something_halts(tmp_path: Path) -> None:
    why = Diagnosis(Verdict.CAPACITY, Phase.START, "too large", "smaller")
    left = Diagnosis(Verdict.INFRA, Phase.STOP, "process 7 outlived SIGKILL", "free it")
    broken = Broken(None, start=LaunchFailure(why, halt=left))
    result = run_trial(short_plan(tmp_path), broken, silent)
    assert (result.outcome.verdict, result.halt) == (Verdict.CAPACITY, left)


@pytest.mark.parametrize(
    ("problem", "verdict"),
    [
        (EngineError("cannot start it", "install it"), Verdict.INFRA),
        (OSError(errno.ENOSPC, "No space left on device"), Verdict.INFRA),
        (ValueError("two\nlines"), Verdict.UNKNOWN),
    ],
    ids=["engine", "disk", "fault"],
)
def test_a_launch_that_could_not_be_tried_is_an_outcome(
    tmp_path: Path, problem: Exception, verdict: Verdict
) -> None:
    outcome = run_trial(short_plan(tmp_path), Broken(None, start=problem), silent).outcome
    assert (outcome.verdict, outcome.phase) == (verdict, Phase.START)
    assert outcome.cause
    assert "\n" not in outcome.cause
    assert outcome.remedy


def test_a_fault_of_ours_is_an_outcome_with_points_place_and_traceback(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fault(*_: Any) -> None:
        raise KeyError("a fault of ours")

    monkeypatch.setattr(judging, "judge", fault)
    plan = short_plan(tmp_path)
    outcome = run_trial(plan, mock(tmp_path), silent).outcome
    assert outcome.verdict is Verdict.UNKNOWN
    assert outcome.valid_points, "what was measured is kept"
    assert "KeyError" in outcome.cause
    assert "a fault of ours" in outcome.cause
    assert "test_ends.py:" in outcome.cause
    written = (plan.run_dir / "error.txt").read_text()
    assert written.startswith("Traceback")
    assert "a fault of ours" in written
    assert not living_with(plan.token), "the server is stopped"


@pytest.mark.parametrize("problem", [KeyboardInterrupt, SystemExit])
def test_an_interrupt_is_no_outcome(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, problem: type[BaseException]
) -> None:
    def interrupt(*_: Any) -> None:
        raise problem

    monkeypatch.setattr(run, "climb", interrupt)
    plan = short_plan(tmp_path)
    with pytest.raises(problem):
        run_trial(plan, mock(tmp_path), silent)
    assert not living_with(plan.token)


def test_a_hang_under_load_is_a_crash_long_before_the_requests_deadlines(tmp_path: Path) -> None:
    load = LoadConfig(concurrency=[1, 4], requests_per_stream=3, min_requests=6)
    plan = plan_in(tmp_path, load=load, hang_timeout_s=1.5)
    engine = mock(tmp_path, faults=[{"hang_at": "load", "after_requests": 8}])
    outcome = run_trial(plan, engine, silent).outcome
    assert (outcome.verdict, outcome.phase) == (Verdict.CRASH_UNDER_LOAD, Phase.LOAD)
    assert "the server hangs: no token for" in outcome.cause
    assert outcome.learnt["rule"] == "hung_under_load"
    assert outcome.timings_s["load"] < 30
    assert outcome.valid_points, "the level before the hang is kept"


def judged(tmp_path: Path, hang_timeout_s: float | None, **quality: Any) -> TrialPlan:
    limits = QualityConfig(reference_tokens=8, max_prompts=3, request_timeout_s=60, **quality)
    return replace(
        short_plan(tmp_path, hang_timeout_s=hang_timeout_s),
        may_write_reference=True,
        quality=limits,
    )


def test_a_hang_while_the_output_is_judged_is_a_crash(tmp_path: Path) -> None:
    engine = mock(tmp_path, faults=[{"hang_at": "quality"}])
    outcome = run_trial(judged(tmp_path, 1.5), engine, silent).outcome
    assert (outcome.verdict, outcome.phase) == (Verdict.CRASH_UNDER_LOAD, Phase.QUALITY)
    assert "judging the output: the server hangs" in outcome.cause
    assert "engine.hang_timeout_s" in outcome.remedy
    assert outcome.valid_points
    assert outcome.timings_s["quality"] < 30


def test_judging_that_takes_too_long_as_a_whole_is_no_measurement(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vital, "answers", lambda server: True)
    engine = mock(tmp_path, faults=[{"hang_at": "quality"}])
    outcome = run_trial(judged(tmp_path, None, timeout_s=0.5), engine, silent).outcome
    assert outcome.verdict is Verdict.MEASUREMENT_INVALID
    assert "was not done within 0.5 s" in outcome.cause


def test_a_tokenizer_that_never_answers_ends_the_trial(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(climb, "tokenize_s", lambda start_s: 0.5)
    engine = mock(tmp_path, faults=[{"hang_at": "warmup"}])
    outcome = run_trial(short_plan(tmp_path), engine, silent).outcome
    assert outcome.verdict is Verdict.MEASUREMENT_INVALID
    assert outcome.phase == Phase.WARMUP
    assert "tokenizing the prompts was not done within 0.5 s" in outcome.cause


def test_a_fault_of_the_machine_under_load_stays_one(tmp_path: Path) -> None:
    text = "OSError: [Errno 28] No space left on device"
    fault = {"die_at": "load", "after_requests": 3, "log_text": text}
    outcome = run_trial(plan_in(tmp_path), mock(tmp_path, faults=[fault]), silent).outcome
    assert (outcome.verdict, outcome.phase) == (Verdict.INFRA, Phase.LOAD)
    assert outcome.learnt["rule"] == "disk_full"


def test_a_server_that_slows_down_until_it_dies_keeps_the_levels_before(tmp_path: Path) -> None:
    faults = [{"slower_by": 1.3}, {"die_at": "load", "after_requests": 20}]
    load = LoadConfig(concurrency=[1, 4, 8], requests_per_stream=2, min_requests=8)
    outcome = run_trial(plan_in(tmp_path, load=load), mock(tmp_path, faults=faults), silent).outcome
    assert (outcome.verdict, outcome.phase) == (Verdict.CRASH_UNDER_LOAD, Phase.LOAD)
    assert [point.concurrency for point in outcome.valid_points] == [1]
    assert len(outcome.points) == 2


def test_a_server_elsewhere_that_vanishes_is_no_crash_of_the_deployment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = plan_in(tmp_path / "there")
    request = LaunchRequest(
        "mock", {}, there.run_dir, "m", 20.0, there.token, record_path=there.record_path
    )
    fault = {"die_at": "load", "after_requests": 3}
    with mock(tmp_path, faults=[fault]).serve(request) as server:
        monkeypatch.setenv("SWEEPER_TEST_KEY", server.api_key)
        cfg = EngineConfig(name="openai", base_url=server.base_url, api_key_env="SWEEPER_TEST_KEY")
        engine = create(cfg, cache_dir=tmp_path)
        outcome = run_trial(plan_in(tmp_path), engine, silent).outcome
    assert (outcome.verdict, outcome.phase) == (Verdict.INFRA, Phase.LOAD)
    assert "answers no more" in outcome.cause
