"""A closed loop against a server with dialled faults."""

from __future__ import annotations

import _thread
import threading
import time
from typing import Any

import pytest

from sweeper.load import server_metrics
from sweeper.load.closed import run_level
from sweeper.load.prompts import PromptSource
from sweeper.load.records import LevelRun, RequestOutcome
from tests.load.stub import Dials, Stub, running

PROMPTS = PromptSource([[11, 12, 13, 14], [21, 22, 23], [31, 32, 33, 34, 35]], seed=1)


def drive(stub: Stub, **changes: Any) -> LevelRun:
    settings: dict[str, Any] = {
        "concurrency": 4,
        "requests": 12,
        "warmup_requests": 0,
        "prompts": PROMPTS,
        "stream": "test",
        "input_tokens": 16,
        "output_tokens": 5,
        "temperature": 0.0,
        "ignore_eos": True,
        "request_timeout_s": 5.0,
        "level_timeout_s": 20.0,
    }
    return run_level(stub.address, **(settings | changes))


def outcomes(run: LevelRun) -> set[RequestOutcome]:
    return {record.outcome for record in run.records}


def test_a_good_level() -> None:
    seen: list[tuple[int, int]] = []
    with running(Dials(first_token_s=0.02, token_s=0.005)) as stub:
        run = drive(stub, warmup_requests=4, on_progress=lambda *step: seen.append(step))
    assert stub.max_in_flight == 4
    assert outcomes(run) == {RequestOutcome.OK}
    assert [record.index for record in run.records] == list(range(12))
    assert {(record.prompt_tokens, record.output_tokens) for record in run.records} == {(16, 5)}
    for record in run.records:
        assert record.first_token_s is not None
        assert record.first_token_s - record.sent_s >= 0.02
        assert record.finished_s - record.first_token_s >= 4 * 0.005
    assert seen[-1] == (12, 12) and len(seen) == 12
    assert run.ended_early is None and run.requests_asked == 12 and run.exact_input
    assert run.client_cpu_s > 0


def test_the_window_is_where_all_streams_are_busy() -> None:
    with running(Dials(first_token_s=0.03)) as stub:
        run = drive(stub, concurrency=3, requests=9)
    start, end = run.window_s
    starts = sorted(record.sent_s for record in run.records)
    ends = sorted(record.finished_s for record in run.records)
    assert starts[2] - 0.005 <= start <= ends[0]
    assert ends[6] <= end <= run.duration_s


def test_warm_up_is_excluded_with_prompts_of_its_own_and_counters_begin_after_it() -> None:
    with running() as stub:
        run = drive(stub, warmup_requests=8)
    prompts = [tuple(body["prompt"]) for body in stub.bodies]
    assert len(prompts) == 20 and len(set(prompts)) == 20
    assert len(run.records) == 12
    key = server_metrics.GENERATION_TOKENS
    assert run.server_after[key] - run.server_before[key] == 12 * 5


def test_lengths_are_asked_for_so_that_they_can_be_checked() -> None:
    with running() as stub:
        drive(stub, requests=1, concurrency=1)
        drive(stub, requests=1, concurrency=1, ignore_eos=False, seed=3, temperature=0.7)
    fixed, free = stub.bodies
    assert (fixed["min_tokens"], fixed["max_tokens"], fixed["ignore_eos"]) == (5, 5, True)
    assert fixed["stream_options"] == {"include_usage": True}
    assert "min_tokens" not in free and (free["seed"], free["temperature"]) == (3, 0.7)


def test_a_server_without_metrics_is_measured_without_counters() -> None:
    with running(Dials(metrics=False)) as stub:
        run = drive(stub)
    assert run.server_before == {} and run.server_after == {}
    assert outcomes(run) == {RequestOutcome.OK}


@pytest.mark.parametrize(
    ("fault", "outcome"),
    [
        ("http_500", RequestOutcome.ERROR),
        ("reset", RequestOutcome.ERROR),
        ("error_event", RequestOutcome.ERROR),
        ("old_error_event", RequestOutcome.ERROR),
        ("not_json", RequestOutcome.ERROR),
        ("no_usage", RequestOutcome.INCOMPLETE),
        ("no_content", RequestOutcome.INCOMPLETE),
        ("no_finish", RequestOutcome.INCOMPLETE),
    ],
)
def test_every_failure_is_a_record_with_one_line(fault: str, outcome: RequestOutcome) -> None:
    with running(Dials(fault=lambda number: fault if number % 3 == 0 else None)) as stub:
        run = drive(stub)
    failed = [record for record in run.records if record.outcome is not RequestOutcome.OK]
    assert len(run.records) == 12 and len(failed) == 4
    for record in failed:
        assert record.outcome is outcome
        assert record.error and "\n" not in record.error


@pytest.mark.parametrize("fault", ["empty_first", "reasoning", "tool_call", "late_reset"])
def test_odd_but_good_streams_are_ok(fault: str) -> None:
    with running(Dials(fault=lambda _: fault, first_token_s=0.03)) as stub:
        run = drive(stub)
    assert outcomes(run) == {RequestOutcome.OK}
    for record in run.records:
        assert record.first_token_s is not None
        assert record.first_token_s - record.sent_s >= 0.03


def test_several_tokens_a_chunk_are_counted_by_usage() -> None:
    with running(Dials(tokens_per_chunk=5)) as stub:
        run = drive(stub)
    assert {(record.chunks, record.output_tokens) for record in run.records} == {(1, 5)}


def test_51_percent_failures_are_all_told() -> None:
    with running(Dials(fault=lambda number: "http_500" if number % 100 < 51 else None)) as stub:
        run = drive(stub, concurrency=60, requests=100)
    failed = [record for record in run.records if record.outcome is RequestOutcome.ERROR]
    assert len(run.records) == 100 and len(failed) == 51


def test_a_level_of_failures_only_ends_after_one_round() -> None:
    with running(Dials(fault=lambda _: "http_500")) as stub:
        run = drive(stub, requests=1000)
    assert len(run.records) < 20
    assert run.ended_early is not None and "engine is dead" in run.ended_early


def test_a_stalled_stream_times_out_and_does_not_take_the_level_with_it() -> None:
    with running(Dials(fault=lambda number: "stall" if number == 2 else None)) as stub:
        run = drive(stub, request_timeout_s=0.3)
    assert [record.outcome for record in run.records].count(RequestOutcome.TIMEOUT) == 1
    assert len(run.records) == 12 and run.ended_early is None


def test_a_server_that_hangs_costs_one_round_of_timeouts() -> None:
    started = time.monotonic()
    with running(Dials(fault=lambda _: "stall")) as stub:
        run = drive(stub, requests=100, request_timeout_s=0.4)
    assert time.monotonic() - started < 3
    assert outcomes(run) == {RequestOutcome.TIMEOUT} and run.ended_early is not None


def test_a_failing_warm_up_ends_the_level_without_records() -> None:
    with running(Dials(fault=lambda _: "http_500")) as stub:
        run = drive(stub, warmup_requests=4)
    assert run.records == ()
    assert run.ended_early is not None and run.ended_early.startswith("warm-up")


def test_a_dead_server_ends_the_level_at_once() -> None:
    started = time.monotonic()
    with running(Dials(fault=lambda _: "stall")) as stub:
        run = drive(stub, request_timeout_s=60.0, is_alive=lambda: time.monotonic() < started + 0.4)
    assert time.monotonic() - started < 3
    assert run.ended_early == "the server died"
    assert len(run.records) == 4 and outcomes(run) == {RequestOutcome.ERROR}


def test_a_refused_connection_ends_the_level_at_once() -> None:
    with running() as stub:
        pass
    started = time.monotonic()
    run = drive(stub, requests=10_000)
    assert time.monotonic() - started < 3
    assert run.ended_early is not None and outcomes(run) == {RequestOutcome.ERROR}


def test_the_level_has_a_deadline() -> None:
    started = time.monotonic()
    with running(Dials(first_token_s=0.05)) as stub:
        run = drive(stub, requests=10_000, level_timeout_s=0.5)
    assert time.monotonic() - started < 3
    assert run.ended_early is not None and "0.5 s" in run.ended_early
    assert RequestOutcome.OK in outcomes(run)


def test_an_interrupt_comes_out_promptly() -> None:
    with running(Dials(fault=lambda _: "stall")) as stub:
        timer = threading.Timer(0.5, _thread.interrupt_main)
        timer.start()
        started = time.monotonic()
        with pytest.raises(KeyboardInterrupt):
            drive(stub, request_timeout_s=60.0)
        timer.cancel()
    assert time.monotonic() - started < 3


def test_a_broken_liveness_probe_is_a_bug_and_not_a_hang() -> None:
    def probe() -> bool:
        raise RuntimeError("probe is broken")

    with running(Dials(fault=lambda _: "stall")) as stub, pytest.raises(RuntimeError):
        drive(stub, is_alive=probe)


def test_the_client_can_keep_many_streams_in_flight() -> None:
    with running(Dials(first_token_s=0.3)) as stub:
        run = drive(stub, concurrency=150, requests=150)
    assert stub.max_in_flight == 150
    assert outcomes(run) == {RequestOutcome.OK}
