"""Throughput of streams whose true rate is known."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweeper.metrics.window import Window, choose_window, in_flight, rates
from tests.metrics.synthetic import level, record

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
