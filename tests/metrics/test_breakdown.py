"""A level by input length, by turn and by time."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweeper.load.records import LevelRun
from sweeper.metrics.breakdown import by_turn, segments, tokens_per_chunk, ttft_by_input
from sweeper.metrics.summary import summarise
from sweeper.metrics.window import Repeat, choose_window
from tests.metrics.synthetic import by_the_clock, level, record


def of_lengths(lengths: list[int]) -> LevelRun:
    """TTFT is a millisecond a prompt token."""
    sent, records = 0.0, []
    for index, length in enumerate(lengths):
        records.append(
            record(
                index,
                sent,
                0.001 * length,
                0.01,
                prompt_tokens=length,
                input_tokens_asked=length,
            )
        )
        sent = records[-1].finished_s
    return replace(
        level(concurrency=1), records=tuple(records), window_s=(0.0, sent), duration_s=sent
    )


def test_ttft_shows_against_input_length() -> None:
    lengths = [int(x) for x in np.random.default_rng(1).permutation(np.arange(100, 700))]
    rows = summarise([of_lengths(lengths)], device_count=1).load["ttft_by_input"]
    assert len(rows) == 6 and sum(row["n"] for row in rows) == 600
    means = [row["input_tokens_mean"] for row in rows]
    assert means == sorted(means)
    for row in rows:
        assert row["ttft_p50_ms"] == pytest.approx(row["input_tokens_mean"], rel=0.02)
        assert row["ttft_p50_ms"] < row["ttft_p95_ms"]


@given(st.lists(st.integers(1, 4000), min_size=1, max_size=60))
def test_no_request_is_in_two_bins_and_no_bin_is_small(lengths: list[int]) -> None:
    rows = ttft_by_input(of_lengths(lengths).records)
    assert len(rows) <= 6
    assert sum(row["n"] for row in rows) <= len(lengths)
    assert all(row["n"] >= 5 for row in rows)
    means = [row["input_tokens_mean"] for row in rows]
    assert means == sorted(means)


def test_two_lengths_are_two_bins() -> None:
    rows = ttft_by_input(of_lengths([128] * 30 + [1024] * 10).records)
    assert [(row["n"], row["input_tokens_mean"]) for row in rows] == [(30, 128), (10, 1024)]


def test_equal_lengths_need_no_bins() -> None:
    assert "ttft_by_input" not in summarise([level()], device_count=1).load
    assert ttft_by_input(()) == []


def test_turns_of_conversations_are_shown_apart() -> None:
    run = level(concurrency=4, rounds=6)
    turned = tuple(replace(r, turn=r.index // 4) for r in run.records)
    load = summarise([replace(run, records=turned)], device_count=1).load
    assert [(row["turn"], row["n"]) for row in load["by_turn"]] == [(t, 4) for t in range(6)]
    assert load["by_turn"][0]["ttft_p50_ms"] == pytest.approx(100.0)
    assert by_turn(run.records) == [] and "by_turn" not in summarise([run], device_count=1).load


def ramp() -> LevelRun:
    """From 5 to 25 requests/s over 40 s against a server that serves 15."""
    due, at = [], 0.0
    while at < 40.0:
        due.append(at)
        at += 1.0 / (5.0 + 0.5 * at)
    return by_the_clock(rate_per_s=25.0, arrivals_s=due, served_per_s=15.0, kind="ramp")


def test_the_knee_of_a_ramp_is_visible_in_its_segments() -> None:
    summary = summarise([ramp()], device_count=1)
    rows = summary.load["segments"]
    assert summary.valid and summary.load["window"] == "ramp" and "saturated" not in summary.load
    rates = [row["request_rate_offered_per_s"] for row in rows]
    assert rates == pytest.approx([7, 11, 15, 19, 23], rel=0.1)
    assert rows[0]["ttft_p95_ms"] == pytest.approx(100.0, rel=0.3)
    assert rows[4]["ttft_p95_ms"] > 10 * rows[1]["ttft_p95_ms"]
    assert sum(row["n"] for row in rows) == summary.n


def test_repeats_of_a_ramp_share_their_segments() -> None:
    both = summarise([ramp(), ramp()], device_count=1).load["segments"]
    one = summarise([ramp()], device_count=1).load["segments"]
    assert [row["n"] for row in both] == [2 * row["n"] for row in one]
    for a, b in zip(both, one, strict=True):
        assert a["request_rate_offered_per_s"] == pytest.approx(b["request_rate_offered_per_s"])


def test_a_ramp_of_one_moment_has_no_segments() -> None:
    run = by_the_clock(requests=1, kind="ramp")
    assert segments([Repeat(run, run.records, choose_window(run, run.records))]) == []


def test_chunks_of_several_tokens_are_noted() -> None:
    run = level()
    packed = replace(run, records=tuple(replace(r, chunks=4) for r in run.records))
    assert summarise([packed], device_count=1).load["tokens_per_chunk"] == pytest.approx(11 / 4)
    assert tokens_per_chunk(run.records) is None
