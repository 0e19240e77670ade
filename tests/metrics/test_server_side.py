"""The server's own figures: added up over repeats, taken inside the window, absent if not told."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from sweeper.load import server_metrics as names
from sweeper.load.records import Gauges, LevelRun
from sweeper.metrics.summary import summarise
from tests.metrics.synthetic import level

COUNTERS = {
    names.PREEMPTIONS: 2.0,
    names.SPEC_DRAFTS: 40.0,
    names.SPEC_DRAFT_TOKENS: 120.0,
    names.SPEC_ACCEPTED: 90.0,
    names.GENERATION_TOKENS: 220.0,
    names.PREFIX_QUERIES: 0.0,
    names.PREFIX_HITS: 0.0,
}


def counting(run: LevelRun) -> LevelRun:
    return replace(
        run,
        server_before=dict.fromkeys(COUNTERS, 5.0),
        server_after={name: value + 5.0 for name, value in COUNTERS.items()},
    )


def look(at_s: float, kv: float, running: float, waiting: float) -> Gauges:
    values = {names.KV_USAGE: kv, names.RUNNING: running, names.WAITING: waiting}
    return Gauges(at_s, values)


def test_counters_become_metrics() -> None:
    metrics = summarise([counting(level())], device_count=1).metrics
    assert metrics["preemptions"] == 2.0
    assert metrics["spec_acceptance_share"] == 0.75
    assert metrics["spec_tokens_per_draft"] == 2.25
    assert metrics["server_output_tokens"] == 220.0
    assert "prefix_cache_hit_share" not in metrics


def test_counters_of_repeats_are_added_up() -> None:
    metrics = summarise([counting(level())] * 3, device_count=1).metrics
    assert metrics["preemptions"] == 6.0
    assert metrics["spec_acceptance_share"] == 0.75
    half = summarise([counting(level()), level()], device_count=1).metrics
    assert "preemptions" not in half, "half of the repeats do not tell"


def test_a_counter_that_was_reset_tells_nothing() -> None:
    run = level(
        server_before={names.GENERATION_TOKENS: 9.0, names.PREEMPTIONS: 5.0},
        server_after={names.GENERATION_TOKENS: 3.0, names.PREEMPTIONS: 1.0},
    )
    summary = summarise([run], device_count=1)
    assert summary.valid and "preemptions" not in summary.metrics


def test_gauges_are_taken_inside_the_window() -> None:
    run = level()
    start, end = run.window_s
    gauges = (look(end + 1, 0.9, 0, 0), look(start, 0.4, 3, 0), look(end, 0.6, 5, 2))
    metrics = summarise([replace(run, gauges=gauges)], device_count=1).metrics
    expected = {
        "kv_cache_usage_max_share": 0.6,
        "kv_cache_usage_mean_share": 0.5,
        "queue_mean_requests": 1.0,
        "queue_max_requests": 2.0,
        "running_mean_requests": 4.0,
        "batch_mean": 4.0,
    }
    assert {name: metrics[name] for name in expected} == pytest.approx(expected)


def test_an_engine_without_metrics_is_measured_all_the_same() -> None:
    summary = summarise([level()], device_count=1)
    told = {"kv_cache_usage_max_share", "queue_mean_requests", "running_mean_requests"}
    assert summary.valid and not told & set(summary.metrics)
    assert summary.metrics["batch_mean"] == summary.metrics["achieved_concurrency"]


def test_gauges_that_tell_half_of_it_are_taken_for_what_they_are() -> None:
    gauges = (Gauges(0.5, {names.KV_USAGE: math.nan}), Gauges(0.6, {names.WAITING: 3.0}))
    metrics = summarise([level(gauges=gauges)], device_count=1).metrics
    assert metrics["queue_max_requests"] == 3.0
    assert "kv_cache_usage_max_share" not in metrics and "running_mean_requests" not in metrics
