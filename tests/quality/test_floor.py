"""Errors and what they make of a change."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweeper.quality.floor import below_floor, binomial_se, clustered_se, is_no_change


@given(st.integers(1, 5000), st.floats(0, 1))
def test_a_share_is_never_certain(trials: int, share: float) -> None:
    successes = round(share * trials)
    assert 0 < binomial_se(successes, trials) <= 0.5 / math.sqrt(trials) + 1e-12


def test_binomial_error_is_the_textbooks_for_many_trials() -> None:
    assert binomial_se(9000, 10000) == pytest.approx(math.sqrt(0.9 * 0.1 / 10000), rel=0.01)
    with pytest.raises(ValueError, match="nothing"):
        binomial_se(0, 0)


@given(st.lists(st.floats(-5, 5), min_size=2, max_size=30))
def test_clusters_of_one_are_independent_values(values: list[float]) -> None:
    expected = float(np.std(values, ddof=1)) / math.sqrt(len(values))
    assert clustered_se([[value] for value in values]) == pytest.approx(expected, abs=1e-9)
    assert clustered_se([values]) == pytest.approx(expected, abs=1e-9)


def test_values_that_are_alike_within_a_prompt_count_for_less() -> None:
    alike = [[1.0] * 50, [-1.0] * 50, [1.0] * 50, [-1.0] * 50]
    mixed = [[1.0, -1.0] * 25] * 4
    assert clustered_se(alike) > 5 * clustered_se(mixed)


@given(st.floats(-2, 2), st.floats(0, 1), st.floats(0, 1))
def test_no_change_is_never_below_the_floor(change: float, se: float, max_drop: float) -> None:
    if is_no_change(change, se):
        assert not below_floor(change, se, max_drop)
    assert is_no_change(change, se) == is_no_change(-change, se)


@pytest.mark.parametrize(
    ("change", "se", "below"),
    [
        (-5.0, 0.4, True),
        (-0.21, 0.001, True),
        (-0.21, 0.05, False),
        (-0.1, 0.0, False),
        (0.5, 0.0, False),
    ],
)
def test_the_floor_gives_the_benefit_of_the_doubt_and_not_more(
    change: float, se: float, below: bool
) -> None:
    assert below_floor(change, se, max_drop=0.2) == below
