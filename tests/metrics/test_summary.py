"""A level in figures: true, with units, and silent about what was not measured."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, replace
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sweeper.load.level import LoadLevel
from sweeper.load.records import LevelRun, RequestRecord, WarmUp
from sweeper.metrics.latencies import latencies
from sweeper.metrics.summary import summarise
from sweeper.trial.outcome import Point
from tests.metrics.synthetic import batch, by_the_clock, failed, level, record, with_records


def scaled(run: LevelRun, factor: float) -> LevelRun:
    def slower(r: RequestRecord) -> RequestRecord:
        assert r.first_token_s is not None
        return replace(
            r,
            scheduled_s=r.scheduled_s * factor,
            sent_s=r.sent_s * factor,
            first_token_s=r.first_token_s * factor,
            finished_s=r.finished_s * factor,
        )

    start, end = run.window_s
    return replace(
        run,
        records=tuple(map(slower, run.records)),
        window_s=(start * factor, end * factor),
        duration_s=run.duration_s * factor,
    )


def test_the_figures_of_a_known_level() -> None:
    summary = summarise([level(concurrency=4, rounds=5)], device_count=2)
    metrics = summary.metrics
    assert summary.valid and summary.n == 20
    assert summary.load["concurrency"] == 4 and summary.load["kind"] == "closed"
    expected = {
        "output_tokens_per_s": 11 * 4 / 0.3,
        "output_tokens_per_s_per_gpu": 11 * 2 / 0.3,
        "output_tokens_per_s_per_user": 11 / 0.3,
        "total_tokens_per_s": 75 * 4 / 0.3,
        "requests_per_s": 4 / 0.3,
        "ttft_p95_ms": 100.0,
        "tpot_p50_ms": 20.0,
        "e2e_mean_ms": 300.0,
        "input_tokens_mean": 64.0,
        "output_tokens_mean": 11.0,
        "success_share": 1.0,
        "achieved_concurrency": 4.0,
        "client_cpu_share": 0.01 / 1.5,
        "prefill_tokens_per_s": 4 * 64 / 0.1,
        "prefill_tokens_per_s_per_gpu": 2 * 64 / 0.1,
        "prefill_tokens_per_s_per_user": 640.0,
        "decode_tokens_per_s": 4 / 0.02,
        "decode_tokens_per_s_per_gpu": 2 / 0.02,
        "decode_tokens_per_s_per_user": 50.0,
        "batch_mean": 4.0,
    }
    assert {name: metrics[name] for name in expected} == pytest.approx(expected)


def test_single_stream_speed_is_told_only_at_concurrency_one() -> None:
    alone = summarise([level(concurrency=1)], device_count=1).metrics
    assert alone["single_stream_tokens_per_s"] == pytest.approx(11 / 0.3)
    assert alone["single_stream_prefill_tokens_per_s"] == pytest.approx(640.0)
    assert alone["single_stream_decode_tokens_per_s"] == pytest.approx(50.0)
    many = summarise([level(concurrency=2)], device_count=1).metrics
    assert not [name for name in many if name.startswith("single_stream")]


def test_with_nothing_successful_there_are_no_metrics_at_all() -> None:
    run = with_records(level(), [failed(i) for i in range(20)])
    summary = summarise([run], device_count=1)
    assert (summary.metrics, summary.intervals, summary.n) == ({}, {}, 0)
    assert not summary.valid and summary.reasons


def test_outputs_in_one_chunk_have_no_time_a_token() -> None:
    run = level()
    run = replace(run, records=tuple(replace(r, chunks=1) for r in run.records))
    metrics = summarise([run], device_count=1).metrics
    assert not [name for name in metrics if name.startswith("tpot")]
    assert "e2e_p95_ms" in metrics


def test_few_samples_are_marked() -> None:
    few = summarise([level(concurrency=4, rounds=5)], device_count=1)
    many = summarise([level(concurrency=4, rounds=50)], device_count=1)
    assert {"ttft_p95_ms", "e2e_p99_ms"} <= set(few.low_confidence)
    assert "ttft_p95_ms" not in many.low_confidence and "ttft_p99_ms" in many.low_confidence


def test_a_level_without_a_steady_state_says_so() -> None:
    summary = summarise([level(concurrency=4, rounds=1)], device_count=1)
    assert summary.load["window"] == "steady"  # all four ended together, at the window's end
    ragged = summarise([level(concurrency=4, rounds=1, stagger_s=0.01)], device_count=1)
    assert ragged.load["window"] == "whole"
    assert "output_tokens_per_s" in ragged.low_confidence


def jittered(rng: Random, n: int) -> LevelRun:
    run = level(concurrency=2, rounds=n)
    records = tuple(
        record(r.index, r.sent_s, rng.uniform(0.05, 0.1), rng.uniform(0.01, 0.02))
        for r in run.records
    )
    return replace(run, records=records)


@settings(max_examples=25, deadline=None)
@given(st.randoms(use_true_random=False), st.integers(2, 12))
def test_the_order_of_records_does_not_matter(rng: Random, n: int) -> None:
    run = jittered(rng, n)
    shuffled = list(run.records)
    rng.shuffle(shuffled)
    assert summarise([run], device_count=1) == summarise(
        [replace(run, records=tuple(shuffled))], device_count=1
    )


@settings(max_examples=25, deadline=None)
@given(st.randoms(use_true_random=False), st.floats(0.5, 20.0))
def test_a_clock_that_runs_slower_scales_every_figure(rng: Random, factor: float) -> None:
    run = jittered(rng, 5)
    before, after = (summarise([r], device_count=1).metrics for r in (run, scaled(run, factor)))
    for name, value in before.items():
        if name.endswith("_ms"):
            assert after[name] == pytest.approx(value * factor)
        elif "_per_s" in name:
            assert after[name] == pytest.approx(value / factor)


@settings(max_examples=25, deadline=None)
@given(st.randoms(use_true_random=False), st.integers(2, 12))
def test_everything_is_finite_and_inside_its_interval(rng: Random, n: int) -> None:
    summary = summarise([jittered(rng, n)], device_count=1)
    assert all(map(math.isfinite, summary.metrics.values()))
    assert {"output_tokens_per_s", "ttft_p95_ms", "tpot_p95_ms", "e2e_p95_ms"} <= set(
        summary.intervals
    )
    for name, (low, high) in summary.intervals.items():
        assert low <= high
        assert low <= summary.metrics[name] * (1 + 1e-9)
        assert summary.metrics[name] <= high * (1 + 1e-9)
    Point(**asdict(summary))
    json.dumps(asdict(summary), allow_nan=False)


def test_another_seed_is_another_bootstrap() -> None:
    run = jittered(Random(1), 10)
    first, again, other = (summarise([run], device_count=1, seed=s).intervals for s in (1, 1, 2))
    assert first == again != other


def test_a_level_begins_with_what_was_asked() -> None:
    for run in (level(), by_the_clock(), batch()):
        summary = summarise([run], device_count=1)
        asked = run.level.asked()
        assert {name: summary.load[name] for name in asked} == asked
        assert list(summary.load)[: len(asked)] == list(asked)
        assert Point(**asdict(summary)).level == run.level.name


def test_repeats_are_pooled_into_one_point() -> None:
    fast, slow = level(rounds=10), level(rounds=10, tpot_s=0.04)
    summary = summarise([fast, slow], device_count=1)
    metrics = summary.metrics
    assert summary.valid and summary.n == 80 and summary.load["repeats"] == 2
    assert summary.load["window_s"] == pytest.approx(10 * 0.3 + 10 * 0.5)
    assert metrics["output_tokens_per_s"] == pytest.approx(2 * 440 / 8.0)
    assert metrics["e2e_mean_ms"] == pytest.approx(400.0)
    assert (metrics["e2e_p50_ms"], metrics["e2e_p90_ms"]) == pytest.approx((400.0, 500.0))
    assert metrics["output_tokens_per_s_repeat_min"] == pytest.approx(44 / 0.5)
    assert metrics["output_tokens_per_s_repeat_max"] == pytest.approx(44 / 0.3)
    assert metrics["output_tokens_per_s_repeat_cv"] == pytest.approx(0.3535, abs=1e-3)


def test_one_run_has_no_spread_between_repeats() -> None:
    summary = summarise([level()], device_count=1)
    assert summary.load["repeats"] == 1
    assert not [name for name in summary.metrics if "repeat" in name]


@settings(max_examples=25, deadline=None)
@given(st.lists(st.randoms(use_true_random=False), min_size=2, max_size=4))
def test_pooled_percentiles_lie_between_those_of_the_repeats(rngs: list[Random]) -> None:
    runs = [jittered(rng, 4) for rng in rngs]
    each = [summarise([run], device_count=1).metrics for run in runs]
    pooled = summarise(runs, device_count=1).metrics
    for name in ("output_tokens_per_s", "e2e_mean_ms", "ttft_mean_ms", "requests_per_s"):
        found = [metrics[name] for metrics in each]
        assert min(found) * (1 - 1e-9) <= pooled[name] <= max(found) * (1 + 1e-9)
    for latency in ("ttft", "tpot", "e2e"):
        samples = np.concatenate([1e3 * latencies(run.records)[latency] for run in runs])
        for percent in (50, 90, 95, 99):
            value = pooled[f"{latency}_p{percent}_ms"]
            assert samples.min() * (1 - 1e-9) <= value <= samples.max() * (1 + 1e-9)


def test_a_repeat_without_a_success_does_not_hide_the_others() -> None:
    dead = with_records(level(), [failed(i) for i in range(20)])
    summary = summarise([level(), dead], device_count=1)
    assert not summary.valid and summary.n == 20
    assert summary.metrics["success_share"] == 0.5


def test_different_levels_are_not_pooled() -> None:
    with pytest.raises(ValueError, match="one level"):
        summarise([level(concurrency=2), level(concurrency=4)], device_count=1)
    with pytest.raises(ValueError, match="one level"):
        summarise([], device_count=1)


def test_a_batch_has_throughput_and_e2e_and_nothing_else_of_latency() -> None:
    summary = summarise([batch(requests=20, duration_s=2.0)], device_count=2)
    assert summary.valid and summary.load["window"] == "batch"
    assert summary.metrics["output_tokens_per_s"] == pytest.approx(110.0)
    assert summary.metrics["output_tokens_per_s_per_gpu"] == pytest.approx(55.0)
    assert summary.metrics["e2e_p95_ms"] == pytest.approx(2000.0)
    absent = ("ttft", "tpot", "prefill", "decode", "single")
    assert not [name for name in summary.metrics if name.startswith(absent)]
    assert "output_tokens_per_s" not in summary.low_confidence


def test_a_batch_that_tells_first_tokens_has_ttft() -> None:
    run = batch()
    told = tuple(replace(r, first_token_s=0.5, chunks=2) for r in run.records)
    metrics = summarise([replace(run, records=told)], device_count=1).metrics
    assert metrics["ttft_p50_ms"] == pytest.approx(500.0)
    assert metrics["output_tokens_per_s"] == pytest.approx(110.0)


def test_a_warm_up_that_never_settled_makes_every_figure_doubtful() -> None:
    run = level(concurrency=4, rounds=50, warm_up=WarmUp(8, 2, stable=False))
    summary = summarise([run], device_count=1)
    assert {"output_tokens_per_s", "ttft_p50_ms"} <= set(summary.low_confidence)
    assert summary.load["warm_up"] == {"requests": 8, "rounds": 2, "stable": False}
    settled = replace(run, warm_up=WarmUp(8, 2, stable=True))
    assert "ttft_p50_ms" not in summarise([settled], device_count=1).low_confidence


def test_single_stream_speed_and_system_throughput_are_different_names() -> None:
    clock = by_the_clock(rate_per_s=0.1, requests=20)
    one_user = replace(clock, level=LoadLevel("open", 20, concurrency=1, rate_per_s=0.1))
    for run in (level(concurrency=8), clock, one_user):
        metrics = summarise([run], device_count=1).metrics
        assert not [name for name in metrics if name.startswith("single_stream")]
