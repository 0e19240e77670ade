"""Open loop: requests go out by the clock, and waiting is never hidden."""

from __future__ import annotations

import statistics
import time

import pytest

from sweeper.load.drive import Listeners
from sweeper.load.level import LoadLevel
from sweeper.load.records import RequestOutcome
from tests.load.stub import Dials, running
from tests.load.work import NumberedWork, closed, drive


def rate(rate_per_s: float, requests: int, **changes: object) -> LoadLevel:
    asked = {"kind": "open", "arrivals": "constant"} | changes
    return LoadLevel(requests=requests, rate_per_s=rate_per_s, **asked)  # type: ignore[arg-type]


def test_requests_are_sent_when_they_are_due() -> None:
    with running(Dials(first_token_s=0.05)) as stub:
        run = drive(stub, rate(50, 40))
    assert [record.scheduled_s for record in run.records] == pytest.approx(
        [number / 50 for number in range(40)]
    )
    late_s = [record.sent_s - record.scheduled_s for record in run.records]
    assert all(late >= 0 for late in late_s) and statistics.median(late_s) < 0.01
    assert run.level.kind == "open" and run.concurrency is None


def test_a_slow_server_does_not_slow_the_arrivals() -> None:
    with running(Dials(first_token_s=0.5)) as stub:
        run = drive(stub, rate(100, 30))
    assert stub.max_in_flight == 30, "a closed loop would have waited for answers"
    assert max(record.sent_s for record in run.records) < 0.5


def test_latency_counts_from_the_scheduled_arrival_when_the_client_is_held_up() -> None:
    held = []

    def hold_once(_: object) -> None:
        if not held:
            held.append(True)
            time.sleep(0.3)

    with running(Dials(first_token_s=0.0)) as stub:
        run = drive(stub, rate(50, 25), listeners=Listeners(hold_once))
    worst = max(run.records, key=lambda record: record.sent_s - record.scheduled_s)
    assert worst.sent_s - worst.scheduled_s > 0.2
    assert worst.first_token_s is not None
    assert worst.first_token_s - worst.scheduled_s > 0.2, "the wait before sending is in the TTFT"


def test_the_window_begins_when_the_server_is_full_and_ends_with_the_arrivals() -> None:
    with running(Dials(first_token_s=0.2)) as stub:
        run = drive(stub, rate(50, 50))
    start, end = run.window_s
    assert 0.2 <= start < 0.4
    assert end == pytest.approx(49 / 50)


def test_a_replay_keeps_the_recorded_times_on_its_own_scale() -> None:
    level = LoadLevel("replay", 1_000, time_scale=2.0)
    with running() as stub:
        run = drive(stub, level, NumberedWork(at_s=(0.0, 0.2, 0.2, 0.8)))
    assert [record.scheduled_s for record in run.records] == pytest.approx([0, 0.1, 0.1, 0.4])
    assert run.requests_asked == 4 and run.ended_early is None, "a trace simply ends"


def test_a_replay_of_a_workload_without_times_is_a_bug() -> None:
    with running() as stub, pytest.raises(ExceptionGroup) as caught:
        drive(stub, LoadLevel("replay", 5))
    assert caught.group_contains(ValueError, match="no recorded arrivals")


def test_an_arrival_rate_that_a_dead_server_cannot_answer_ends_the_level() -> None:
    with running(Dials(fault=lambda _: "http_500")) as stub:
        run = drive(stub, rate(500, 5_000))
    assert run.ended_early is not None and "engine is dead" in run.ended_early
    assert len(run.records) < 200
    assert all(record.outcome is RequestOutcome.ERROR for record in run.records)


def test_the_deadline_ends_requests_in_flight_too() -> None:
    started = time.monotonic()
    with running(Dials(fault=lambda _: "stall")) as stub:
        run = drive(stub, rate(20, 1000), level_timeout_s=0.5, request_timeout_s=60.0)
    assert time.monotonic() - started < 4
    assert run.ended_early is not None
    assert {record.outcome for record in run.records} == {RequestOutcome.TIMEOUT}


def test_conversations_go_on_after_the_answer_and_the_pause() -> None:
    work = NumberedWork(turns=3, think_time_s=0.1)
    with running(Dials(first_token_s=0.02)) as stub:
        run = drive(stub, rate(100, 6), work)
    assert [record.turn for record in run.records] == [0] * 6, "the limit is of requests"
    with running(Dials(first_token_s=0.02)) as stub:
        run = drive(stub, closed(2, 6), work)
    assert sorted(record.turn for record in run.records) == [0, 0, 1, 1, 2, 2]
    later = [body["prompt"] for body in stub.bodies if isinstance(body["prompt"], str)]
    assert len(later) == 4 and all(" word" in prompt for prompt in later), "the answer is in it"
    by_turn = {record.turn: record for record in run.records}
    assert by_turn[1].sent_s >= by_turn[0].finished_s + 0.1


def test_a_failed_turn_ends_its_conversation() -> None:
    work = NumberedWork(turns=5)
    fault = {1: "http_500"}
    with running(Dials(fault=fault.get)) as stub:
        run = drive(stub, closed(1, 6), work)
    assert [record.turn for record in run.records] == [0, 1, 0, 1, 2, 3]


def test_warm_up_of_an_open_level_comes_first_and_is_not_recorded() -> None:
    with running() as stub:
        run = drive(stub, rate(20, 5), warmup_requests_per_stream=1)
    assert run.warm_up.requests == 20 and len(run.records) == 5
    assert len(stub.bodies) == 25


def test_a_trace_that_begins_late_has_its_window_after_its_beginning() -> None:
    level = LoadLevel("replay", 1_000)
    times = tuple(0.3 + 0.02 * number for number in range(20))
    with running(Dials(first_token_s=0.1)) as stub:
        run = drive(stub, level, NumberedWork(at_s=times))
    assert 0.4 <= run.window_s[0] <= run.window_s[1] == pytest.approx(times[-1])
