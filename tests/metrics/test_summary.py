"""A level in figures: true, with units, and silent about what was not measured."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, replace
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweeper.load import server_metrics as names
from sweeper.load.records import LevelRun, RequestRecord
from sweeper.metrics.summary import summarise
from sweeper.trial.outcome import Point
from tests.metrics.synthetic import failed, level, record


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
    summary = summarise(level(concurrency=4, rounds=5), device_count=2)
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
    }
    assert {name: metrics[name] for name in expected} == pytest.approx(expected)


def test_single_stream_speed_is_told_only_at_concurrency_one() -> None:
    alone = summarise(level(concurrency=1), device_count=1).metrics
    assert alone["single_stream_tokens_per_s"] == pytest.approx(11 / 0.3)
    assert alone["single_stream_prefill_tokens_per_s"] == pytest.approx(640.0)
    assert alone["single_stream_decode_tokens_per_s"] == pytest.approx(50.0)
    many = summarise(level(concurrency=2), device_count=1).metrics
    assert not [name for name in many if name.startswith("single_stream")]


def test_with_nothing_successful_there_are_no_metrics_at_all() -> None:
    run = level(records=tuple(failed(i) for i in range(20)))
    summary = summarise(run, device_count=1)
    assert (summary.metrics, summary.intervals, summary.n) == ({}, {}, 0)
    assert not summary.valid and summary.reasons


def test_outputs_in_one_chunk_have_no_time_a_token() -> None:
    run = level()
    run = replace(run, records=tuple(replace(r, chunks=1) for r in run.records))
    metrics = summarise(run, device_count=1).metrics
    assert not [name for name in metrics if name.startswith("tpot")]
    assert "e2e_p95_ms" in metrics


def test_server_counters_become_metrics() -> None:
    after = {
        names.PREEMPTIONS: 2.0,
        names.SPEC_DRAFTS: 40.0,
        names.SPEC_DRAFT_TOKENS: 120.0,
        names.SPEC_ACCEPTED: 90.0,
        names.GENERATION_TOKENS: 220.0,
        names.PREFIX_QUERIES: 0.0,
        names.PREFIX_HITS: 0.0,
    }
    run = level(server_before=dict.fromkeys(after, 0.0), server_after=after)
    metrics = summarise(run, device_count=1).metrics
    assert metrics["preemptions"] == 2.0
    assert metrics["spec_acceptance_share"] == 0.75
    assert metrics["spec_tokens_per_draft"] == 2.25
    assert metrics["server_output_tokens"] == 220.0
    assert "prefix_cache_hit_share" not in metrics


def test_few_samples_are_marked() -> None:
    few = summarise(level(concurrency=4, rounds=5), device_count=1)
    many = summarise(level(concurrency=4, rounds=50), device_count=1)
    assert {"ttft_p95_ms", "e2e_p99_ms"} <= set(few.low_confidence)
    assert "ttft_p95_ms" not in many.low_confidence and "ttft_p99_ms" in many.low_confidence


def test_a_level_without_a_steady_state_says_so() -> None:
    summary = summarise(level(concurrency=4, rounds=1), device_count=1)
    assert summary.load["window"] == "steady"  # all four ended together, at the window's end
    ragged = summarise(level(concurrency=4, rounds=1, stagger_s=0.01), device_count=1)
    assert ragged.load["window"] == "whole"
    assert "output_tokens_per_s" in ragged.low_confidence


def jittered(rng: Random, n: int) -> LevelRun:
    run = level(concurrency=2, rounds=n)
    records = tuple(
        record(r.index, r.sent_s, rng.uniform(0.05, 0.1), rng.uniform(0.01, 0.02))
        for r in run.records
    )
    return replace(run, records=records)


@given(st.randoms(use_true_random=False), st.integers(2, 12))
def test_the_order_of_records_does_not_matter(rng: Random, n: int) -> None:
    run = jittered(rng, n)
    shuffled = list(run.records)
    rng.shuffle(shuffled)
    assert summarise(run, device_count=1) == summarise(
        replace(run, records=tuple(shuffled)), device_count=1
    )


@given(st.randoms(use_true_random=False), st.floats(0.5, 20.0))
def test_a_clock_that_runs_slower_scales_every_figure(rng: Random, factor: float) -> None:
    run = jittered(rng, 5)
    before, after = (summarise(r, device_count=1).metrics for r in (run, scaled(run, factor)))
    for name, value in before.items():
        if name.endswith("_ms"):
            assert after[name] == pytest.approx(value * factor)
        elif "_per_s" in name:
            assert after[name] == pytest.approx(value / factor)


@given(st.randoms(use_true_random=False), st.integers(2, 12))
def test_everything_is_finite_and_inside_its_interval(rng: Random, n: int) -> None:
    summary = summarise(jittered(rng, n), device_count=1)
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
    first, again, other = (summarise(run, device_count=1, seed=s).intervals for s in (1, 1, 2))
    assert first == again != other
