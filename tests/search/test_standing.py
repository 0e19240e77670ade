"""What the launches so far have shown: what to beat, and whether anything is still gained."""

from __future__ import annotations

import math
from typing import Any

import pytest

from sweeper.config.schema import (
    LoadConfig,
    ObjectiveConfig,
    QualityConfig,
    SelectConfig,
    SloConfig,
    StopConfig,
    SweeperConfig,
)
from sweeper.search.objective import Objective
from sweeper.search.standing import DEFAULT_MARGIN, Standing
from sweeper.trial.cutting import CEILING, OPTIMISTIC, QUALITY_AT_MOST
from sweeper.trial.outcome import Point, QualityScore, TrialOutcome
from sweeper.verdicts import Verdict

TPS, E2E = "output_tokens_per_s_per_gpu", "e2e_p95_ms"
C1, C8 = "concurrency 1", "concurrency 8"


def point(concurrency: int, throughput: float, latency_ms: float, **more: float) -> Point:
    metrics = {TPS: throughput, E2E: latency_ms, **more}
    return Point({"kind": "closed", "concurrency": concurrency}, metrics, {}, 50, True)


def trial(number: int, factor: float, *, quality: float | None = None, **more: Any) -> TrialOutcome:
    """Both metrics better by a factor, at every level."""
    score = None if quality is None else QualityScore(quality, 0.001, 0.0, 0.01, 100, "k")
    points = [point(1, 20 * factor, 400 / factor), point(8, 100 * factor, 800 / factor)]
    deployment = more.pop("deployment", {} if number == 0 else {"max_num_seqs": number})
    return TrialOutcome(
        number,
        more.pop("kind", "baseline" if number == 0 else "search"),
        deployment,
        str(sorted(deployment.items())),
        more.pop("verdict", Verdict.OK),
        "stop",
        points=more.pop("points", points),
        quality=score,
        **more,
    )


def standing(*trials: TrialOutcome, **changes: Any) -> Standing:
    cfg = SweeperConfig(
        load=LoadConfig(concurrency=[1, 8]),
        quality=QualityConfig(kind="none"),
        stop=StopConfig(after=3),
    )
    for name, value in changes.items():
        setattr(cfg, name, value)
    objective = Objective(
        cfg.objective, cfg.select.slo, cfg.load, with_quality=cfg.quality.kind != "none"
    )
    if trials:
        objective.anchor(trials[0])
    made = Standing(cfg, objective)
    made.update(trials)
    return made


THREE = (trial(0, 1.0), trial(1, 1.2), trial(4, 0.9))


def test_the_stake_is_the_front_and_where_its_knee_stands() -> None:
    stake = standing(*THREE).to_beat("search", {"max_num_seqs": 2}, None)
    assert stake is not None and stake.may_cut and stake.may_skip
    assert [rival.values for rival in stake.rivals] == [(24.0, 400 / 1.2), (120.0, 800 / 1.2)]
    assert stake.first == C8 and set(stake.levels) == {C1, C8}
    assert stake.margin == DEFAULT_MARGIN
    assert stake.growth[C8][C1] == pytest.approx({TPS: math.log(0.2), E2E: math.log(0.5)})
    assert len(stake.ceiling) == 1


@pytest.mark.parametrize("kind", ["baseline", "seed", "confirm"])
def test_only_the_searchs_own_launches_are_cut(kind: str) -> None:
    assert standing(*THREE).to_beat(kind, {}, None) is None


@pytest.mark.parametrize(
    "off",
    [
        {"stop": StopConfig(early=False)},
        {"load": LoadConfig(levels="found", concurrency=[1])},
    ],
)
def test_where_it_is_off_and_where_ladders_end_themselves_all_is_measured(off: Any) -> None:
    assert standing(*THREE, **off).to_beat("search", {}, None) is None


@pytest.mark.parametrize(
    ("deployment", "known"),
    [
        ({"max_num_seqs": 4}, True),
        ({"max_num_seqs": 3}, True),  # between two that were measured
        ({"max_num_seqs": 5}, False),
        ({"speculative": "ngram"}, False),
        ({}, True),
    ],
)
def test_a_value_that_no_whole_launch_had_is_measured_whole(
    deployment: dict[str, Any], known: bool
) -> None:
    stake = standing(*THREE).to_beat("search", deployment, None)
    assert stake is not None and stake.may_cut is known


def test_too_few_whole_launches_cut_nothing() -> None:
    stake = standing(*THREE[:2], trial(2, 1.0, partial="cut")).to_beat("search", {}, None)
    assert stake is not None and not stake.may_cut


def test_changes_between_levels_have_room_beyond_what_was_seen() -> None:
    steep = trial(5, 1.0, points=[point(1, 40, 400), point(8, 100, 800)])
    stake = standing(*THREE, steep).to_beat("search", {}, None)
    assert stake is not None
    seen = math.log(0.4)
    assert stake.growth[C8][C1][TPS] == pytest.approx(seen + (seen - math.log(0.2)) / 3)


def test_repeats_of_the_baseline_tell_the_noise() -> None:
    again = trial(9, 1.01, deployment={}, kind="confirm", repeats=0)
    measured = standing(*THREE, again)
    assert measured.margin != DEFAULT_MARGIN and measured.whole == 3
    assert standing(*THREE, again, stop=StopConfig(margin_share=0.1)).noise_share == pytest.approx(
        0.1
    )


def test_quality_that_nobody_judged_is_at_most_the_best() -> None:
    judged = [trial(0, 1.0, quality=0.9), trial(1, 1.5, quality=0.5)]
    made = standing(*judged, quality=QualityConfig())
    stake = made.to_beat("search", {}, None)
    assert stake is not None and stake.quality == 0.9
    known = made.to_beat("search", {}, QualityScore(0.5, 0.001, 0.0, 0.01, 100, "k"))
    assert known is not None and known.quality == 0.5
    assert {rival.quality for rival in stake.rivals} == {0.9, 0.5}


def test_under_an_slo_the_best_that_keeps_it_is_to_be_beaten() -> None:
    slo = SelectConfig(slo=SloConfig(e2e_p95_ms=700))
    made = standing(*THREE, objective=ObjectiveConfig(kind="slo"), select=slo)
    stake = made.to_beat("search", {}, None)
    assert stake is not None
    assert [rival.values for rival in stake.rivals] == [(120.0,)]
    assert stake.limits == {"e2e_p95_ms": 700.0} and stake.first == C8
    nobody = SelectConfig(slo=SloConfig(e2e_p95_ms=7))
    none_keeps = standing(*THREE, objective=ObjectiveConfig(kind="slo"), select=nobody)
    stake = none_keeps.to_beat("search", {}, None)
    assert stake is not None and stake.first == C1 and not stake.rivals


def test_one_level_is_all_that_matters_to_an_objective_of_one() -> None:
    made = standing(*THREE, objective=ObjectiveConfig(kind="point", concurrency=1))
    stake = made.to_beat("search", {}, None)
    assert stake is not None and stake.first == C1 and stake.levels == (C1,)
    assert not stake.may_skip and [r.values[0] for r in stake.rivals] == [24.0]


def test_gains_beyond_noise_are_counted_and_faults_of_others_are_not() -> None:
    made = standing(
        *THREE,
        trial(5, 1.21),  # better, within noise
        trial(6, 1.0, verdict=Verdict.INFRA, points=[]),
        trial(7, 1.0, verdict=Verdict.CAPACITY, points=[]),
        trial(8, 1.0, verdict=Verdict.CAPACITY, points=[], launched=False),
    )
    assert made.gains == [True, True, False, False, None, False]
    assert made.quiet_launches == 3
    made.update([*THREE, *[trial(9, 1.0)] * 4, trial(10, 2.0)])
    assert made.quiet_launches == 0


def test_learning_in_steps_is_learning_at_once() -> None:
    """Whoever resumes goes on as if nothing had happened."""
    trials = [*THREE, trial(5, 1.4), trial(6, 0.4, partial="cut"), trial(7, 1.1)]
    at_once, in_steps = standing(*trials), standing(trials[0])
    for count in range(1, len(trials) + 1):
        in_steps.update(trials[:count])
    assert at_once.to_beat("search", {}, None) == in_steps.to_beat("search", {}, None)
    assert at_once.curve.gains == in_steps.curve.gains and at_once.gains == in_steps.gains


def told(made: Standing, outcome: TrialOutcome) -> float:
    values = made.objective.tell(outcome).values
    assert values is not None
    return values[0]


def cut(factor: float, at_most: tuple[float, float] | None = None) -> TrialOutcome:
    """Cut after the level of eight streams, with the bound of a single one."""
    optimistic = {} if at_most is None else {C1: dict(zip((TPS, E2E), at_most, strict=True))}
    learnt = {OPTIMISTIC: optimistic, CEILING: [4.0]}
    eight = point(8, 100 * factor, 800 / factor)
    return trial(7, factor, points=[eight], partial="cut", learnt=learnt)


def test_a_cut_launch_is_told_as_what_it_may_have_been() -> None:
    made = standing(*THREE)
    alone, hoped = told(made, cut(0.5)), told(made, cut(0.5, (10.0, 800.0)))
    assert alone < hoped == pytest.approx(told(made, trial(8, 0.5)))
    assert told(made, cut(5.0)) == 4.0, "never above the best"


def test_a_cut_launchs_quality_is_the_most_that_it_may_be() -> None:
    judged = [trial(0, 1.0, quality=0.9), trial(1, 1.5, quality=0.5)]
    made = standing(*judged, quality=QualityConfig())
    outcome = cut(0.5)
    assert made.objective.tell(outcome).values is None, "nothing says how good it may be"
    outcome.learnt |= {QUALITY_AT_MOST: 0.9, CEILING: [9.0, 0.9]}
    values = made.objective.tell(outcome).values
    assert values is not None and values[1] == 0.9
    assert made.objective.quality(outcome) == 0.9
