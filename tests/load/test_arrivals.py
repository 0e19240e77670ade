"""Arrival times: the right rate, the right spread, the same every time."""

from __future__ import annotations

import statistics
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweeper.load.arrivals import KINDS, arrival_times, ramp_length_s
from sweeper.load.level import LoadLevel

rates = st.floats(0.01, 1e4)


def level(**changes: object) -> LoadLevel:
    asked: dict[str, object] = {"kind": "open", "requests": 4000, "rate_per_s": 8.0}
    return LoadLevel(**(asked | {"arrivals": "poisson"} | changes))  # type: ignore[arg-type]


def gaps(asked: LoadLevel, stream: str = "s") -> list[float]:
    return [after - before for before, after in pairwise(arrival_times(asked, stream))]


levels = st.builds(
    LoadLevel,
    kind=st.sampled_from(["open", "ramp"]),
    requests=st.integers(1, 200),
    rate_per_s=rates,
    start_rate_per_s=rates,
    arrivals=st.sampled_from(KINDS),
    burstiness=st.floats(0.05, 50),
)


@given(asked=levels, stream=st.text(max_size=5))
def test_times_begin_at_zero_rise_and_repeat(asked: LoadLevel, stream: str) -> None:
    times = arrival_times(asked, stream)
    assert len(times) == asked.requests and times[0] == 0
    assert all(after >= before for before, after in pairwise(times))
    assert times == arrival_times(asked, stream)


@pytest.mark.parametrize(
    ("arrivals", "burstiness", "variation"),
    [("constant", 1.0, 0.0), ("poisson", 1.0, 1.0), ("gamma", 0.25, 2.0), ("gamma", 4.0, 0.5)],
)
def test_the_mean_is_the_rate_and_the_spread_is_the_kinds_own(
    arrivals: str, burstiness: float, variation: float
) -> None:
    found = gaps(level(arrivals=arrivals, burstiness=burstiness))
    mean = statistics.fmean(found)
    assert mean == pytest.approx(1 / 8, rel=0.1)
    assert statistics.pstdev(found) / mean == pytest.approx(variation, abs=0.15)


def test_gamma_with_shape_one_is_poisson_in_distribution() -> None:
    one = sorted(gaps(level(arrivals="gamma", burstiness=1.0)))
    other = sorted(gaps(level()))
    for share in (0.1, 0.5, 0.9):
        place = int(share * len(one))
        assert one[place] == pytest.approx(other[place], rel=0.15)


def test_a_constant_ramp_grows_evenly_from_rate_to_rate() -> None:
    asked = level(
        kind="ramp", arrivals="constant", start_rate_per_s=2.0, rate_per_s=10.0, requests=601
    )
    times = arrival_times(asked, "s")
    length_s = ramp_length_s(601, 2.0, 10.0)
    assert length_s == pytest.approx(100, rel=0.01)
    for at in (10.0, 50.0, 90.0):
        nearby = sum(1 for time in times if at - 2 <= time < at + 2)
        assert nearby / 4 == pytest.approx(2.0 + 8.0 * at / length_s, rel=0.15)


def test_two_streams_arrive_at_different_times() -> None:
    assert arrival_times(level(), "a") != arrival_times(level(), "b")
