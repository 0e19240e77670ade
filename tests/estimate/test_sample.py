"""All deployments of a small space, a fair sample of a large one, and how far a share is known."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweeper.config.schema import SpaceConfig
from sweeper.estimate import sample
from sweeper.estimate.sample import deployments_of, interval
from sweeper.space.canonical import deployment_hash, enumerate_canonical
from sweeper.space.parse import parse_space

BRANCHED = parse_space(
    SpaceConfig(
        parameters={
            "speculative": ["none", "ngram"],
            "num_speculative_tokens": {
                "choices": [1, 2, 3, 4, 5, 6, 7, 8, 9],
                "when": {"speculative": ["ngram"]},
            },
        }
    )
)


def test_a_small_space_is_all_there(monkeypatch: pytest.MonkeyPatch) -> None:
    found = deployments_of(BRANCHED, 1)
    assert found.are_all
    assert len(found.each) == 10
    monkeypatch.setattr(sample, "EXACT_UP_TO", 9)
    assert not deployments_of(BRANCHED, 1).are_all


def test_each_deployment_is_drawn_as_often_as_any_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """Half of the coordinates say `none`, but only one deployment of ten does."""
    monkeypatch.setattr(sample, "EXACT_UP_TO", 9)
    found = deployments_of(BRANCHED, 1)
    assert len(found.each) == sample.SAMPLE
    counts = Counter(map(deployment_hash, found.each))
    everything = enumerate_canonical(BRANCHED, 100) or []
    assert set(counts) == set(map(deployment_hash, everything))
    assert max(counts.values()) < 1.4 * sample.SAMPLE / 10
    assert deployments_of(BRANCHED, 1) == found
    assert deployments_of(BRANCHED, 2) != found


def test_a_known_interval() -> None:
    # Wilson's, from tables: 10 of 100.
    assert interval(10, 100) == pytest.approx((0.0552, 0.1744), abs=1e-4)
    assert interval(0, 0) == (0.0, 1.0)


@given(st.integers(1, 5000), st.floats(0, 1))
def test_an_interval_holds_its_share(whole: int, share: float) -> None:
    part = round(share * whole)
    low, high = interval(part, whole)
    assert 0.0 <= low <= part / whole + 1e-12
    assert part / whole <= high + 1e-12
    assert high <= 1.0
    assert high - low > 0
