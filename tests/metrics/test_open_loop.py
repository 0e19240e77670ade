"""Load by the clock: latencies from the due moment, and a server that cannot keep up is told."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from sweeper.metrics.open_loop import offered_per_s, saturated, send_lags_s
from sweeper.metrics.summary import summarise
from sweeper.metrics.window import Repeat, choose_window
from tests.metrics.synthetic import by_the_clock, failed, level


def test_the_figures_of_a_server_that_keeps_up() -> None:
    summary = summarise([by_the_clock(rate_per_s=10.0, requests=200)], device_count=1)
    metrics = summary.metrics
    assert summary.valid and summary.load["saturated"] is False
    assert summary.load["kind"] == "open" and summary.load["window"] == "steady"
    assert summary.load["window_s"] == pytest.approx(19.9 - 0.3)
    assert metrics["request_rate_offered_per_s"] == pytest.approx(10.0)
    assert metrics["requests_per_s"] == pytest.approx(10.0, rel=0.02)
    assert metrics["output_tokens_per_s"] == pytest.approx(110.0, rel=0.02)
    assert metrics["achieved_concurrency"] == pytest.approx(3.0, rel=0.02)
    assert metrics["output_tokens_per_s_per_user"] == pytest.approx(11 / 0.3, rel=0.02)
    assert metrics["send_lag_p95_ms"] == 0.0
    assert "ttft_p50_ms" not in summary.low_confidence


def test_waiting_to_be_sent_is_not_omitted_from_latency() -> None:
    run = by_the_clock()
    held = tuple(replace(r, scheduled_s=r.scheduled_s - 0.5) for r in run.records[50:])
    run = replace(run, records=(*run.records[:50], *held))
    metrics = summarise([run], device_count=1).metrics
    assert metrics["ttft_p95_ms"] == pytest.approx(600.0)
    assert metrics["e2e_p95_ms"] == pytest.approx(800.0)
    assert metrics["send_lag_p95_ms"] == pytest.approx(500.0)


@pytest.mark.parametrize(
    ("served_per_s", "expected"), [(None, False), (10.5, False), (9.0, True), (4.0, True)]
)
def test_a_queue_that_grows_is_told(served_per_s: float | None, expected: bool) -> None:
    run = by_the_clock(rate_per_s=10.0, requests=600, served_per_s=served_per_s)
    summary = summarise([run], device_count=1)
    assert summary.valid, "saturation is a finding, no fault of the measurement"
    assert summary.load["saturated"] is expected
    assert ("ttft_p50_ms" in summary.low_confidence) == expected
    if expected:
        assert summary.metrics["requests_per_s"] < 0.95 * 10.0


def test_everything_at_once_is_queueing_and_said_to_be() -> None:
    run = by_the_clock(rate_per_s=1000.0, requests=100, served_per_s=5.0)
    summary = summarise([run], device_count=1)
    assert summary.load["window"] == "whole" and summary.load["saturated"] is True
    assert {"ttft_mean_ms", "ttft_p95_ms", "e2e_p50_ms"} <= set(summary.low_confidence)
    assert summary.metrics["requests_per_s"] == pytest.approx(5.0, rel=0.05)


def test_random_arrivals_below_capacity_are_not_called_saturated() -> None:
    rng = np.random.default_rng(3)
    for _ in range(20):
        due = np.cumsum(rng.exponential(0.1, 300)).tolist()
        run = by_the_clock(arrivals_s=due, served_per_s=13.0)
        assert summarise([run], device_count=1).load["saturated"] is False


def test_long_requests_in_a_short_level_are_not_called_saturated() -> None:
    run = by_the_clock(rate_per_s=10.0, requests=50, ttft_s=8.0)
    summary = summarise([run], device_count=1)
    assert summary.load["window"] == "whole" and summary.load["saturated"] is False


def test_one_saturated_repeat_is_enough() -> None:
    runs = [by_the_clock(requests=600), by_the_clock(requests=600, served_per_s=7.0)]
    assert summarise(runs, device_count=1).load["saturated"] is True


def test_too_little_to_tell_is_not_told() -> None:
    run = by_the_clock(requests=2)
    assert saturated([Repeat(run, run.records, choose_window(run, run.records))]) is None
    assert "saturated" not in summarise([level()], device_count=1).load


def test_later_turns_are_no_arrivals() -> None:
    run = by_the_clock(rate_per_s=10.0, requests=100)
    turns = tuple(
        replace(r, turn=1, scheduled_s=r.scheduled_s + 1, sent_s=r.sent_s + 1) for r in run.records
    )
    both = replace(run, records=(*run.records, *turns))
    assert offered_per_s([both]) == pytest.approx(10.0)
    assert len(send_lags_s([both])) == 100
    assert offered_per_s([replace(run, records=run.records[:1])]) is None


def test_a_failed_request_was_offered_all_the_same() -> None:
    run = by_the_clock(rate_per_s=10.0, requests=100)
    records = [failed(r.index, r.sent_s) if r.index % 2 else r for r in run.records]
    assert offered_per_s([replace(run, records=tuple(records))]) == pytest.approx(10.0)
