"""Trials of an engine that answers with figures: points, virtual time, and what has no answer."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweeper.config.schema import LoadConfig, QualityConfig, WorkloadConfig
from sweeper.engine.levels import LevelAnswer, LevelAsk
from sweeper.engine.protocol import LaunchFailure, LaunchRequest, RunningServer
from sweeper.load.level import LoadLevel
from sweeper.trial.figures import answered_point, level_ask, mean_lengths
from sweeper.trial.outcome import TrialOutcome
from sweeper.trial.progress import Event, LevelDone
from sweeper.trial.run import REAL, run_trial
from sweeper.verdicts import Diagnosis, Phase, Verdict
from tests.trial.conftest import plan_in

CLOSED = LoadLevel("closed", 32, concurrency=8)
NO_ANSWER = LaunchFailure(Diagnosis(Verdict.CAPACITY, Phase.LOAD, "no room", "use less"))


def answer(ask: LevelAsk) -> LevelAnswer:
    streams = ask.concurrency or 1
    figures = {"output_tokens_per_s": 100.0 * streams, "e2e_p95_ms": 50.0 * streams}
    return LevelAnswer(figures, ask.requests, virtual_s=10.0 * streams)


@dataclass
class Answering:
    """An engine without anything behind it; a start costs 30 virtual seconds."""

    answer: Callable[[LevelAsk], LevelAnswer] = answer
    refuses: Diagnosis | None = None
    asked: list[LevelAsk] = field(default_factory=list)

    name = "answering"
    kind = "direct"
    predicted = True
    needs_checkpoint = True

    @contextmanager
    def serve(self, request: LaunchRequest) -> Iterator[RunningServer]:
        if self.refuses is not None:
            raise LaunchFailure(self.refuses, virtual_s=7.0)
        spent = [30.0]

        def told(ask: LevelAsk) -> LevelAnswer:
            self.asked.append(ask)
            found = self.answer(ask)
            spent[0] += found.virtual_s
            return found

        yield RunningServer(
            base_url="",
            served_name=request.served_name,
            api_key="",
            pid=0,
            ready_after_s=0.0,
            argv=(),
            effective_args={},
            learnt={},
            is_alive=lambda: True,
            log_path=request.run_dir / "server.log",
            answer=told,
            virtual_s=lambda: spent[0],
        )


def run(
    folder: Path, engine: Answering, events: list[Event] | None = None, **changes: Any
) -> TrialOutcome:
    quick = {"load": LoadConfig(concurrency=[1, 4], min_requests=2, repeats=3)}
    changes = {**quick, "quality": QualityConfig(kind="none"), **changes}
    plan = plan_in(folder, **changes)
    plan.run_dir.mkdir()
    heard = [] if events is None else events
    return run_trial(plan, engine, heard.append).outcome  # type: ignore[arg-type]


def test_levels_become_points_without_a_request(tmp_path: Path, events: list[Event]) -> None:
    engine = Answering()
    outcome = run(tmp_path, engine, events)
    assert outcome.verdict is Verdict.OK
    assert [point.concurrency for point in outcome.points] == [1, 4]
    assert [point.metrics["output_tokens_per_s"] for point in outcome.points] == [100.0, 400.0]
    assert [point.n for point in outcome.points] == [4, 16]
    assert all(point.valid and not point.intervals for point in outcome.points)
    assert outcome.manifest["workload"]["kind"] == "synthetic"
    assert len(outcome.manifest["workload"]["sha256"]) == 16
    assert [event.level for event in events if isinstance(event, LevelDone)] == [
        "concurrency 1",
        "concurrency 4",
    ]
    assert not (tmp_path / "run" / "requests.parquet").exists()
    assert TrialOutcome.from_dict(outcome.to_dict()) == outcome


def test_the_same_question_is_asked_once_whatever_the_repeats(tmp_path: Path) -> None:
    engine = Answering()
    run(tmp_path, engine)
    first = engine.asked[0]
    assert (first.concurrency, first.input_tokens, first.output_tokens) == (1, 16.0, 8.0)
    assert len(engine.asked) == 2


def test_a_launch_costs_what_the_engines_own_clock_says(tmp_path: Path) -> None:
    spent = run(tmp_path, Answering()).timings_s
    assert spent["total"] == 30.0 + 10.0 + 40.0
    assert spent["ready"] == spent["start"] == 30.0
    assert spent["load"] == 50.0
    assert 0.0 <= spent[REAL] < 30.0


def test_a_deployment_that_is_refused_has_its_verdict_and_its_cost(tmp_path: Path) -> None:
    refused = Diagnosis(Verdict.INFEASIBLE_CONFIG, Phase.START, "tp=3 of 28 heads", "tp=4")
    outcome = run(tmp_path, Answering(refuses=refused))
    assert (outcome.verdict, outcome.cause) == (Verdict.INFEASIBLE_CONFIG, "tp=3 of 28 heads")
    assert outcome.timings_s["total"] == 7.0


def test_a_level_without_an_answer_ends_the_trial_with_its_verdict(tmp_path: Path) -> None:
    def only_one_stream(ask: LevelAsk) -> LevelAnswer:
        if ask.concurrency != 1:
            raise NO_ANSWER
        return answer(ask)

    outcome = run(tmp_path, Answering(only_one_stream))
    assert (outcome.verdict, outcome.cause) == (Verdict.CAPACITY, "no room")
    assert [point.concurrency for point in outcome.points] == [1], "what was answered is kept"


def test_levels_can_be_found(tmp_path: Path) -> None:
    def full_at_two(ask: LevelAsk) -> LevelAnswer:
        streams = min(ask.concurrency or 1, 2)
        return LevelAnswer({"output_tokens_per_s": 100.0 * streams}, ask.requests, 1.0)

    found = LoadConfig(levels="found", concurrency=[1], min_growth_share=0.05)
    outcome = run(tmp_path, Answering(full_at_two), load=found)
    assert [point.concurrency for point in outcome.points] == [1, 2, 4]


def test_an_answer_without_figures_is_no_measurement(tmp_path: Path) -> None:
    outcome = run(tmp_path, Answering(lambda ask: LevelAnswer({}, 0, 1.0)))
    assert outcome.verdict is Verdict.MEASUREMENT_INVALID
    assert outcome.cause == "the engine has no figures of this level"


def test_reasons_make_a_point_invalid() -> None:
    told = LevelAnswer({"output_tokens_per_s": 1.0}, 5, 1.0, reasons=("queue never settled",))
    point = answered_point(CLOSED, told, {})
    assert not point.valid and point.reasons == ["queue never settled"] and point.n == 5


@given(st.dictionaries(st.sampled_from("abcd"), st.floats(allow_nan=True), max_size=4))
def test_what_is_not_finite_is_absent(metrics: dict[str, float]) -> None:
    point = answered_point(CLOSED, LevelAnswer(metrics, 1, 1.0), {})
    assert all(map(math.isfinite, point.metrics.values()))
    assert point.valid == any(map(math.isfinite, metrics.values()))


def test_a_level_is_asked_by_what_was_set() -> None:
    level = LoadLevel("open", 60, rate_per_s=2.5, arrivals="poisson")
    ask = level_ask(level, WorkloadConfig(input_tokens=512, output_tokens=128), seed=3)
    assert ask == LevelAsk("open", None, 2.5, 60, 512.0, 128.0, 3, "poisson")


def test_a_conversation_reads_all_that_was_said_before() -> None:
    work = WorkloadConfig(kind="conversation", input_tokens=100, output_tokens=10, turns=3)
    # 100, then 100 + 10 + 100, then 100 + 10 + 100 + 10 + 100.
    assert mean_lengths(work) == ((100 + 210 + 320) / 3, 10.0)


@pytest.mark.parametrize("kind", ["jsonl", "trace"])
def test_lengths_of_a_file_are_means_over_its_requests(tmp_path: Path, kind: str) -> None:
    if kind == "trace":
        path = tmp_path / "trace.csv"
        path.write_text(
            "TIMESTAMP,ContextTokens,GeneratedTokens\n"
            "2023-11-16 18:17:03.9,100,10\n2023-11-16 18:17:04.9,300,30\n"
        )
        work = WorkloadConfig(kind="trace", path=str(path))
        assert mean_lengths(work) == (200.0, 20.0)
    else:
        path = tmp_path / "requests.jsonl"
        path.write_text('{"prompt": [1, 2, 3, 4], "output_tokens": 6}\n{"prompt": "one two"}\n')
        work = WorkloadConfig(kind="file", path=str(path), output_tokens=10)
        read, written = mean_lengths(work)
        assert written == pytest.approx(8.0, abs=0.1)
        assert 3.0 < read < 4.0, "the text's length is an estimate"
