"""Percentiles are ordered, scale, and know how many samples they need."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweeper.metrics.percentiles import PERCENTS, describe_ms, is_low_confidence, percentile

SECONDS = st.lists(st.floats(1e-6, 1e3), min_size=1, max_size=60).map(np.array)


@given(SECONDS)
def test_percentiles_are_monotone_and_within_the_samples(seconds: np.ndarray) -> None:
    metrics, _ = describe_ms("e2e", seconds)
    values = [metrics[f"e2e_p{p}_ms"] for p in PERCENTS]
    assert values == sorted(values)
    tolerance = 1e-9 * seconds.max() * 1e3
    for value in (*values, metrics["e2e_mean_ms"]):
        assert seconds.min() * 1e3 - tolerance <= value <= seconds.max() * 1e3 + tolerance


def test_units_are_milliseconds() -> None:
    metrics, _ = describe_ms("ttft", np.array([0.25, 0.25]))
    assert set(metrics.values()) == {250.0}


def test_nothing_measured_is_nothing_told() -> None:
    assert describe_ms("tpot", np.array([])) == ({}, [])
    with pytest.raises(ValueError, match="at least one"):
        percentile(np.array([]), 50)


@pytest.mark.parametrize(("percent", "enough"), [(50, 20), (90, 100), (95, 200), (99, 1000)])
def test_ten_samples_must_lie_beyond_a_percentile(percent: int, enough: int) -> None:
    assert is_low_confidence(enough - 1, percent)
    assert not is_low_confidence(enough, percent)
