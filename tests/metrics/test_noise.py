from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sweeper.metrics.noise import WITHOUT_ERROR, Noise, Spread

FIGURES = st.floats(1e-3, 1e6)


def told(*values: float, metric: str = "tokens") -> list[dict[str, float]]:
    return [{metric: value} for value in values]


def test_two_launches_tell_their_half_squared_difference() -> None:
    noise = Noise.from_repeats([told(100.0, 110.0)])
    assert noise.spreads["tokens"].dof == 1
    assert noise.spreads["tokens"].sd_log == pytest.approx(math.log(1.1) / math.sqrt(2))


def test_groups_are_pooled_within_and_never_compared() -> None:
    apart = Noise.from_repeats([told(100.0, 101.0), told(5.0, 5.05), told(7.0)])
    assert apart.spreads["tokens"].dof == 2
    assert apart.cv("tokens") == pytest.approx(math.log(1.01) / math.sqrt(2), rel=1e-3)


def test_what_was_never_repeated_has_no_noise() -> None:
    noise = Noise.from_repeats([told(100.0), [{"tokens": 90.0, "e2e": 1.0}]])
    assert noise.cv("tokens") is None
    assert noise.margin("e2e") is None
    assert not noise.is_tie({"tokens": 1.0}, {"tokens": 1.0})


def test_what_has_no_logarithm_is_left_out() -> None:
    noise = Noise.from_repeats([[{"preemptions": 0.0}, {"preemptions": 3.0}, {"preemptions": 3.0}]])
    assert noise.spreads["preemptions"] == Spread(0.0, 1)


def test_margin_narrows_with_launches_and_with_knowledge() -> None:
    little, much = Noise({"m": Spread(0.01, 2)}), Noise({"m": Spread(0.01, 200)})
    assert little.margin("m") == pytest.approx(4.3027 * 0.01 * math.sqrt(2), rel=1e-4)
    assert much.margin("m") == pytest.approx(1.972 * 0.01 * math.sqrt(2), rel=1e-3)
    three = much.margin("m", (3, 3))
    assert three is not None and three == pytest.approx(1.972 * 0.01 * math.sqrt(2 / 3), rel=1e-3)
    surer = much.margin("m", confidence=0.99)
    assert surer == pytest.approx(2.601 * 0.01 * math.sqrt(2), rel=1e-3)
    exact = much.margin("m", (4, WITHOUT_ERROR))
    assert exact == pytest.approx(1.972 * 0.01 / 2, rel=1e-3)


def test_a_tie_needs_every_metric_that_counts() -> None:
    noise = Noise({"tokens": Spread(0.05, 10), "e2e": Spread(0.001, 10)})
    slow, fast = {"tokens": 100.0, "e2e": 50.0}, {"tokens": 103.0, "e2e": 48.0}
    assert noise.is_tie(slow, fast, ["tokens"])
    assert not noise.is_tie(slow, fast)
    assert not noise.is_tie(slow, fast, ["tokens", "ttft"]), "nothing is known of one of them"
    assert not noise.is_tie(slow, {"tokens": 0.0}, ["tokens"])


@given(st.lists(st.lists(FIGURES, min_size=1, max_size=4), max_size=4), FIGURES)
@settings(max_examples=40, deadline=None)
def test_noise_does_not_depend_on_units_or_order(groups: list[list[float]], unit: float) -> None:
    noise = Noise.from_repeats([told(*group) for group in groups])
    other = Noise.from_repeats([told(*(v * unit for v in reversed(g))) for g in groups[::-1]])
    assert noise.spreads.keys() == other.spreads.keys()
    for metric, spread in noise.spreads.items():
        assert other.spreads[metric].dof == spread.dof
        assert other.spreads[metric].sd_log == pytest.approx(spread.sd_log, abs=1e-6)


def test_spread_is_found_again() -> None:
    chance = np.random.default_rng(1)
    groups = [told(*np.exp(chance.normal(3.0, 0.04, 4))) for _ in range(400)]
    noise = Noise.from_repeats(groups)
    assert noise.cv("tokens") == pytest.approx(0.04, rel=0.05)
