from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sweeper.pareto.front import knee, non_dominated

NUMBERS = st.floats(min_value=0.1, max_value=100.0) | st.integers(1, 4).map(float)


@st.composite
def tables(draw: st.DrawFn, dims: tuple[int, int] = (2, 3)) -> tuple[np.ndarray, list[int]]:
    """Alternatives, with repeated values often, and the sense of each objective."""
    m = draw(st.integers(*dims))
    signs = draw(st.lists(st.sampled_from([1, -1]), min_size=m, max_size=m))
    rows = draw(st.lists(st.lists(NUMBERS, min_size=m, max_size=m), min_size=1, max_size=25))
    return np.array(rows), signs


def dominates(a: np.ndarray, b: np.ndarray, signs: list[int]) -> bool:
    better = (a - b) * np.array(signs)
    return bool((better >= 0).all() and (better > 0).any())


@given(tables())
def test_front_is_what_nothing_dominates(table: tuple[np.ndarray, list[int]]) -> None:
    values, signs = table
    mask = non_dominated(values, signs)
    assert mask.any()
    for i, row in enumerate(values):
        assert mask[i] == (not any(dominates(other, row, signs) for other in values))


@given(tables(), st.randoms())
def test_front_does_not_depend_on_the_order(
    table: tuple[np.ndarray, list[int]], random: object
) -> None:
    values, signs = table
    order = list(range(len(values)))
    random.shuffle(order)  # type: ignore[attr-defined]
    assert (non_dominated(values[order], signs) == non_dominated(values, signs)[order]).all()


@given(tables())
def test_equal_rows_stand_or_fall_together(table: tuple[np.ndarray, list[int]]) -> None:
    values, signs = table
    mask = non_dominated(np.vstack([values, values]), signs)
    assert (mask[: len(values)] == mask[len(values) :]).all()
    assert (mask[: len(values)] == non_dominated(values, signs)).all()


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_what_was_not_measured_is_never_on_the_front(bad: float) -> None:
    mask = non_dominated([[1.0, 2.0], [bad, 0.0], [5.0, bad]], [1, -1])
    assert mask.tolist() == [True, False, False]


def test_empty_front() -> None:
    assert non_dominated(np.empty((0, 2)), [1, 1]).shape == (0,)
    assert knee(np.empty((0, 2)), [1, 1]) is None


def test_wrong_sign_is_refused() -> None:
    with pytest.raises(ValueError, match="signs"):
        non_dominated([[1.0, 2.0]], [1, 0])


@given(tables())
@settings(max_examples=60)
def test_knee_is_on_the_front(table: tuple[np.ndarray, list[int]]) -> None:
    values, signs = table
    found = knee(values, signs)
    assert found is not None
    assert non_dominated(values, signs)[found]


@given(tables(), st.randoms())
def test_knee_is_the_same_point_in_any_order(
    table: tuple[np.ndarray, list[int]], random: object
) -> None:
    values, signs = table
    order = list(range(len(values)))
    random.shuffle(order)  # type: ignore[attr-defined]
    first, second = knee(values, signs), knee(values[order], signs)
    assert first is not None
    assert second is not None
    assert values[first].tolist() == values[order][second].tolist()


@given(tables(dims=(2, 2)))
def test_knee_of_two_objectives_is_furthest_from_the_chord(
    table: tuple[np.ndarray, list[int]],
) -> None:
    values, signs = table
    front = values[non_dominated(values, signs)]
    goods = np.log(front) * np.array(signs)
    low, span = goods.min(axis=0), np.ptp(goods, axis=0)
    scaled = (goods - low) / np.where(span > 0, span, 1.0)
    distance = scaled.sum(axis=1) - 1  # signed, times the square root of two
    found = knee(values, signs)
    assert found is not None
    at = np.flatnonzero((front == values[found]).all(axis=1))[0]
    assert distance[at] >= distance.max() - 1e-6


def test_knee_bends_where_expected() -> None:
    curve = [[10, 100], [95, 120], [100, 1000]]  # throughput, latency
    assert knee(curve, [1, -1]) == 1


def test_spread_within_the_noise_does_not_decide() -> None:
    values = [[100, 100, 0.999], [200, 101, 0.998]]
    signs, logs = [1, -1, 1], [True, True, False]
    assert knee(values, signs, log_axes=logs, min_spans=[0.05, 0.05, 0.1]) == 1
