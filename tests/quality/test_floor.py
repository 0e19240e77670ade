"""Errors and what they make of a change."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweeper.quality.floor import (
    Change,
    below_floor,
    binomial_se,
    clustered_se,
    is_no_change,
    mean_change,
    quantile_95,
    settled,
    share_change,
)


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


@pytest.mark.parametrize(
    ("clusters", "expected"), [(2, 12.706), (3, 4.303), (6, 2.571), (12, 2.201), (20, 2.093)]
)
def test_few_clusters_reach_further(clusters: int, expected: float) -> None:
    """Values of a printed table of Student's t."""
    assert quantile_95(clusters) == pytest.approx(expected, abs=5e-4)


def test_without_clusters_to_count_the_normal_rules_and_one_alone_says_nothing() -> None:
    assert quantile_95(None) == 1.96
    assert quantile_95(100_000) == pytest.approx(1.96, abs=1e-3)
    lonely = mean_change([[-3.0]])
    assert lonely.is_none and not lonely.is_below(0.0)
    assert share_change([[False]], [[True]]).se > 0
    with pytest.raises(ValueError, match="nothing"):
        mean_change([[]])


HITS = st.lists(st.lists(st.booleans(), min_size=4, max_size=4), min_size=2, max_size=8)


@given(HITS, st.data())
def test_a_paired_share_is_the_difference_of_the_shares(
    hits: list[list[bool]], data: st.DataObject
) -> None:
    own = [data.draw(st.lists(st.booleans(), min_size=4, max_size=4)) for _ in hits]
    change, back = share_change(hits, own), share_change(own, hits)
    n = 4 * len(hits)
    assert change.value == pytest.approx((sum(map(sum, hits)) - sum(map(sum, own))) / n)
    assert (back.value, back.se) == pytest.approx((-change.value, change.se))
    assert change.clusters == len(hits)
    assert change.se > 0, "no difference of a few tokens is certain"


def test_a_handful_of_tokens_is_no_change_and_one_more_is() -> None:
    own = [[True] * 16 for _ in range(12)]

    def lost(count: int) -> Change:
        return share_change([[row >= count, *[True] * 15] for row in range(12)], own)

    assert lost(4).is_none
    assert not lost(5).is_none
    assert lost(0).is_none


Hits = tuple[list[list[bool]], list[list[bool]]]


def read_by_both(rng: np.random.Generator, noise: float, loss: float) -> Hits:
    """(candidate, reference) hits of 12 prompts with 16 tokens.

    A token is hit if its margin outlasts what disturbs it: an error of reading that both share;
    `noise`, which each has for itself, half of it common to a prompt; and the candidate's `loss`.
    """
    shape = (12, 16)
    margin = rng.exponential(rng.gamma(4.0, 0.25, size=(12, 1)), size=shape)
    margin += rng.normal(0, 0.15, size=shape)

    def disturbed() -> np.ndarray[Any, Any]:
        return margin + rng.normal(0, noise, size=shape) + rng.normal(0, noise, size=(12, 1))

    worse = rng.normal(0, loss, size=shape) + rng.normal(0, loss / 3, size=(12, 1))
    return (disturbed() + worse > 0).tolist(), (disturbed() > 0).tolist()


def unpaired_no_change(hits: list[list[bool]], own: list[list[bool]]) -> bool:
    """How earlier versions judged: two shares, as if of different tokens."""
    n, (first, second) = 192, (sum(map(sum, hits)), sum(map(sum, own)))
    value = settled(first / n, binomial_se(first, n), second / n, binomial_se(second, n))
    return value == second / n


def test_no_change_is_right_19_times_of_20_where_tokens_are_alike_within_a_prompt() -> None:
    rng = np.random.default_rng(1)
    same = [read_by_both(rng, noise=0.1, loss=0.0) for _ in range(500)]
    assert 0.93 <= np.mean([share_change(*pair).is_none for pair in same]) <= 0.99


def test_a_true_loss_is_seen_earlier_than_by_two_unpaired_shares() -> None:
    rng = np.random.default_rng(2)
    worse = [read_by_both(rng, noise=0.0, loss=0.15) for _ in range(400)]
    paired = np.mean([not share_change(*pair).is_none for pair in worse])
    before = np.mean([not unpaired_no_change(*pair) for pair in worse])
    assert paired > 1.4 * before


def test_the_interval_of_a_mean_change_covers_it_19_times_of_20() -> None:
    rng = np.random.default_rng(2)
    covered = []
    for _ in range(800):
        groups = rng.normal(0, 0.3, size=(12, 1)) + rng.normal(0, 0.5, size=(12, 16)) - 0.1
        change = mean_change(groups.tolist())
        covered.append(abs(change.value + 0.1) <= change.reach)
    assert 0.93 <= np.mean(covered) <= 0.97
