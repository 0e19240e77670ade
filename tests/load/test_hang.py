"""Silence that is a hang, and silence that is only a long prompt or a full queue."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweeper.load.hang import Stillness
from sweeper.load.records import RequestOutcome
from tests.load.stub import Dials, Stub, running
from tests.load.work import closed, drive


def test_a_stream_that_stops_is_a_hang_where_nothing_is_counted() -> None:
    still = Stillness(10.0)
    still.saw_tokens(0, 0, 0.0)
    assert not still.is_hang(60.0, any_begun=False), "a first token may take long"
    assert still.is_hang(60.0, any_begun=True)
    still.saw_tokens(0, 1, 60.0)
    assert not still.is_hang(69.0, any_begun=True)
    still.saw_tokens(1, 0, 69.0)
    assert not still.is_hang(78.0, any_begun=True), "one was answered"


def test_counters_that_move_are_progress_and_counters_that_stand_still_are_none() -> None:
    still = Stillness(10.0)
    still.saw_tokens(0, 0, 0.0)
    still.saw_counters({"prompt": 1.0}, 1.0)
    still.saw_counters({"prompt": 2.0}, 8.0)
    assert not still.is_hang(17.0, any_begun=False)
    still.saw_counters({"prompt": 2.0}, 17.0)
    assert still.is_hang(18.0, any_begun=False)


def test_counters_that_are_told_no_more_stand_still() -> None:
    still = Stillness(10.0)
    still.saw_tokens(0, 0, 0.0)
    still.saw_counters({"prompt": 1.0}, 1.0)
    still.saw_counters({}, 8.0)
    assert still.is_hang(11.0, any_begun=False)


@given(st.lists(st.floats(0.1, 9.9), min_size=1, max_size=30))
def test_whoever_moves_in_time_never_hangs(pauses: list[float]) -> None:
    still, now_s = Stillness(10.0), 0.0
    for place, pause in enumerate(pauses):
        still.saw_tokens(0, place, now_s)
        still.saw_counters({"x": 1.0}, now_s)
        now_s += pause
        assert not still.is_hang(now_s, any_begun=True)


@pytest.mark.parametrize("counters", [True, False])
def test_streams_that_stop_end_the_level_long_before_their_deadlines(counters: bool) -> None:
    dials = Dials(fault=lambda number: "stall" if number >= 4 else None, metrics=counters)
    begun = time.monotonic()
    with running(dials) as stub:
        run = drive(stub, closed(2, 12), request_timeout_s=60.0, hang_timeout_s=1.0)
    assert time.monotonic() - begun < 15
    assert run.hung
    assert run.ended_early is not None
    assert run.ended_early.startswith("the server hangs: no token for ")
    assert "with 2 requests running" in run.ended_early
    outcomes = [record.outcome for record in run.records]
    assert outcomes == [RequestOutcome.OK] * 4 + [RequestOutcome.TIMEOUT] * 2


def test_a_hang_in_the_warm_up_is_seen_too() -> None:
    with running(Dials(fault=lambda number: "stall")) as stub:
        run = drive(
            stub,
            closed(2, 4),
            request_timeout_s=60.0,
            hang_timeout_s=1.0,
            warmup_requests_per_stream=1,
        )
    assert run.hung
    assert run.ended_early is not None
    assert run.ended_early.startswith("warm-up: ")


@contextmanager
def counting(stub: Stub) -> Iterator[None]:
    """The stub's server gets on with prompts, without a token for anybody."""
    stop = threading.Event()

    def count() -> None:
        while not stop.wait(0.05):
            stub.counters["queries"] += 1

    thread = threading.Thread(target=count)
    thread.start()
    yield
    stop.set()
    thread.join()


def test_a_slow_first_token_is_no_hang_while_the_server_counts() -> None:
    with running(Dials(first_token_s=2.5)) as stub, counting(stub):
        run = drive(stub, closed(2, 2), request_timeout_s=30.0, hang_timeout_s=1.5)
    assert not run.hung
    assert run.ended_early is None


def test_a_slow_first_token_is_no_hang_where_nothing_is_counted() -> None:
    with running(Dials(first_token_s=1.5, metrics=False)) as stub:
        run = drive(stub, closed(2, 2), request_timeout_s=30.0, hang_timeout_s=0.5)
    assert not run.hung
    assert run.ended_early is None


def test_a_watch_that_breaks_is_no_silent_hang(monkeypatch: pytest.MonkeyPatch) -> None:
    from sweeper.load import hang

    async def broken(*_: object) -> dict[str, float]:
        raise ValueError("a fault of ours")

    monkeypatch.setattr(hang, "scrape", broken)
    with running(Dials(first_token_s=3.0)) as stub, pytest.raises(ValueError, match="of ours"):
        drive(stub, closed(2, 2), hang_timeout_s=0.6)
