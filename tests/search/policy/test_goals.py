from __future__ import annotations

import math

import numpy as np
import pytest

from sweeper.config.schema import LoadConfig, ObjectiveConfig, SloConfig
from sweeper.search.objective import Objective
from sweeper.search.policy.goals import figures, goal, sight
from tests.factories import outcome, point

FAST = outcome(
    0, points=[point(1, throughput=20, e2e_p95_ms=100), point(8, throughput=90, e2e_p95_ms=900)]
)
SLOW = outcome(1, points=[point(1, throughput=10, e2e_p95_ms=200)])


def objective(kind: str, quality: bool = False, levels: str = "given") -> Objective:
    made = Objective(
        ObjectiveConfig(kind=kind),
        SloConfig(e2e_p95_ms=500.0),
        LoadConfig(concurrency=[1, 8], levels=levels),
        quality,
    )
    made.anchor(FAST)
    return made


def test_a_frontier_is_modelled_level_by_level_and_what_was_not_driven_stays_unknown() -> None:
    of = objective("frontier")
    sights = [seen for one in (FAST, SLOW) if (seen := sight(of, one)) is not None]
    chosen = goal(of, sights)
    rows = figures(chosen, sights)
    assert chosen.levels == (FAST.points[0].level, FAST.points[1].level)
    assert rows[0] == pytest.approx([math.log(v) for v in (20, 0.01, 90, 1 / 900)])
    assert np.isnan(rows[1, 2:]).all()
    points = chosen.points(rows)
    assert points.shape == (2, 2, 2)
    assert np.isneginf(points[1, 1]).all()
    corner, _ = chosen.box(points.reshape(-1, 2))
    assert corner == pytest.approx([math.log(20 / 4), -math.log(900 * 4)])


def test_under_an_slo_only_levels_that_keep_it_count() -> None:
    of = objective("slo")
    sights = [seen for one in (FAST, SLOW) if (seen := sight(of, one)) is not None]
    points = goal(of, sights).points(figures(goal(of, sights), sights))
    assert points[:, 0, 0] == pytest.approx([math.log(20), math.log(10)])


def test_a_miss_at_every_level_is_seen_although_it_has_no_value() -> None:
    of = objective("slo")
    late = outcome(1, points=[point(1, throughput=50, e2e_p95_ms=800)])
    assert of.tell(late).values is None
    seen = sight(of, late)
    assert seen is not None
    assert np.isneginf(goal(of, [seen]).points(figures(goal(of, [seen]), [seen]))).all()


def test_quality_is_one_more_axis_and_may_be_missing() -> None:
    of = objective("frontier", quality=True)
    without = outcome(1, points=FAST.points, agreement=None)
    sights = [seen for one in (FAST, without) if (seen := sight(of, one)) is not None]
    rows = figures(goal(of, sights), sights)
    assert rows[0, -1] == 1.0
    assert np.isnan(rows[1, -1])


def test_equal_quality_neither_hides_nor_dominates_the_rest() -> None:
    of = objective("frontier", quality=True)
    sights = [seen for one in (FAST, SLOW) if (seen := sight(of, one)) is not None]
    chosen = goal(of, sights)
    corner, ideal = chosen.box(chosen.points(figures(chosen, sights)).reshape(-1, 3))
    assert ideal[2] - corner[2] == 1.0


def test_ladders_that_differ_are_modelled_by_what_is_told() -> None:
    of = objective("frontier", levels="found")
    seen = sight(of, FAST)
    assert seen is not None
    assert seen.levels == {}
    assert figures(goal(of, [seen]), [seen])[0] == pytest.approx(of.tell(FAST).values)
    point_kind = objective("point")
    both = sight(point_kind, FAST)
    assert both is not None
    assert both.told == pytest.approx((math.log(90), -math.log(900)))


def test_trials_at_one_load_each_are_points_of_one_front_whatever_the_load() -> None:
    """Else the sampler would look for the best single point, and the front is made of many."""
    of = objective("frontier", levels="found")
    one, other = SLOW, outcome(2, points=[point(64, throughput=400, e2e_p95_ms=3000)])
    sights = [seen for each in (one, other) if (seen := sight(of, each)) is not None]
    points = goal(of, sights).points(figures(goal(of, sights), sights))
    assert points[:, 0] == pytest.approx(
        np.array([[math.log(10), -math.log(200)], [math.log(400), -math.log(3000)]])
    )
    ladder = sight(of, FAST)
    assert ladder is not None
    assert goal(of, [*sights, ladder]).kind == "values", "a ladder beside them compares with none"
