"""Throughput of streams whose true rate is known."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweeper.metrics.window import (
    Window,
    choose_window,
    in_flight,
    pooled_in_flight,
    pooled_rates,
    rates,
)
from tests.metrics.synthetic import batch, by_the_clock, level, record

TTFT = st.floats(0.01, 1.0)
TPOT = st.floats(0.001, 0.1)


@given(st.integers(1, 8), st.integers(2, 6), TTFT, TPOT)
def test_the_rate_of_a_constant_stream_is_the_truth(
    concurrency: int, rounds: int, ttft_s: float, tpot_s: float
) -> None:
    run = level(concurrency, rounds, ttft_s, tpot_s)
    window = choose_window(run, run.records)
    got = rates(run.records, window)
    length = ttft_s + 10 * tpot_s
    assert window.steady
    assert got.output_tokens == pytest.approx(11 * concurrency / length)
    assert got.input_tokens == pytest.approx(64 * concurrency / length)
    assert got.requests == pytest.approx(concurrency / length)
    assert got.in_flight == pytest.approx(concurrency)


@given(st.integers(2, 8), st.floats(0.0, 0.03))
def test_staggered_streams_have_the_same_rate(concurrency: int, stagger_s: float) -> None:
    run = level(concurrency, 20, stagger_s=stagger_s)
    got = rates(run.records, choose_window(run, run.records))
    assert got.output_tokens == pytest.approx(11 * concurrency / 0.3, rel=0.03)


def test_only_what_is_inside_the_window_counts() -> None:
    one = record(0, 0.0, 1.0, 0.1)  # first token at 1.0, ten more until 2.0
    assert rates([one], Window(0.0, 1.0, True)).output_tokens == pytest.approx(1.0)
    assert rates([one], Window(1.0, 2.0, True)).output_tokens == pytest.approx(10.0)
    assert rates([one], Window(1.5, 1.6, True)).output_tokens == pytest.approx(10.0)
    assert rates([one], Window(2.0, 3.0, True)).output_tokens == 0.0


@given(st.floats(0.01, 3.0))
def test_neighbouring_windows_neither_lose_nor_double_tokens(cut: float) -> None:
    records = level(3, 3, 0.2, 0.07).records
    end = max(r.finished_s for r in records) + 0.1
    windows = [Window(-0.1, cut, True), Window(cut, end + 3, True)]
    total = sum(rates(records, w).output_tokens * w.length_s for w in windows)
    assert total == pytest.approx(11 * 9)


def test_a_level_of_one_round_falls_back_to_its_whole_span() -> None:
    run = level(4, 1, stagger_s=0.05)
    window = choose_window(run, run.records)
    assert not window.steady
    assert (window.start_s, window.end_s) == (0.0, pytest.approx(0.45))
    assert in_flight(run.records, window) < 4


def test_an_empty_window_is_refused() -> None:
    with pytest.raises(ValueError, match="empty"):
        rates(level().records, Window(1.0, 1.0, True))


def test_by_the_clock_the_window_is_the_one_told() -> None:
    run = by_the_clock(rate_per_s=10.0, requests=200)
    window = choose_window(run, run.records)
    assert window.steady and (window.start_s, window.end_s) == run.window_s
    assert rates(run.records, window).output_tokens == pytest.approx(110.0, rel=0.02)


def test_a_batch_is_measured_by_its_whole_duration() -> None:
    run = batch(requests=20, duration_s=2.0)
    window = choose_window(run, run.records)
    got = rates(run.records, window)
    assert window.steady and window.length_s == pytest.approx(2.0)
    assert got.output_tokens == pytest.approx(20 * 11 / 2.0)
    assert got.input_tokens == pytest.approx(20 * 64 / 2.0)
    assert got.in_flight == pytest.approx(20.0)
    assert got.prefill_tokens is None and got.decode_tokens is None


def test_prefill_and_decode_are_measured_while_they_happen() -> None:
    run = level(concurrency=1, rounds=10)
    got = rates(run.records, choose_window(run, run.records))
    assert got.prefill_tokens == pytest.approx(64 / 0.1)
    assert got.decode_tokens == pytest.approx(1 / 0.02)
    assert got.decoding == pytest.approx(0.2 / 0.3)


def test_phases_that_overlap_share_their_time() -> None:
    run = level(concurrency=4, rounds=10)  # all four in step
    got = rates(run.records, choose_window(run, run.records))
    assert got.prefill_tokens == pytest.approx(4 * 64 / 0.1)
    assert got.decode_tokens == pytest.approx(4 / 0.02)
    assert got.decoding == pytest.approx(4 * 0.2 / 0.3)


def test_windows_are_pooled_by_what_is_in_them_and_not_by_their_rates() -> None:
    short, long = level(4, 3), level(4, 30, tpot_s=0.04)
    parts = [(r.records, choose_window(r, r.records)) for r in (short, long)]
    tokens = 11 * 4 * (3 + 30)
    assert pooled_rates(parts).output_tokens == pytest.approx(tokens / (3 * 0.3 + 30 * 0.5))
    assert pooled_in_flight(parts) == pytest.approx(4.0)


TIMES = st.tuples(st.floats(0, 5), st.floats(1e-3, 5), st.floats(0, 0.5), st.integers(1, 40))


@given(st.lists(TIMES, min_size=1, max_size=20), st.floats(0, 5), st.floats(0.1, 10))
def test_rates_never_exceed_what_is_physically_there(
    times: list[tuple[float, float, float, int]], start: float, length: float
) -> None:
    records = [
        record(i, sent, ttft, tpot, output_tokens=n)
        for i, (sent, ttft, tpot, n) in enumerate(times)
    ]
    window = Window(start, start + length, True)
    got = rates(records, window)
    outputs = sum(r.output_tokens or 0 for r in records)
    slack = 1 + 1e-9
    assert 0 <= got.output_tokens * length <= outputs * slack
    assert 0 <= got.input_tokens * length <= 64 * len(records) * slack
    assert 0 <= got.requests * length <= len(records) * slack
    assert 0 <= got.decoding <= got.in_flight * slack <= len(records) * slack**2
    for phase, whole in ((got.prefill_tokens, got.input_tokens), (got.decode_tokens, 0.0)):
        assert phase is None or phase >= whole / slack
