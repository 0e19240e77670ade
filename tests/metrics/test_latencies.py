"""Latencies by the server's count of tokens, never by chunks."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from sweeper.metrics.latencies import e2e_s, latencies, tpot_s, ttft_s
from sweeper.metrics.summary import summarise
from tests.metrics.synthetic import batch, level, record


def test_tokens_are_never_counted_by_chunks() -> None:
    one_each = record(0, 0.0, 0.1, 0.02)
    packed = replace(one_each, chunks=3)
    assert tpot_s(packed) == tpot_s(one_each) == pytest.approx(0.02)
    by_chunks = level()
    run = replace(by_chunks, records=tuple(replace(r, chunks=3) for r in by_chunks.records))
    plain, spec = (summarise([r], device_count=1).metrics for r in (by_chunks, run))
    assert spec["output_tokens_per_s"] == plain["output_tokens_per_s"]
    assert spec["tpot_p95_ms"] == plain["tpot_p95_ms"]


def test_time_between_chunks_is_offered_under_no_name() -> None:
    metrics = summarise([level()], device_count=1).metrics
    assert not [name for name in metrics if "itl" in name or "inter" in name]


@pytest.mark.parametrize("changes", [{"chunks": 1}, {"output_tokens": 1}, {"first_token_s": None}])
def test_what_has_no_time_a_token_is_not_read_as_zero(changes: dict[str, int | None]) -> None:
    assert tpot_s(replace(record(0, 0.0, 0.1, 0.02), **changes)) is None  # type: ignore[arg-type]


def test_every_latency_counts_from_the_moment_a_request_was_due() -> None:
    late = replace(record(0, 5.0, 0.1, 0.02), scheduled_s=3.0)
    assert ttft_s(late) == pytest.approx(2.1)
    assert e2e_s(late) == pytest.approx(2.3)
    assert tpot_s(late) == pytest.approx(0.02)


def test_only_what_there_is_is_in_the_samples() -> None:
    found = latencies(batch().records)
    assert {name: len(samples) for name, samples in found.items()} == {
        "ttft": 0,
        "tpot": 0,
        "e2e": 20,
    }


def test_tokens_of_beams_come_at_once_and_have_no_ttft() -> None:
    metrics = summarise([level(beam_width=4)], device_count=1).metrics
    assert not [name for name in metrics if name.startswith(("ttft", "tpot", "prefill", "decode"))]
    assert metrics["e2e_p50_ms"] == pytest.approx(300.0)


def test_outliers_are_kept() -> None:
    run = level(concurrency=1, rounds=20)
    slow = record(20, 6.0, 50.0, 0.02)
    run = replace(run, records=(*run.records, slow), duration_s=57.0, window_s=(0.0, 56.2))
    summary = summarise([run], device_count=1)
    assert summary.n == 21
    assert summary.metrics["ttft_p99_ms"] > 30_000
    assert np.isclose(summary.metrics["ttft_mean_ms"], (20 * 100 + 50_000) / 21)
