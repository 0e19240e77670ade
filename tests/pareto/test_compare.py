from __future__ import annotations

import pytest

from sweeper.pareto.compare import gain, ratios


def test_a_gain_is_a_multiple_of_the_baseline() -> None:
    found = gain({"x": 3.0}, {"x": 2.0}, "x")
    assert found is not None
    assert (found.ratio, found.percent) == pytest.approx((1.5, 50.0))


@pytest.mark.parametrize("baseline", [{}, {"x": 0.0}, {"x": -2.1}])
def test_what_has_no_multiples_has_no_gain(baseline: dict[str, float]) -> None:
    # A quality that ranks by minus a figure: twice of it is worse.
    assert gain({"x": -4.2}, baseline, "x") is None
    assert ratios({"x": -4.2}, baseline, ("x",)) == {}
