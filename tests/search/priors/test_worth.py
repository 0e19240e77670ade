from __future__ import annotations

import pytest

from sweeper.search.priors.prior import PredictedPoint, Prediction
from sweeper.search.priors.worth import Worth, as_points, ratios
from tests.search.priors.made import config, curve, measured


def predicted(speed: float) -> Prediction:
    return Prediction(tuple(PredictedPoint(p.load, p.metrics) for p in curve(speed)))


def test_calibration_makes_the_baseline_come_out_as_measured() -> None:
    base = measured(0, {})
    scale = ratios(predicted(3.0), base)
    points = as_points(predicted(3.0), scale)
    for point, seen in zip(points, base.points, strict=True):
        assert point.metrics == pytest.approx(seen.metrics)


def test_a_level_that_the_baseline_lacks_takes_the_mean_ratio() -> None:
    base = measured(0, {})
    base.points = base.points[:1]
    scale = ratios(predicted(4.0), base)
    unscaled, scaled = predicted(4.0).points[1], as_points(predicted(4.0), scale)[1]
    name = "output_tokens_per_s_per_gpu"
    assert scaled.metrics[name] == pytest.approx(2.0 * unscaled.metrics[name])


def test_without_a_prediction_of_the_baseline_nothing_is_scaled() -> None:
    assert ratios(None, measured(0, {})) == {}
    points = as_points(predicted(4.0), {})
    assert points[0].metrics == predicted(4.0).points[0].metrics


def test_the_frontiers_worth_is_the_objectives_own_value() -> None:
    from sweeper.search.objective import Objective

    cfg, base = config(), measured(0, {})
    objective = Objective(cfg.objective, cfg.select.slo, cfg.load, with_quality=False)
    objective.anchor(base)
    other = measured(1, {"max_num_seqs": 256})
    told = objective.tell(other).values
    assert told is not None
    assert Worth(cfg, base).of(other.points) == pytest.approx(told[0])


def test_a_missed_promise_is_worth_less_than_a_kept_one_and_the_nearer_more() -> None:
    cfg = config()
    cfg.objective.kind = "slo"
    cfg.select.slo.e2e_p95_ms = 100.0
    worth = Worth(cfg, measured(0, {}))
    values = [worth.of(curve(speed)) for speed in (20.0, 8.0, 4.0)]
    assert None not in values
    assert values == sorted(values, key=lambda value: -(value or 0.0))
    assert values[1] is not None and values[1] < 0


def test_several_objectives_count_by_their_ratios() -> None:
    cfg = config()
    cfg.objective.kind = "point"
    worth = Worth(cfg, measured(0, {}))
    slow, fast = worth.of(curve(4.0)), worth.of(curve(8.0))
    assert slow is not None and fast is not None
    assert fast - slow == pytest.approx(0.6931, rel=1e-3), "twice as good in both"


def test_quality_is_no_priors_business() -> None:
    cfg = config()
    cfg.objective.kind, cfg.objective.metrics = "metrics", ["+quality", "-e2e_p95_ms"]
    worth = Worth(cfg, measured(0, {}))
    assert worth.of(curve(4.0)) == pytest.approx(-4000.0)


def test_points_that_do_not_tell_are_worth_nothing_known() -> None:
    worth = Worth(config(), measured(0, {}))
    assert worth.of([]) is None


def test_an_outline_has_the_area_of_all_points() -> None:
    worth = Worth(config(), measured(0, {}))
    points = [point for speed in (2.0, 8.0, 5.0, 11.0) for point in curve(speed)]
    outline = worth.outline(points)
    assert len(outline) < len(points)
    assert worth.area(outline) == pytest.approx(worth.area(points))
