from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sweeper.search.priors.trust import agreement, spearman, weight

VALUES = st.lists(st.tuples(st.floats(-100, 100), st.floats(-100, 100)), min_size=2, max_size=12)


@settings(max_examples=40)
@given(VALUES)
def test_agreement_lies_between_minus_one_and_one_and_turns_with_its_sign(
    pairs: list[tuple[float, float]],
) -> None:
    guesses, values = [guess for guess, _ in pairs], [value for _, value in pairs]
    found = agreement(guesses, values)
    if len(set(values)) == 1:
        assert found is None
        return
    assert found is not None
    assert -1.0 - 1e-9 <= found <= 1.0 + 1e-9
    assert agreement([-guess for guess in guesses], values) == pytest.approx(-found)
    assert agreement(values, values) == pytest.approx(1.0)


def test_pairs_that_lie_near_one_another_hardly_count() -> None:
    """All but the first are nearly the best: their order is noise, and their rank says little."""
    measured = [10.0, 19.0, 19.1, 19.05]
    guesses = [1.0, 7.0, 5.0, 6.0]  # the last three the wrong way round
    found, ranks = agreement(guesses, measured), spearman(guesses, measured)
    assert found is not None and found > 0.95
    assert ranks is not None and ranks < 0.3


def test_a_prior_starts_with_its_own_weight_and_earns_the_rest() -> None:
    assert weight(0.8, [], []) == 0.8
    assert weight(0.8, [1.0], [5.0]) == 0.8
    right = [float(n) for n in range(20)]
    assert weight(0.8, right, right) > weight(0.5, right, right) > 0.7
    assert weight(0.8, right[:2], right[:2]) > 0.6


def test_a_prior_that_ranks_the_wrong_way_is_dropped_at_once() -> None:
    assert weight(0.8, [1.0, 2.0, 3.0], [3.0, 2.0, 1.0]) == 0.0
    assert weight(0.8, [1.0, 2.0, 0.0], [0.0, 2.0, 3.0]) == 0.0, "whatever it started with"
    assert weight(0.8, [1.0, 2.0], [2.0, 1.0]) < 0.2


def test_a_prior_without_knowledge_fades() -> None:
    chance = random.Random(3)

    def faded(n: int) -> float:
        values = [chance.random() for _ in range(n)]
        return weight(0.8, [chance.random() for _ in range(n)], values)

    after = {n: sum(faded(n) for _ in range(200)) / 200 for n in (4, 8, 30)}
    assert after[4] > after[8] > after[30]
    assert after[30] < 0.05


def test_spearman_is_silent_where_it_would_be_noise() -> None:
    assert spearman([1.0, 2.0], [1.0, 2.0]) is None
    assert spearman([1.0, 1.0, 1.0], [1.0, 2.0, 3.0]) is None
    assert spearman([1.0, 2.0, 4.0], [1.0, 5.0, 9.0]) == pytest.approx(1.0)
