"""Which of a trial's points an objective looks at, whatever kind of load was driven."""

from __future__ import annotations

import math
from typing import Any

import pytest

from sweeper.config.schema import GoodputConfig, LoadConfig, ObjectiveConfig, SloConfig
from sweeper.load.ladder import given_levels
from sweeper.search.level import LevelChoice
from sweeper.search.objective import Objective
from sweeper.trial.outcome import Point, TrialOutcome
from sweeper.verdicts import Verdict

OPEN = LoadConfig(kind="open", rate_per_s=[0.5, 1.23456, 4.0])
FOUND = LoadConfig(levels="found", concurrency=[1])
SLO = LoadConfig(
    kind="open", levels="slo", rate_per_s=[1.0], goodput=GoodputConfig(ttft_ms=500.0, share=0.99)
)


def point(
    load: dict[str, Any], throughput: float = 10.0, *, valid: bool = True, **m: float
) -> Point:
    metrics = {"output_tokens_per_s_per_gpu": throughput, "e2e_p95_ms": 100.0, **m}
    return Point(load, metrics, {}, 50, valid)


def streams(count: int, **fields: Any) -> Point:
    return point({"kind": "closed", "concurrency": count}, throughput=float(count), **fields)


def rate(per_s: float, **fields: Any) -> Point:
    load = {"kind": "open", "rate_per_s": per_s, "arrivals": "poisson"}
    return point(load, throughput=per_s, **fields)


def outcome(*points: Point, **learnt: Any) -> TrialOutcome:
    return TrialOutcome(
        1, "search", {}, "h", Verdict.OK, "stop", points=list(points), learnt=dict(learnt)
    )


def throughput(choice: LevelChoice, result: TrialOutcome) -> float | None:
    found = choice.point(result)
    return None if found is None else found.metrics["output_tokens_per_s_per_gpu"]


@pytest.mark.parametrize(
    "load",
    [
        LoadConfig(concurrency=[1, 8]),
        LoadConfig(kind="batch", concurrency=[4, 16]),
        OPEN,
        LoadConfig(kind="ramp", rate_per_s=[2.0, 8.0]),
        LoadConfig(kind="replay", time_scale=[0.5, 2.0]),
    ],
)
def test_highest_level_of_a_given_ladder_of_every_kind(load: LoadConfig) -> None:
    levels = given_levels(load)
    result = outcome(*(point(level.asked(), float(n)) for n, level in enumerate(levels)))
    assert throughput(LevelChoice(load), result) == len(levels) - 1
    assert LevelChoice(load).point(outcome(point(levels[0].asked()))) is None


def test_named_level_is_the_same_in_every_trial() -> None:
    choice = LevelChoice(LoadConfig(concurrency=[1, 8]), 1)
    assert throughput(choice, outcome(streams(1), streams(8))) == 1
    assert choice.point(outcome(streams(1, valid=False), streams(8))) is None


def test_found_ladder_takes_each_trials_own_highest_valid_level() -> None:
    choice = LevelChoice(FOUND)
    assert throughput(choice, outcome(streams(1), streams(8), streams(4))) == 8
    assert throughput(choice, outcome(streams(1), streams(4), streams(8, valid=False))) == 4
    assert choice.point(outcome()) is None


def test_slo_search_speaks_by_the_rate_it_found() -> None:
    """Not by the highest one it tried: that one broke the limits."""
    tried = [rate(1.0), rate(2.0), rate(4.0), rate(2.828)]
    assert throughput(LevelChoice(SLO), outcome(*tried, slo_rate_per_s=2.828)) == 2.828
    assert LevelChoice(SLO).point(outcome(*tried)) is None


def test_limits_kept_at_no_rate_are_the_deployments_fault() -> None:
    cfg = ObjectiveConfig(kind="point")
    objective = Objective(cfg, SloConfig(), SLO, False)
    missed = objective.tell(outcome(rate(1.0, goodput_share=0.2), rate(0.5, goodput_share=0.6)))
    assert missed.values is None
    assert missed.violation == pytest.approx(math.log(0.99 / 0.6))
    worst = objective.tell(outcome(rate(1.0, goodput_share=0.0)))
    assert math.isfinite(worst.violation) and worst.violation > missed.violation
    unmeasured = objective.tell(outcome(rate(1.0)))
    assert (unmeasured.values, unmeasured.violation) == (None, 0.0)
    kept = objective.tell(outcome(rate(2.0, goodput_share=1.0), slo_rate_per_s=2.0))
    assert kept.values == (2.0, 100.0)


def test_goodput_can_be_an_objective() -> None:
    cfg = ObjectiveConfig(kind="metrics", metrics=["+goodput_requests_per_s"])
    objective = Objective(cfg, SloConfig(), OPEN, False)
    result = outcome(rate(0.5), rate(4.0, goodput_requests_per_s=3.5))
    assert objective.tell(result).values == (3.5,)
