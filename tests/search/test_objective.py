"""What the sampler is told."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweeper.config.schema import LoadConfig, ObjectiveConfig, SloConfig
from sweeper.errors import StudyError
from sweeper.search.objective import (
    CORNER_MARGIN,
    Corner,
    Objective,
    corner_from_baseline,
    log_hypervolume,
    slo_excess,
)
from sweeper.trial.outcome import Point, QualityScore, TrialOutcome
from sweeper.verdicts import Verdict

LADDER = LoadConfig(concurrency=[1, 8])


def point(
    concurrency: int, throughput: float, latency_ms: float, *, valid: bool = True, **more: float
) -> Point:
    metrics = {"output_tokens_per_s_per_gpu": throughput, "e2e_p95_ms": latency_ms, **more}
    return Point({"kind": "closed", "concurrency": concurrency}, metrics, {}, 50, valid)


def outcome(
    *points: Point, verdict: Verdict = Verdict.OK, quality: float | None = 0.9, **learnt: float
) -> TrialOutcome:
    score = None if quality is None else QualityScore(quality, 0.01, 0.0, 0.01, 100, "k")
    return TrialOutcome(
        0, "search", {}, "h", verdict, "load", points=list(points), quality=score, learnt=learnt
    )


BASELINE = outcome(point(1, 10, 1000), point(8, 40, 2000))


def frontier(with_quality: bool = True) -> Objective:
    objective = Objective(ObjectiveConfig(), SloConfig(), LADDER, with_quality)
    objective.anchor(BASELINE)
    return objective


def test_a_quality_inside_the_error_is_told_as_the_baselines() -> None:
    """Otherwise the sampler would chase the noise of the score."""
    near = frontier().tell(outcome(point(1, 10, 1000), quality=0.89)).values
    far = frontier().tell(outcome(point(1, 10, 1000), quality=0.5)).values
    assert near is not None and far is not None
    assert near[1] == 0.9
    assert far[1] == 0.5


def test_a_paired_change_is_told_where_two_shares_alone_are_alike() -> None:
    near = outcome(point(1, 10, 1000), quality=0.89)
    assert near.quality is not None
    near.quality.agreement_change, near.quality.agreement_change_se = -0.01, 0.002
    told = frontier().tell(near).values
    assert told is not None and told[1] == 0.89


def test_named_metrics_take_quality_without_its_noise_too() -> None:
    cfg = ObjectiveConfig(kind="metrics", metrics=["+quality"], concurrency=1)
    objective = Objective(cfg, SloConfig(), LADDER, True)
    objective.anchor(BASELINE)
    assert objective.tell(outcome(point(1, 10, 1000), quality=0.89)).values == (0.9,)
    assert objective.tell(outcome(point(1, 10, 1000), quality=0.5)).values == (0.5,)


def test_frontier_is_the_area_of_the_load_curve() -> None:
    corner = Corner(throughput=1.0, latency_ms=math.e**3)
    # One point a factor e² above the corner's throughput and e below its latency.
    assert log_hypervolume([(math.e**2, math.e**2)], corner) == pytest.approx(2.0)
    # A second, faster and slower-responding one adds only its own strip.
    assert log_hypervolume([(math.e, math.e), (math.e**2, math.e**2)], corner) == pytest.approx(
        1.0 * 1 + 2.0 * 1
    )


def test_corner_lies_beyond_the_baseline() -> None:
    corner = corner_from_baseline(BASELINE, ObjectiveConfig())
    assert corner == Corner(10 / CORNER_MARGIN, 2000 * CORNER_MARGIN)


def test_better_curve_is_told_a_larger_value() -> None:
    objective = frontier()
    base = objective.tell(BASELINE).values
    faster = objective.tell(outcome(point(1, 11, 900), point(8, 44, 1800))).values
    assert base is not None and faster is not None
    assert faster[0] > base[0]
    assert objective.names == ["log_hypervolume", "quality"]
    assert objective.directions == ["maximize", "maximize"]


@given(
    st.lists(st.tuples(st.floats(1, 1e5), st.floats(1, 1e5)), min_size=1, max_size=8),
    st.floats(1.01, 3),
)
def test_hypervolume_grows_and_ignores_order(
    curve: list[tuple[float, float]], factor: float
) -> None:
    corner = Corner(0.5, 2e5)
    area = log_hypervolume(curve, corner)
    assert log_hypervolume(curve[::-1], corner) == pytest.approx(area)
    assert log_hypervolume([(speed * factor, delay) for speed, delay in curve], corner) > area
    assert log_hypervolume([*curve, curve[0]], corner) == pytest.approx(area)


def test_invalid_points_never_count() -> None:
    objective = frontier()
    honest = objective.tell(outcome(point(1, 10, 1000)))
    with_broken = objective.tell(outcome(point(1, 10, 1000), point(8, 1e6, 1, valid=False)))
    assert honest == with_broken


@pytest.mark.parametrize(
    "verdict",
    [
        Verdict.CAPACITY,
        Verdict.INFEASIBLE_CONFIG,
        Verdict.CRASH_UNDER_LOAD,
        Verdict.QUALITY_FAIL,
    ],
)
def test_a_deployments_fault_is_a_violation_even_with_points(verdict: Verdict) -> None:
    told = frontier().tell(outcome(point(1, 100, 100), verdict=verdict))
    assert told.values is None
    assert told.violation > 0


@pytest.mark.parametrize(
    "verdict", [Verdict.INFRA, Verdict.MEASUREMENT_INVALID, Verdict.STARTUP_TIMEOUT]
)
def test_a_fault_of_the_surroundings_is_no_violation(verdict: Verdict) -> None:
    told = frontier().tell(outcome(point(1, 100, 100), verdict=verdict))
    assert told.values is None
    assert told.violation == 0


def test_capacity_violation_says_how_far_it_missed() -> None:
    near = frontier().tell(outcome(verdict=Verdict.CAPACITY, needed_gib=11, available_gib=10))
    far = frontier().tell(outcome(verdict=Verdict.CAPACITY, needed_gib=40, available_gib=10))
    assert 0 < near.violation < far.violation


def test_without_quality_the_trial_gives_no_value_when_quality_is_an_objective() -> None:
    assert frontier().tell(outcome(point(1, 10, 10), quality=None)).values is None
    told = frontier(with_quality=False).tell(outcome(point(1, 10, 10), quality=None))
    assert told.values is not None and len(told.values) == 1


def test_point_tells_the_classic_three() -> None:
    objective = Objective(ObjectiveConfig(kind="point"), SloConfig(), LADDER, True)
    assert objective.directions == ["maximize", "minimize", "maximize"]
    assert objective.tell(BASELINE).values == (40, 2000, 0.9)
    assert objective.tell(outcome(point(1, 10, 1000))).values is None


def test_slo_tells_the_highest_throughput_that_keeps_it() -> None:
    slo = SloConfig(e2e_p95_ms=1500)
    objective = Objective(ObjectiveConfig(kind="slo"), slo, LADDER, True)
    assert objective.tell(BASELINE).values == (10, 0.9)
    missed = objective.tell(outcome(point(1, 10, 3000)))
    assert missed.values is None
    assert missed.violation == pytest.approx(math.log(2))


def test_unmeasured_latency_does_not_keep_an_slo() -> None:
    assert slo_excess(point(1, 10, 100), SloConfig(ttft_p95_ms=5)) > 0
    assert slo_excess(point(1, 10, 100, ttft_p95_ms=4), SloConfig(ttft_p95_ms=5)) < 0


def test_named_metrics_have_signs() -> None:
    cfg = ObjectiveConfig(
        kind="metrics", metrics=["-e2e_p95_ms", "+output_tokens_per_s_per_gpu"], concurrency=1
    )
    objective = Objective(cfg, SloConfig(), LADDER, True)
    assert objective.directions == ["minimize", "maximize"]
    assert objective.tell(BASELINE).values == (1000, 10)


def test_non_finite_values_are_refused() -> None:
    objective = Objective(ObjectiveConfig(kind="point"), SloConfig(), LADDER, True)
    with pytest.raises(ValueError, match="non-finite"):
        objective.tell(outcome(point(8, math.inf, 1)))


def test_a_baseline_without_the_objectives_metric_is_named() -> None:
    cfg = ObjectiveConfig(latency_metric="tpot_p95_ms")
    with pytest.raises(StudyError, match="tpot_p95_ms"):
        Objective(cfg, SloConfig(), LADDER, True).anchor(BASELINE)


def test_without_a_baseline_nothing_is_told_rather_than_invented() -> None:
    told = Objective(ObjectiveConfig(), SloConfig(), LADDER, True).tell(BASELINE)
    assert (told.values, told.violation) == (None, 0.0)
