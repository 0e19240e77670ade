"""What launches added, and what more of them would probably add."""

from __future__ import annotations

import math

import numpy as np
import pytest

from sweeper.config.schema import ObjectiveConfig, SloConfig
from sweeper.search.curve import MIN_LAUNCHES, GainCurve
from sweeper.search.objective import Corner
from sweeper.trial.outcome import TrialOutcome
from tests.search.test_standing import trial

CORNER = Corner(5.0, 3200.0)


def curve(*trials: TrialOutcome | None, kind: str = "frontier") -> GainCurve:
    made = GainCurve(ObjectiveConfig(kind=kind), SloConfig(e2e_p95_ms=900))
    for one in trials:
        made.add(one, CORNER)
    return made


def test_a_gain_is_the_lift_of_the_front() -> None:
    """Ten per cent more throughput at each latency lifts it by ten per cent."""
    base, lifted = trial(0, 1.0), trial(1, 1.0)
    for point in lifted.points:
        point.metrics["output_tokens_per_s_per_gpu"] *= 1.1
    gains = curve(base, lifted, None, base).gains
    assert gains[0] == 0.0 and gains[2:] == [0.0, 0.0]
    assert gains[1] == pytest.approx(math.log(1.1), rel=1e-6)


def test_under_an_slo_it_is_the_best_that_keeps_it() -> None:
    gains = curve(trial(0, 1.0), trial(1, 1.2), trial(2, 0.5), kind="slo").gains
    assert gains == pytest.approx([0.0, math.log(1.2), 0.0])


def test_few_launches_tell_nothing() -> None:
    assert curve(*[trial(0, 1.0)] * (MIN_LAUNCHES - 1)).outlook(10) is None
    assert curve(*[trial(0, 1.0)] * MIN_LAUNCHES).outlook(0) is None


def test_a_search_that_has_stopped_gaining_is_not_promised_more() -> None:
    found = curve(trial(0, 1.0), trial(1, 1.5), *[trial(2, 1.0)] * 10).outlook(20)
    assert found is not None
    assert (found.gain, found.high, found.quiet) == (0.0, 0.0, 10)


def test_the_outlook_of_random_draws_holds_what_came() -> None:
    """Most of the time, over many studies in which launches are drawn at random."""
    inside, expected, came = 0, 0.0, 0.0
    for seed in range(60):
        factors = np.exp(np.random.default_rng(seed).normal(0.0, 0.2, 40))
        made = curve(*(trial(n, float(f)) for n, f in enumerate(factors[:20])), kind="slo")
        found = made.outlook(20)
        assert found is not None
        gained = max(0.0, math.log(max(factors[20:]) / max(factors[:20])))
        inside += found.low - 1e-9 <= math.expm1(gained) <= found.high + 1e-9
        expected, came = expected + found.gain, came + math.expm1(gained)
    assert inside >= 30
    assert 0.3 < expected / came < 3.0
