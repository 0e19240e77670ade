from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sweeper.pareto.front import non_dominated, tied_with

VALUES = st.lists(
    st.tuples(st.floats(1, 100), st.floats(1, 100), st.sampled_from([0.9, 1.0])),
    min_size=1,
    max_size=15,
)


def tied(values: Sequence[tuple[float, ...]], margin: float) -> list[bool]:
    signs = [1, -1, 1][: len(values[0])]
    margins = np.full((len(values), 2), margin)
    front = non_dominated(values, signs)
    return list(map(bool, tied_with(front, values, signs, margins)))


def test_a_point_within_the_noise_of_the_front_is_on_it() -> None:
    values = [(100.0, 50.0), (99.0, 50.5), (80.0, 50.0), (100.0, 70.0)]
    assert tied(values, 0.02) == [True, True, False, False]
    assert tied(values, 0.001) == [True, False, False, False]


def test_margins_of_two_points_add_up_as_squares() -> None:
    values = [(100.0, 50.0), (100.0 * np.exp(-0.04), 50.0)]
    front = np.array([True, False])
    for first, second, expected in ((0.03, 0.03, True), (0.03, 0.02, False), (0.0, 0.05, True)):
        margins = np.array([[first] * 2, [second] * 2])
        assert tied_with(front, values, [1, -1], margins)[1] == expected


def test_quality_has_no_noise_here() -> None:
    assert tied([(100.0, 50.0, 1.0), (100.0, 50.0, 0.9)], 0.5) == [True, False]


def test_what_has_no_value_is_no_tie() -> None:
    assert tied([(100.0, 50.0), (np.nan, 50.0), (0.0, 50.0)], 10.0) == [True, False, False]


@given(VALUES, st.floats(0, 1))
@settings(max_examples=60, deadline=None)
def test_ties_hold_the_front_and_grow_with_noise(
    values: list[tuple[float, float, float]], margin: float
) -> None:
    front = non_dominated(values, [1, -1, 1])
    narrow, wide = tied(values, margin), tied(values, 2 * margin)
    assert all(is_tied for is_tied, is_front in zip(narrow, front, strict=True) if is_front)
    assert all(more for more, less in zip(wide, narrow, strict=True) if less)


@pytest.mark.parametrize("margin", [0.0, 0.05])
def test_equal_rows_stand_together(margin: float) -> None:
    assert tied([(10.0, 5.0), (10.0, 5.0)], margin) == [True, True]
