from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sweeper.search.objective import Corner, log_hypervolume
from sweeper.search.policy.gain import expected_gain

POINT = st.tuples(st.floats(0.05, 0.95), st.floats(0.05, 0.95))


@given(st.lists(POINT, min_size=1, max_size=4), st.lists(POINT, min_size=1, max_size=3))
@settings(max_examples=30, deadline=None)
def test_it_grows_as_the_dominated_area_does(
    front: list[tuple[float, float]], new: list[tuple[float, float]]
) -> None:
    """The mean over directions is the area over π/4 (two axes), but for the directions drawn."""

    def area(points: list[tuple[float, float]]) -> float:
        logs = [(math.exp(x), math.exp(-y)) for x, y in points]
        return log_hypervolume(logs, Corner(1.0, 1.0))

    samples = np.tile(np.array(new), (1, 400, 1, 1))
    gain = expected_gain(
        samples, np.array(front), np.zeros(2), np.ones(2), np.random.default_rng(1)
    )
    truth = area([*front, *new]) - area(front)
    assert gain[0] * math.pi / 4 == pytest.approx(truth, abs=0.03)


def test_one_axis_is_plain_improvement() -> None:
    samples = np.array([[[[2.0]], [[0.0]]], [[[1.0]], [[1.0]]]])
    gain = expected_gain(
        samples, np.array([[1.0]]), np.zeros(1), np.ones(1), np.random.default_rng(1)
    )
    assert gain == pytest.approx([0.5, 0.0])


def test_what_is_unknown_adds_nothing() -> None:
    samples = np.full((1, 4, 2, 3), -np.inf)
    front = np.array([[0.5, 0.5, 0.5], [-np.inf, 0.1, 0.2]])
    gain = expected_gain(samples, front, np.zeros(3), np.ones(3), np.random.default_rng(1))
    assert gain.tolist() == [0.0]
