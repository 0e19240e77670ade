"""Intervals of a level: requests with one run, repeats and requests with several."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from sweeper.load.records import LevelRun
from sweeper.metrics.summary import summarise
from tests.metrics.synthetic import batch, by_the_clock, level, record, with_records


def noisy(seed: int, factor: float = 1.0, rounds: int = 15) -> LevelRun:
    """Two streams whose latencies scatter by a tenth; `factor` slows the whole run down."""
    rng = np.random.default_rng(seed)
    records, free = [], [0.0, 0.0]
    for index in range(2 * rounds):
        stream = index % 2
        ttft, tpot = factor * 0.1 * rng.lognormal(0, 0.1), factor * 0.02 * rng.lognormal(0, 0.1)
        records.append(record(index, free[stream], ttft, tpot))
        free[stream] = records[-1].finished_s
    return replace(with_records(level(concurrency=2), records), window_s=(0.0, min(free)))


def width(summary_of: list[LevelRun], name: str) -> float:
    summary = summarise(summary_of, device_count=1)
    low, high = summary.intervals[name]
    assert low <= summary.metrics[name] <= high
    return (high - low) / summary.metrics[name]


@pytest.mark.parametrize("name", ["output_tokens_per_s", "ttft_p50_ms", "e2e_p95_ms"])
def test_noise_between_runs_widens_what_requests_alone_would_tell(name: str) -> None:
    same = [noisy(1), noisy(2), noisy(3)]
    apart = [noisy(1), noisy(2, 1.5), noisy(3, 0.7)]
    assert width(apart, name) > 3 * width(same, name)
    assert width(same, name) < width(same[:1], name) * 1.2


def test_repeats_that_agree_are_as_good_as_one_long_run() -> None:
    long = width([noisy(1, rounds=60)], "output_tokens_per_s")
    repeated = width([noisy(seed) for seed in (1, 2, 3, 4)], "output_tokens_per_s")
    assert long / 2 < repeated < 2.5 * long


@pytest.mark.parametrize("order", [(0, 2, 1), (1, 2, 0), (2, 1, 0)])
def test_the_order_of_repeats_does_not_matter(order: tuple[int, ...]) -> None:
    runs = [noisy(1), noisy(2, 1.1), noisy(3, 0.9)]
    turned = summarise([runs[i] for i in order], device_count=1)
    assert turned == summarise(runs, device_count=1)


def test_how_long_a_batch_takes_is_one_observation() -> None:
    assert "output_tokens_per_s" not in summarise([batch()], device_count=1).intervals
    runs = [batch(duration_s=seconds) for seconds in (2.0, 2.1, 2.2)]
    low, high = summarise(runs, device_count=1).intervals["output_tokens_per_s"]
    assert low < 220 / 2.1 < high


def test_several_batches_are_several_observations() -> None:
    one, two = batch(duration_s=2.0), batch(duration_s=2.2)
    later = [
        replace(r, index=20 + r.index, scheduled_s=2.0, sent_s=2.0, finished_s=4.2)
        for r in two.records
    ]
    run = replace(with_records(one, [*one.records, *later]), window_s=(0.0, 4.2))
    low, high = summarise([run], device_count=1).intervals["output_tokens_per_s"]
    assert low == pytest.approx(220 / 2.2) and high == pytest.approx(220 / 2.0)


def test_by_the_clock_throughput_varies_with_what_arrives() -> None:
    rng = np.random.default_rng(2)
    run = by_the_clock(requests=200)
    mixed = [
        record(r.index, r.sent_s, 0.1, 0.02, output_tokens=int(n), output_tokens_asked=int(n))
        for r, n in zip(run.records, rng.integers(2, 100, 200), strict=True)
    ]
    mixed_run = replace(with_records(run, mixed), window_s=(1.0, 19.9))
    name = "output_tokens_per_s"
    assert width([mixed_run], name) > width([run], name)
    spread = (
        1.96
        * np.std([r.output_tokens for r in mixed])
        / np.mean([r.output_tokens for r in mixed])
        / np.sqrt(200)
    )
    assert width([mixed_run], name) == pytest.approx(2 * spread, rel=0.4)


def test_a_single_request_has_no_interval() -> None:
    assert summarise([level(concurrency=1, rounds=1)], device_count=1).intervals == {}
