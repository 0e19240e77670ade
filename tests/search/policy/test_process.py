from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sweeper.search.policy.process import Kernel, Process, _loss, _squares
from sweeper.search.policy.threads import one_thread

LINE = np.linspace(0, 1, 9)[:, None]


def test_it_passes_through_what_it_saw_and_doubts_what_it_did_not() -> None:
    with one_thread():
        known = Process(LINE, np.sin(5 * LINE[:, 0]), [0])
        at, sure = known.predict(LINE)
        between, _ = known.predict(LINE[:-1] + 1 / 16)
        _, unsure = known.predict(np.array([[3.0]]))
    assert at == pytest.approx(np.sin(5 * LINE[:, 0]), abs=0.02)
    assert between == pytest.approx(np.sin(5 * LINE[:-1, 0] + 5 / 16), abs=0.05)
    assert sure.max() < 0.05 < unsure[0]


def test_a_parameter_without_effect_gets_a_long_length() -> None:
    rng = np.random.default_rng(1)
    x = rng.random((24, 2))
    lengths = Process(x, np.sin(6 * x[:, 0]), [0, 1]).kernel.lengths
    assert lengths[1] > 3 * lengths[0]


def test_noise_is_told_from_signal() -> None:
    rng = np.random.default_rng(2)
    x = rng.random((40, 1))
    noisy = Process(x, 3 * x[:, 0] + rng.normal(0, 0.3, 40), [0])
    quiet = Process(x, 3 * x[:, 0], [0])
    assert noisy.kernel.noise > 20 * quiet.kernel.noise


@given(st.integers(0, 1000))
@settings(max_examples=15, deadline=None)
def test_the_gradient_is_that_of_the_loss(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x, z, expected = rng.random((8, 2)), rng.standard_normal(8), rng.standard_normal(8)
    apart = np.stack([_squares(x[:, [g]], x[:, [g]]) for g in range(2)])
    theta, prior = rng.normal(-1, 0.5, 4), (np.zeros(4), np.ones(4))

    def loss(at: np.ndarray) -> float:
        return _loss(at, apart, np.outer(expected, expected), z, prior=prior)[0]

    gradient = _loss(theta, apart, np.outer(expected, expected), z, prior=prior)[1]
    for index, step in enumerate(np.eye(4) * 1e-5):
        slope = (loss(theta + step) - loss(theta - step)) / 2e-5
        assert gradient[index] == pytest.approx(slope, rel=1e-3, abs=1e-4)


def test_an_expectation_that_ranks_well_is_followed_and_a_wrong_one_is_not() -> None:
    rng = np.random.default_rng(3)
    x = rng.random((8, 4))
    truth = 2 * np.sin(7 * x).sum(axis=1)
    elsewhere = rng.random((200, 4))
    there = 2 * np.sin(7 * elsewhere).sum(axis=1)

    def error(here: np.ndarray | None, away: np.ndarray | None) -> float:
        mean, _ = Process(x, truth, range(4), here).predict(elsewhere, away)
        return float(np.sqrt(np.mean((mean - there) ** 2)))

    plain = error(None, None)
    assert error(truth / 2, there / 2) < 0.3 * plain
    assert error(rng.standard_normal(8), rng.standard_normal(200)) < 1.6 * plain


def test_equal_values_are_no_fault() -> None:
    mean, spread = Process(LINE, np.full(9, 4.0), [0]).predict(LINE)
    assert mean == pytest.approx(np.full(9, 4.0))
    assert np.isfinite(spread).all()


def test_a_kernel_that_is_given_is_not_fitted() -> None:
    kernel = Kernel(np.array([0.5]), 1e-3)
    assert Process(LINE, LINE[:, 0], [0], kernel=kernel).kernel is kernel
