"""Goodput is of all requests, and its interval is honest at the ends."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sweeper.load.records import LevelRun
from sweeper.metrics.goodput import GoodputLimits, wilson_interval
from sweeper.metrics.summary import LevelSummary, summarise
from tests.metrics.synthetic import batch, by_the_clock, failed, level, record, with_records


def judged(run: LevelRun, limits: GoodputLimits) -> LevelSummary:
    return summarise([run], device_count=1, limits=limits)


def various(requests: int = 20) -> LevelRun:
    """Stream of requests with TTFT of 10, 20, ... ms and TPOT of 1, 2, ... ms."""
    sent, records = 0.0, []
    for k in range(1, requests + 1):
        records.append(record(k, sent, 0.01 * k, 0.001 * k))
        sent = records[-1].finished_s
    return replace(with_records(level(concurrency=1), records), window_s=(0.0, sent))


def test_a_request_must_keep_every_limit() -> None:
    run = various()
    for limits, share in (
        (GoodputLimits(ttft_ms=100.5), 0.5),
        (GoodputLimits(tpot_ms=5.5), 0.25),
        (GoodputLimits(e2e_ms=200.5), 0.5),
        (GoodputLimits(ttft_ms=100.5, tpot_ms=5.5), 0.25),
        (GoodputLimits(ttft_ms=1.0), 0.0),
    ):
        assert judged(run, limits).metrics["goodput_share"] == pytest.approx(share)


def test_failed_requests_are_bad_ones() -> None:
    run = level()
    broken = [failed(r.index, r.sent_s) for r in run.records[:5]]
    run = replace(run, records=(*broken, *run.records[5:]))
    metrics = judged(run, GoodputLimits(ttft_ms=1e6)).metrics
    assert metrics["goodput_share"] == pytest.approx(0.75)


def test_rates_are_those_of_good_requests_in_the_window() -> None:
    run = level()
    run = replace(
        run,
        records=tuple(
            replace(r, scheduled_s=r.sent_s - 0.004 * (r.index % 2)) for r in run.records
        ),
    )
    metrics = judged(run, GoodputLimits(ttft_ms=102.0)).metrics
    assert metrics["goodput_requests_per_s"] == pytest.approx(metrics["requests_per_s"] / 2)
    assert metrics["goodput_tokens_per_s"] == pytest.approx(metrics["output_tokens_per_s"] / 2)


def test_a_request_without_tpot_is_judged_by_the_others() -> None:
    run = level()
    run = replace(run, records=tuple(replace(r, chunks=1) for r in run.records))
    limits = GoodputLimits(ttft_ms=150.0, tpot_ms=0.001)
    assert judged(run, limits).metrics["goodput_share"] == 1.0
    assert judged(level(), limits).metrics["goodput_share"] == 0.0


def test_a_batch_is_judged_by_e2e_alone() -> None:
    assert judged(batch(), GoodputLimits(e2e_ms=3000.0)).metrics["goodput_share"] == 1.0
    assert "goodput_share" not in judged(batch(), GoodputLimits(ttft_ms=1.0)).metrics


def test_without_limits_there_is_no_goodput() -> None:
    assert not [n for n in judged(level(), GoodputLimits()).metrics if "goodput" in n]


LIMIT = st.one_of(st.none(), st.floats(0.1, 500.0))


@settings(max_examples=30, deadline=None)
@given(LIMIT, LIMIT, LIMIT, st.floats(1.0, 3.0))
def test_looser_limits_never_lower_it(
    ttft: float | None, tpot: float | None, e2e: float | None, factor: float
) -> None:
    limits = GoodputLimits(ttft, tpot, e2e)
    looser = GoodputLimits(*(None if x is None else x * factor for x in (ttft, tpot, e2e)))
    tight, loose = (judged(various(), each).metrics for each in (limits, looser))
    for name in ("goodput_share", "goodput_requests_per_s", "goodput_tokens_per_s"):
        assert tight.get(name, 0.0) <= loose.get(name, 0.0) + 1e-9 or not looser.any


def test_pooled_over_repeats() -> None:
    runs = [by_the_clock(requests=100), by_the_clock(requests=100, ttft_s=0.5)]
    summary = summarise(runs, device_count=1, limits=GoodputLimits(ttft_ms=200.0))
    assert summary.metrics["goodput_share"] == pytest.approx(0.5)
    assert summary.intervals["goodput_share"] == pytest.approx([0.4314, 0.5686], abs=1e-3)


@given(st.integers(0, 50), st.integers(1, 50))
def test_the_interval_holds_the_share_and_stays_a_share(successes: int, n: int) -> None:
    successes = min(successes, n)
    low, high = wilson_interval(successes, n)
    assert 0.0 <= low <= successes / n <= high <= 1.0
    assert low < high


def test_the_interval_of_all_good_is_not_a_point() -> None:
    low, high = wilson_interval(100, 100)
    assert low == pytest.approx(0.9630, abs=1e-3) and high == 1.0  # published for 100 of 100
    with pytest.raises(ValueError, match="at least one"):
        wilson_interval(0, 0)
