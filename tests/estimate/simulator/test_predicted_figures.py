"""Figures of simulated requests are those that the same requests would be measured at."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sweeper.estimate.simulator.workers.side.predicted_figures import answer, figures
from sweeper.load.level import LoadLevel
from sweeper.load.records import LevelRun, RequestOutcome, RequestRecord
from sweeper.metrics.summary import summarise

SAME = (
    *("output_tokens_per_s", "output_tokens_per_s_per_gpu", "total_tokens_per_s"),
    *("requests_per_s", "achieved_concurrency", "input_tokens_mean", "output_tokens_mean"),
    *(f"{name}_{of}_ms" for name in ("ttft", "tpot", "e2e") for of in ("mean", "p50", "p95")),
)


def request(sent_ms: float, first_ms: float, end_ms: float, **told: Any) -> dict[str, Any]:
    return {
        "arrival_time_ms": sent_ms,
        "first_token_ms": first_ms,
        "last_token_ms": end_ms,
        "input_length": 64,
        "output_length": 16,
        "terminal_status": "completed",
        **told,
    }


def closed_loop(streams: int, durations_ms: list[float]) -> list[dict[str, Any]]:
    """Requests as streams send them: each when the one before it has ended."""
    free = [0.0] * streams
    made = []
    for duration in durations_ms:
        stream = free.index(min(free))
        sent = free[stream]
        free[stream] = sent + duration
        made.append(request(sent, sent + duration / 4, sent + duration))
    return made


def measured(requests: list[dict[str, Any]], streams: int) -> dict[str, float]:
    """The same requests through the code that measures."""
    records = tuple(
        RequestRecord(
            index=index,
            scheduled_s=one["arrival_time_ms"] / 1e3,
            sent_s=one["arrival_time_ms"] / 1e3,
            first_token_s=one["first_token_ms"] / 1e3,
            finished_s=one["last_token_ms"] / 1e3,
            chunks=one["output_length"],
            prompt_tokens=one["input_length"],
            output_tokens=one["output_length"],
            outcome=RequestOutcome.OK,
        )
        for index, one in enumerate(requests)
    )
    last_sent = max(record.sent_s for record in records)
    until = min(r.finished_s for r in records if r.finished_s > last_sent)
    level = LoadLevel("closed", len(records), concurrency=streams)
    end = max(record.finished_s for record in records)
    run = LevelRun(level, records, (0.0, until), end, 0.0, {}, {})
    return summarise([run], device_count=2).metrics


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 4), st.lists(st.floats(20.0, 400.0), min_size=12, max_size=24))
def test_the_same_requests_have_the_same_figures(streams: int, durations: list[float]) -> None:
    requests = closed_loop(streams, durations)
    ours, theirs = figures(requests, devices=2, closed=True), measured(requests, streams)
    for name in SAME:
        assert ours[name] == pytest.approx(theirs[name], rel=1e-9), name
    assert ("single_stream_tokens_per_s" in ours) == (streams == 1)


def test_streams_in_step_are_counted_over_whole_rounds() -> None:
    requests = [request(start, start + 25, start + 100) for start in (0, 0, 100, 100, 200, 200)]
    found = figures(requests, devices=1, closed=True)
    assert found["output_tokens_per_s"] == pytest.approx(2 * 16 / 0.1)
    assert found["achieved_concurrency"] == pytest.approx(2.0)


def test_by_the_clock_the_last_arrival_ends_the_window() -> None:
    requests = [request(100.0 * i, 100.0 * i + 5, 100.0 * i + 50) for i in range(11)]
    found = figures(requests, devices=1, closed=False)
    assert found["requests_per_s"] == pytest.approx(10.0)
    assert found["achieved_concurrency"] == pytest.approx(0.5)


def test_outputs_of_one_token_have_no_time_a_token() -> None:
    one = [request(0, 10, 10, output_length=1), request(10, 20, 20, output_length=1)]
    assert not [name for name in figures(one, devices=1, closed=True) if name.startswith("tpot")]


def test_memory_is_told_as_a_start_would_log_it() -> None:
    memory = {
        "total_kv_size_tokens": 1000,
        "total_kv_size_bytes": 1 << 31,
        "memory_breakdown": {"weights_bytes": 1 << 30},
    }
    told = answer(
        {"duration_ms": 100.0, "prefix_cache_reused_ratio": 0.5},
        {"per_request": [request(0, 10, 100)], "memory_diagnostics": {"aggregated": memory}},
        devices=1,
        closed=True,
    )
    assert told["learnt"] == {
        "kv_cache_tokens": 1000,
        "kv_cache_memory_gib": 2.0,
        "model_memory_gib": 1.0,
    }
    assert told["metrics"]["prefix_cache_hit_share"] == 0.5


def test_requests_that_never_ended_are_no_figures() -> None:
    dropped = request(0, 0, 0, terminal_status="rejected")
    told = answer({"stop_reason": "r", "diagnostic": "d"}, {"per_request": [dropped]}, devices=1,
                  closed=True)  # fmt: skip
    assert told == {"refused": "r: d"}
