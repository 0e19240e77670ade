"""The next rung of the ladder: given, found by doubling, or found by an SLO search."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweeper.config.schema import GoodputConfig, LoadConfig
from sweeper.load.ladder import (
    MAX_DRIVES,
    Seen,
    SloResult,
    given_levels,
    next_level,
    slo_result,
    top_level,
)
from sweeper.load.level import LoadLevel

SLO = LoadConfig(
    kind="open",
    levels="slo",
    rate_per_s=[1.0],
    duration_s=100,
    max_levels=40,
    rate_tolerance_share=0.05,
    goodput=GoodputConfig(ttft_ms=500, share=0.99),
)
FOUND = LoadConfig(kind="closed", levels="found", concurrency=[1], max_levels=12)


def climb(load: LoadConfig, measure: Callable[[LoadLevel], Seen]) -> list[Seen]:
    """Drive a ladder as a trial does: drives of one level are pooled."""
    seen: list[Seen] = []
    while (level := next_level(load, seen)) is not None:
        new = measure(level)
        place = next((i for i, item in enumerate(seen) if item.level == level), None)
        if place is None:
            seen.append(new)
        else:
            seen[place] = pooled(seen[place], new)
        assert sum(item.drives for item in seen) <= load.max_levels
    return seen


def pooled(a: Seen, b: Seen) -> Seen:
    n = a.n + b.n
    share = ((a.goodput_share or 0) * a.n + (b.goodput_share or 0) * b.n) / n
    return replace(
        b, n=n, goodput_share=share, goodput_high=wilson_high(share, n), drives=a.drives + 1
    )


def wilson_high(share: float, n: int, z: float = 1.96) -> float:
    centre = share + z * z / (2 * n)
    spread = z * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    return (centre + spread) / (1 + z * z / n)


def server(capacity: float, rng: random.Random | None = None) -> Callable[[LoadLevel], Seen]:
    """Keeps its promise up to a rate; beyond it, ever fewer requests are good. With noise, even a
    server that is not full now and then misses."""

    def measure(level: LoadLevel) -> Seen:
        rate, n = level.rate_per_s or 0.0, level.requests
        miss = 0.0 if rate <= capacity else min(1.0, 0.05 + 2 * (rate / capacity - 1))
        if rng is None:
            share = 1.0 - miss
        else:
            share = sum(rng.random() >= max(miss, 0.001) for _ in range(n)) / n
        return Seen(level, True, 100.0, share, wilson_high(share, n), n)

    return measure


def test_given_levels_come_in_their_order_and_end() -> None:
    load = LoadConfig(concurrency=[1, 8], requests_per_stream=4, min_requests=8)
    seen = climb(load, lambda level: Seen(level, True, 1.0))
    assert [(item.level.concurrency, item.level.requests) for item in seen] == [(1, 8), (8, 32)]
    assert top_level(load) == seen[-1].level


def test_rates_send_what_arrives_in_the_time_given() -> None:
    load = LoadConfig(kind="open", rate_per_s=[0.01, 2.0], duration_s=30, min_requests=8)
    assert [level.requests for level in given_levels(load)] == [8, 60]
    ramp = LoadConfig(kind="ramp", rate_per_s=[4.0], start_rate_per_s=2.0, duration_s=30)
    assert [(r.requests, r.start_rate_per_s) for r in given_levels(ramp)] == [(90, 2.0)]


def test_doubling_stops_when_throughput_no_longer_grows() -> None:
    seen = climb(FOUND, lambda level: Seen(level, True, min(level.concurrency or 0, 20) * 10.0))
    assert [item.level.concurrency for item in seen] == [1, 2, 4, 8, 16, 32, 64]


def test_doubling_stops_at_a_level_that_is_not_valid() -> None:
    def measure(level: LoadLevel) -> Seen:
        streams = level.concurrency or 0
        return Seen(level, streams < 4, 100.0 * streams)

    assert [item.level.concurrency for item in climb(FOUND, measure)] == [1, 2, 4]


def test_doubling_of_rates_and_its_limit() -> None:
    load = LoadConfig(kind="open", levels="found", rate_per_s=[0.5], max_levels=4)
    seen = climb(load, lambda level: Seen(level, True, level.rate_per_s))
    assert [item.level.rate_per_s for item in seen] == [0.5, 1.0, 2.0, 4.0]
    assert top_level(load) is None


@given(capacity=st.floats(0.05, 200.0))
def test_an_slo_search_ends_at_the_capacity_of_a_quiet_server(capacity: float) -> None:
    seen = climb(SLO, server(capacity))
    found = slo_result(SLO, seen)
    assert found.rate_per_s is not None and found.lowest_bad_per_s is not None
    assert found.rate_per_s <= capacity < found.lowest_bad_per_s
    assert found.lowest_bad_per_s / found.rate_per_s <= 1.05 + 1e-3
    assert found.confirmed


@given(capacity=st.floats(0.5, 50.0), seed=st.integers(0, 10_000))
def test_an_slo_search_is_near_the_capacity_of_a_noisy_server(capacity: float, seed: int) -> None:
    found = slo_result(SLO, climb(SLO, server(capacity, random.Random(seed))))
    assert found.rate_per_s is not None
    assert found.rate_per_s <= capacity * 1.1, "beyond it more than five in a hundred miss"


def test_a_noisy_search_does_not_give_up_much() -> None:
    rates = [
        slo_result(SLO, climb(SLO, server(10.0, random.Random(seed)))).rate_per_s or 0.0
        for seed in range(60)
    ]
    near = sum(rate >= 8.0 for rate in rates)
    assert near >= 54, f"{near} of 60 searches came within a fifth of the capacity"


def test_a_server_that_keeps_no_promise_is_left_after_a_few_levels() -> None:
    seen = climb(SLO, lambda level: Seen(level, True, 1.0, 0.0, 0.04, level.requests))
    assert len(seen) <= 8
    assert slo_result(SLO, seen) == SloResult(
        None, min(s.level.rate_per_s or 0 for s in seen), False
    )


def test_a_level_without_any_answer_is_bad() -> None:
    seen = climb(SLO, lambda level: Seen(level, False))
    assert slo_result(SLO, seen).rate_per_s is None


def test_a_good_rate_above_a_bad_one_is_luck() -> None:
    def seen_at(rate: float, share: float) -> Seen:
        level = LoadLevel("open", 100, rate_per_s=rate, arrivals="poisson")
        return Seen(level, True, 1.0, share, wilson_high(share, 100), 100, MAX_DRIVES)

    found = slo_result(SLO, [seen_at(1, 1.0), seen_at(2, 0.5), seen_at(4, 1.0)])
    assert (found.rate_per_s, found.lowest_bad_per_s) == (1, 2)


def test_a_doubtful_rate_is_driven_again_before_anything_else() -> None:
    level = LoadLevel("open", 100, rate_per_s=2.0, arrivals="poisson")
    doubtful = Seen(level, True, 1.0, 0.98, wilson_high(0.98, 100), 100)
    assert next_level(SLO, [doubtful]) == level
    again = next_level(SLO, [replace(doubtful, drives=MAX_DRIVES)])
    assert again is not None and again.rate_per_s == pytest.approx(1.0)
