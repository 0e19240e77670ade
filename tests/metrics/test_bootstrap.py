"""Intervals: repeatable, ordered, around the truth, and as wide as the samples are few."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sweeper.metrics import bootstrap
from sweeper.metrics.bootstrap import percentile_interval, ratio_interval

SAMPLES = st.lists(st.floats(0.001, 100.0), min_size=2, max_size=30).map(np.array)


@settings(max_examples=30)
@given(SAMPLES, st.integers(0, 5))
def test_the_same_seed_gives_the_same_interval_in_any_order(samples: np.ndarray, seed: int) -> None:
    low, high = percentile_interval(samples, 95, seed=seed)
    assert samples.min() <= low <= high <= samples.max() * (1 + 1e-12)
    assert percentile_interval(samples[::-1], 95, seed=seed) == [low, high]


def test_more_samples_narrow_it_and_the_truth_is_usually_inside() -> None:
    rng = np.random.default_rng(7)
    few = percentile_interval(rng.normal(10, 1, 50), 50, seed=0)
    many = percentile_interval(rng.normal(10, 1, 5000), 50, seed=0)
    assert many[1] - many[0] < few[1] - few[0]
    inside = 0
    for seed in range(100):
        low, high = percentile_interval(rng.normal(10, 1, 100), 50, seed=seed)
        inside += low <= 10 <= high
    assert inside >= 88


def test_a_ratio_of_constants_has_no_width() -> None:
    assert ratio_interval(np.full(9, 12.0), np.full(9, 4.0), seed=1) == [3.0, 3.0]


def test_work_is_cut_into_pieces_without_changing_what_is_drawn_from(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    samples = np.arange(1.0, 101.0)
    whole = percentile_interval(samples, 50, seed=3)
    monkeypatch.setattr(bootstrap, "_CHUNK_CELLS", 1000)
    assert percentile_interval(samples, 50, seed=3) == whole


def test_nothing_has_no_interval() -> None:
    with pytest.raises(ValueError, match="at least one"):
        percentile_interval(np.array([]), 95, seed=0)
