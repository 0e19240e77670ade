"""The order of load levels, whatever order they were driven in."""

from __future__ import annotations

from typing import Any

import pytest

from sweeper.load.level import LoadLevel
from sweeper.trial.ladder import pressure, rungs
from tests.factories import open_load, point


@pytest.mark.parametrize(
    ("easier", "harder"),
    [
        (LoadLevel("closed", 4, concurrency=9), LoadLevel("closed", 4, concurrency=10)),
        (LoadLevel("batch", 4, concurrency=2), LoadLevel("batch", 4, concurrency=16)),
        (LoadLevel("open", 4, rate_per_s=0.5), LoadLevel("open", 4, rate_per_s=0.75)),
        (
            LoadLevel("ramp", 4, rate_per_s=2.0, start_rate_per_s=1.5),
            LoadLevel("ramp", 4, rate_per_s=8.0, start_rate_per_s=0.1),
        ),
        (LoadLevel("replay", 4, time_scale=0.5), LoadLevel("replay", 4, time_scale=2.0)),
    ],
)
def test_pressure_rises_with_the_level(easier: LoadLevel, harder: LoadLevel) -> None:
    assert pressure(easier.asked()) < pressure(harder.asked())


@pytest.mark.parametrize(
    ("rates", "places"),
    [([1.0, 4.0, 2.0, 2.8], [0, 3, 1, 2]), ([2.0, 2.0, 1.0], [1, 1, 0]), ([], [])],
)
def test_rungs_count_from_the_easiest(rates: list[float], places: list[int]) -> None:
    assert rungs([point(load=open_load(rate)) for rate in rates]) == places


def test_a_journal_of_before_reads_as_it_did() -> None:
    old: dict[str, Any] = {"kind": "closed", "concurrency": 8}
    assert pressure(old) == 8
