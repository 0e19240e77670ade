from __future__ import annotations

from sweeper.config.schema import LoadConfig
from sweeper.search.priors.ladder import DOUBLINGS, predicted_levels


def test_given_levels_are_predicted_as_they_are() -> None:
    levels = predicted_levels(LoadConfig(concurrency=[1, 8, 32]))
    assert [level.concurrency for level in levels] == [1, 8, 32]


def test_a_ladder_that_is_found_doubles_from_its_first_level() -> None:
    closed = predicted_levels(LoadConfig(levels="found", concurrency=[2]))
    assert [level.concurrency for level in closed] == [2 * 2**n for n in range(DOUBLINGS)]
    open_ = predicted_levels(LoadConfig(kind="open", levels="found", rate_per_s=[0.5]))
    assert [level.rate_per_s for level in open_] == [0.5 * 2**n for n in range(DOUBLINGS)]
    assert {level.arrivals for level in open_} == {"poisson"}


def test_a_ramp_and_a_trace_have_no_steady_state() -> None:
    assert predicted_levels(LoadConfig(kind="ramp", rate_per_s=[4.0])) == []
    assert predicted_levels(LoadConfig(kind="replay")) == []
