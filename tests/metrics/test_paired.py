from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sweeper.metrics.paired import Effect, fit_blocks, half_width

NAN = math.nan


def only(effect: Effect | None) -> Effect:
    assert effect is not None
    return effect


def test_one_entry_is_the_paired_t_interval() -> None:
    control, entry = np.array([100.0, 104.0, 99.0]), np.array([110.0, 115.0, 108.0])
    fit = fit_blocks(np.stack([control, entry], axis=1))
    assert fit is not None
    effect = only(fit.effects[0])
    gains = np.log(entry / control)
    assert effect.log_ratio == pytest.approx(gains.mean())
    width = 4.302653 * gains.std(ddof=1) / math.sqrt(3)
    assert effect.half_width == pytest.approx(width, rel=1e-6)
    assert (effect.pairs, fit.dof) == (3, 2)
    assert effect.low < effect.ratio < effect.high


def test_two_entries_share_the_noise_and_hold_together() -> None:
    """Dunnett's table (1964) has 3.31 for two comparisons and 4 degrees of freedom."""
    figures = np.exp(np.random.default_rng(3).normal(0.0, 0.02, (3, 3)))
    fit = fit_blocks(figures)
    assert fit is not None and fit.dof == 4
    error = fit.sd_log * math.sqrt(2 / 3)
    for effect in fit.effects:
        assert only(effect).half_width / error == pytest.approx(3.31, abs=0.005)


def test_drift_that_all_share_costs_nothing() -> None:
    chance = np.random.default_rng(5)
    noise = chance.normal(0.0, 0.01, (4, 3))
    calm = fit_blocks(np.exp(noise))
    rough = fit_blocks(np.exp(noise + np.array([[0.0], [0.5], [-0.7], [1.0]])))
    assert calm is not None and rough is not None
    for ours, theirs in zip(calm.effects, rough.effects, strict=True):
        assert only(ours).log_ratio == pytest.approx(only(theirs).log_ratio)
        assert only(ours).half_width == pytest.approx(only(theirs).half_width)


def test_a_launch_that_is_missing_takes_its_pair_and_no_more() -> None:
    figures = [[100.0, 110.0, 90.0], [101.0, NAN, 92.0], [99.0, 108.0, 89.0]]
    fit = fit_blocks(figures)
    assert fit is not None
    first, second = only(fit.effects[0]), only(fit.effects[1])
    assert (first.pairs, second.pairs, fit.dof) == (2, 3, 3)
    # The third column helps to place the block in which the second is missing.
    assert second.log_ratio == pytest.approx(
        np.mean(np.log([90 / 100, 92 / 101, 89 / 99])), abs=1e-6
    )
    assert first.half_width > second.half_width


def test_too_little_is_no_comparison() -> None:
    assert fit_blocks([[100.0, 110.0]]) is None
    assert fit_blocks([[NAN, NAN]]) is None
    lone = fit_blocks([[100.0, 110.0, NAN], [101.0, 111.0, NAN], [99.0, 112.0, 95.0]])
    assert lone is not None
    assert lone.effects[1] is None, "one block tells nothing of it"
    assert only(lone.effects[0]).pairs == 3


def test_figures_to_the_last_digit_were_not_measured_anew() -> None:
    fit = fit_blocks([[100.0, 110.0]] * 3)
    assert fit is not None and fit.exact
    other = fit_blocks([[100.0, 110.0], [100.0, 110.0], [100.0, 110.1]])
    assert other is not None and not other.exact


def test_a_loose_launch_counts_unless_it_stands_out() -> None:
    figures = [[100.0, 110.0], [101.0, 109.0], [99.5, 111.0]]
    alone, with_one = fit_blocks(figures), fit_blocks(figures, [100.4])
    cold = fit_blocks(figures, [60.0])
    assert alone is not None and with_one is not None and cold is not None
    assert with_one.dof == alone.dof + 1
    assert only(with_one.effects[0]).half_width < only(alone.effects[0]).half_width
    assert only(with_one.effects[0]).log_ratio == only(alone.effects[0]).log_ratio
    assert (cold.dof, cold.sd_log) == (alone.dof, alone.sd_log)


def test_planning_is_a_little_wider_than_the_fit() -> None:
    figures = np.exp(np.random.default_rng(3).normal(0.0, 0.02, (3, 3)))
    fit = fit_blocks(figures)
    assert fit is not None
    planned = half_width(fit.sd_log, 3, 2)
    assert only(fit.effects[0]).half_width < planned < 1.1 * only(fit.effects[0]).half_width
    with pytest.raises(ValueError, match="no interval"):
        half_width(0.1, 1, 2)


@given(st.integers(0, 10**6), st.integers(2, 4), st.integers(1, 3))
@settings(max_examples=25, deadline=None)
def test_a_full_design_gives_the_mean_of_paired_differences(
    seed: int, blocks: int, entries: int
) -> None:
    logs = np.random.default_rng(seed).normal(0.0, 0.1, (blocks, entries + 1))
    fit = fit_blocks(np.exp(logs))
    assert fit is not None
    for place, effect in enumerate(fit.effects, start=1):
        expected = float((logs[:, place] - logs[:, 0]).mean())
        assert only(effect).log_ratio == pytest.approx(expected, abs=1e-9)


def test_intervals_hold_in_19_of_20() -> None:
    chance = np.random.default_rng(11)
    held = 0
    for _ in range(1000):
        drift = chance.normal(0.0, 0.05, (3, 1))
        logs = np.array([0.0, 0.05, -0.02]) + drift + chance.normal(0.0, 0.02, (3, 3))
        first = math.exp(chance.normal(0.0, 0.02) + chance.normal(0.0, 0.05))
        fit = fit_blocks(np.exp(logs), [first])
        assert fit is not None
        one, other = only(fit.effects[0]), only(fit.effects[1])
        held += one.low <= math.exp(0.05) <= one.high and other.low <= math.exp(-0.02) <= other.high
    assert 930 <= held <= 975
