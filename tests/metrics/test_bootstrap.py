"""Intervals: repeatable, ordered, around the truth, and as wide as the samples are few."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sweeper.metrics import bootstrap
from sweeper.metrics.bootstrap import (
    percentile_interval,
    ratio_interval,
    student_975,
)

SAMPLES = st.lists(st.floats(0.001, 100.0), min_size=2, max_size=30).map(np.array)
GROUPS = st.lists(SAMPLES, min_size=1, max_size=4)


@settings(max_examples=30, deadline=None)
@given(GROUPS, st.integers(0, 5))
def test_the_same_seed_gives_the_same_interval_in_any_order(
    groups: list[np.ndarray], seed: int
) -> None:
    interval = percentile_interval(groups, 95, seed=seed)
    turned = [group[::-1] for group in reversed(groups)]
    assert percentile_interval(turned, 95, seed=seed) == interval
    assert 0.0 <= interval[0] <= interval[1]


@settings(max_examples=30, deadline=None)
@given(SAMPLES)
def test_one_run_is_resampled_by_requests_alone(samples: np.ndarray) -> None:
    low, high = percentile_interval([samples], 95, seed=4)
    assert samples.min() <= low <= high <= samples.max() * (1 + 1e-12)
    drawn = np.random.default_rng(4).integers(0, len(samples), (1000, len(samples)))
    plain = np.percentile(np.percentile(np.sort(samples)[drawn], 95, axis=1), [2.5, 97.5])
    assert [low, high] == pytest.approx(plain.tolist())


@settings(max_examples=30, deadline=None)
@given(st.lists(SAMPLES, min_size=2, max_size=4), st.floats(1.0, 99.0))
def test_the_figure_of_all_samples_is_inside_that_of_repeats(
    groups: list[np.ndarray], percent: float
) -> None:
    low, high = percentile_interval(groups, percent, seed=0)
    assert low <= np.percentile(np.sort(np.concatenate(groups)), percent) <= high


def test_more_samples_narrow_it_and_the_truth_is_usually_inside() -> None:
    rng = np.random.default_rng(7)
    few = percentile_interval([rng.normal(10, 1, 50)], 50, seed=0)
    many = percentile_interval([rng.normal(10, 1, 5000)], 50, seed=0)
    assert many[1] - many[0] < few[1] - few[0]
    inside = 0
    for seed in range(60):
        low, high = percentile_interval([rng.normal(10, 1, 100)], 50, seed=seed)
        inside += low <= 10 <= high
    assert inside >= 52


@pytest.mark.parametrize(("repeats", "between"), [(3, 0.0), (3, 1.0), (5, 1.0)])
def test_the_truth_is_usually_inside_though_runs_differ_more_than_requests(
    repeats: int, between: float
) -> None:
    rng = np.random.default_rng(11)
    inside = 0
    for seed in range(60):
        groups = [rng.normal(10 + between * rng.normal(), 1, 40) for _ in range(repeats)]
        low, high = percentile_interval(groups, 50, seed=seed)
        inside += low <= 10 <= high
    assert inside >= 51  # 85 %; requests alone would hold it in a third of the cases


def test_requests_alone_would_promise_too_much() -> None:
    rng = np.random.default_rng(11)
    groups = [rng.normal(10 + offset, 1, 40) for offset in (-1.0, 0.0, 1.0)]
    low, high = percentile_interval([np.concatenate(groups)], 50, seed=0)
    wide = percentile_interval(groups, 50, seed=0)
    assert wide[0] < low < high < wide[1]


def test_ratios_of_repeats_know_both_levels_too() -> None:
    rng = np.random.default_rng(5)
    pairs = [(np.full(30, 12.0), f * rng.uniform(0.9, 1.1, 30)) for f in (0.8, 1.0, 1.2)]
    together = (np.concatenate([a for a, _ in pairs]), np.concatenate([b for _, b in pairs]))
    low, high = ratio_interval([together], seed=1)
    wide = ratio_interval(pairs, seed=1)
    assert wide[0] < low < high < wide[1]


def test_a_ratio_of_constants_has_no_width() -> None:
    assert ratio_interval([(np.full(9, 12.0), np.full(9, 4.0))], seed=1) == [3.0, 3.0]
    assert ratio_interval([(np.full(9, 12.0), np.full(9, 4.0))] * 3, seed=1) == [3.0, 3.0]


@pytest.mark.parametrize(
    "groups",
    [[np.arange(1.0, 101.0)], [np.arange(1.0, 101.0), np.arange(3.0, 90.0)]],
)
def test_work_is_cut_into_pieces_without_changing_what_is_drawn_from(
    monkeypatch: pytest.MonkeyPatch, groups: list[np.ndarray]
) -> None:
    whole = percentile_interval(groups, 50, seed=3)
    monkeypatch.setattr(bootstrap, "_CHUNK_CELLS", 1000)
    assert percentile_interval(groups, 50, seed=3) == pytest.approx(whole)


@pytest.mark.parametrize("groups", [[], [np.array([])], [np.array([1.0]), np.array([])]])
def test_nothing_has_no_interval(groups: list[np.ndarray]) -> None:
    with pytest.raises(ValueError, match="at least one"):
        percentile_interval(groups, 95, seed=0)


@pytest.mark.parametrize(
    ("degrees", "published"), [(1, 12.706), (10, 2.228), (11, 2.201), (20, 2.086), (120, 1.980)]
)
def test_students_quantile_is_the_published_one(degrees: int, published: float) -> None:
    assert student_975(degrees) == pytest.approx(published, abs=3e-3)
