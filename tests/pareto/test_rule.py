"""Preferences and limits, on values."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sweeper.config.schema import SelectConfig, SloConfig
from sweeper.pareto.cost import COST, DEVICE_SECONDS, Price, cost_text, costs
from sweeper.pareto.points import points_frame
from sweeper.pareto.recommendation import Recommendation
from sweeper.pareto.rule import Rule, excess, figure_of, is_floor, limits, metric_of, misses
from sweeper.pareto.select import LATENCY, THROUGHPUT, front_mask, recommend
from sweeper.pareto.shortfall import shortfalls
from sweeper.trial.outcome import TrialOutcome
from tests.factories import outcome, point, study
from tests.pareto.again import confirmed, searched

Row = dict[str, Any]
PREFERENCES = ("throughput", "latency", "quality", "cost", "balanced")
POSITIVE = st.floats(1.0, 1e4)
POINTS = st.lists(st.tuples(POSITIVE, POSITIVE), min_size=1, max_size=25)


def rows_of(points: list[tuple[float, float]]) -> list[Row]:
    return [
        {"trial": number, THROUGHPUT: throughput, LATENCY: latency, "level": "concurrency 8"}
        for number, (throughput, latency) in enumerate(points)
    ]


def rule(prefer: str = "auto", **slo: float) -> Rule:
    return Rule(limits(SloConfig(**slo)), prefer, THROUGHPUT, LATENCY)


def choose(outcomes: list[TrialOutcome], prefer: str = "auto", **slo: Any) -> Recommendation:
    return recommend(points_frame(outcomes), SelectConfig(slo=SloConfig(**slo), prefer=prefer))


def dominated(row: Row, rows: list[Row]) -> bool:
    return any(
        other[THROUGHPUT] >= row[THROUGHPUT]
        and other[LATENCY] <= row[LATENCY]
        and (other[THROUGHPUT], other[LATENCY]) != (row[THROUGHPUT], row[LATENCY])
        for other in rows
    )


@settings(max_examples=60, deadline=None)
@given(points=POINTS, prefer=st.sampled_from(PREFERENCES), limit=POSITIVE)
def test_every_preference_chooses_on_the_front_of_what_keeps_the_promise(
    points: list[tuple[float, float]], prefer: str, limit: float
) -> None:
    rows = rows_of(points)
    keeping = [row for row in rows if row[LATENCY] <= limit]
    for slo, among in (({}, rows), ({LATENCY: limit}, keeping)):
        best = rule(prefer, **slo).best(rows)
        assert (best is None) == (not among)
        assert best is None or (best in among and not dominated(best, among))


@settings(max_examples=60, deadline=None)
@given(points=POINTS, scales=st.tuples(st.floats(0.01, 100), st.floats(0.01, 100)))
def test_balanced_does_not_depend_on_units(
    points: list[tuple[float, float]], scales: tuple[float, float]
) -> None:
    """Seconds or milliseconds, tokens or thousands of them: the same point, or one as balanced."""
    scaled = [(a * scales[0], b * scales[1]) for a, b in points]
    one, other = rule("balanced").best(rows_of(points)), rule("balanced").best(rows_of(scaled))
    assert one is not None and other is not None
    chosen, again = points[one["trial"]], points[other["trial"]]
    # Rounding may tell apart what is equal to the last digit.
    assert chosen == pytest.approx(again) or _balance(points, chosen) == pytest.approx(
        _balance(points, again), abs=1e-6
    )


def _balance(points: list[tuple[float, float]], of: tuple[float, float]) -> float:
    rows = rows_of(points)
    front = [p for p, row in zip(points, rows, strict=True) if not dominated(row, rows)]
    total = 0.0
    for axis, sign in ((0, 1), (1, -1)):
        goods = [sign * math.log(p[axis]) for p in front]
        span = max(max(goods) - min(goods), 0.05)
        total += (sign * math.log(of[axis]) - min(goods)) / span
    return total


def test_auto_is_throughput_under_a_promise_and_balanced_without() -> None:
    assert rule().preference == "balanced"
    assert rule(e2e_p95_ms=100.0).preference == "throughput"
    assert rule("latency").preference == "latency"


@pytest.mark.parametrize("prefer", ["throughput", "latency", "cost"])
def test_what_is_preferred_counts_without_a_promise_too(prefer: str) -> None:
    found = choose(study(), prefer)
    metric, best = (LATENCY, min) if prefer == "latency" else (THROUGHPUT, max)
    measured = [p.metrics[metric] for o in study() for p in o.valid_points]
    assert found.point[metric] == best(measured)
    assert found.prefer == prefer
    assert "no SLO was set" in found.reason


def test_cost_is_told_in_money_where_a_price_is_known_and_in_seconds_where_not() -> None:
    frame = points_frame(study())
    cfg = SelectConfig(slo=SloConfig(e2e_p95_ms=2000), prefer="cost")
    dear = recommend(frame, cfg, price=Price(3.6, "EUR"))
    free = recommend(frame, cfg)
    assert (dear.trial, dear.level) == (free.trial, free.level)
    served = dear.point[THROUGHPUT]
    assert dear.costs[DEVICE_SECONDS] == pytest.approx(1e6 / served)
    assert dear.costs[COST] == pytest.approx(3.6 / 3600 * 1e6 / served)
    assert "EUR" in dear.reason and "3.6" in dear.reason
    assert COST not in free.costs and "no price is known" in free.reason
    assert costs({}, Price(1.0)) == {} and "not measured" in cost_text({}, None)


def test_more_devices_for_the_same_tokens_cost_more() -> None:
    double = outcome(
        1,
        deployment={"tensor_parallel_size": 2},
        points=[point(8, throughput=150, output_tokens_per_s_per_gpu=75)],
    )
    single = outcome(0, points=[point(8, throughput=100)])
    assert choose([single, double], "cost").trial == 0


LIMITS = sorted(vars(SloConfig()))


@pytest.mark.parametrize("name", LIMITS)
def test_each_limit_holds_to_its_metric(name: str) -> None:
    metric = metric_of(name)
    low, high = {metric: 0.4}, {metric: 0.6}
    bad, good = (low, high) if is_floor(name) else (high, low)
    assert misses(good, {name: 0.5}) == {}
    factor = misses(bad, {name: 0.5})[name]
    assert factor == pytest.approx(0.5 / 0.4 if is_floor(name) else 0.6 / 0.5)
    assert misses({}, {name: 0.5}) == {name: None}
    assert misses({metric: 0.5}, {name: 0.5}) == {}, "a limit that is met is kept"


def test_of_several_launches_the_worst_counts() -> None:
    row = {"repeats": [{"metrics": {"requests_per_s": v}} for v in (3.0, 2.0)], "quality": 0.9}
    assert figure_of(row, "min_requests_per_s") == 2.0
    assert figure_of(row, "min_quality") == 0.9
    lacking = {"repeats": [{"metrics": {"ttft_p95_ms": 3.0}}, {"metrics": {}}]}
    assert figure_of(lacking, "ttft_p95_ms") is None
    assert excess(0.0, "min_quality", 0.5) is None


@settings(max_examples=60, deadline=None)
@given(points=POINTS, latency=POSITIVE, throughput=POSITIVE)
def test_the_nearest_is_nearest_and_says_how_far(
    points: list[tuple[float, float]], latency: float, throughput: float
) -> None:
    slo = {LATENCY: latency, "min_output_tokens_per_s_per_gpu": throughput}
    rows = rows_of(points)
    asked = Rule(slo, "auto", THROUGHPUT, LATENCY)
    if asked.best(rows) is not None:
        return
    nearest = asked.nearest(rows)
    worst = max(f or math.inf for f in misses(nearest, slo).values())
    for row in rows:
        assert max(f or math.inf for f in misses(row, slo).values()) >= worst - 1e-12
    told = {one.name: one for one in shortfalls(nearest, rows, slo)}
    assert list(told) == list(slo)
    assert any(not one.is_kept for one in told.values())
    assert told[LATENCY].best == min(row[LATENCY] for row in rows)
    assert told[LATENCY].is_within_reach == any(row[LATENCY] <= latency for row in rows)
    for one in told.values():
        if not one.is_kept:
            assert one.factor == pytest.approx(misses(nearest, slo)[one.name])


def test_a_promise_that_nothing_keeps_is_told_limit_by_limit() -> None:
    found = choose(study(), e2e_p95_ms=350, min_output_tokens_per_s=100, ttft_p99_ms=5)
    assert not found.keeps_slo
    told = {one.name: one for one in found.shortfalls}
    assert told["ttft_p99_ms"].value is None and told["ttft_p99_ms"].best is None
    assert told["e2e_p95_ms"].is_within_reach
    assert "ttft_p99_ms was not measured" in found.headline
    assert choose(study(), e2e_p95_ms=2000).shortfalls == ()


def test_a_floor_that_is_missed_is_told_as_a_share_of_it() -> None:
    found = choose([outcome(0, points=[point(8, throughput=25)])], min_output_tokens_per_s=100)
    assert "75 % below its limit" in found.headline


def test_who_is_as_good_within_noise_is_named() -> None:
    trials = searched(100.0, 131.0, 130.0)
    found = choose(confirmed(trials, {0: [100, 104, 97], 1: [130, 134, 127], 2: [131, 126, 133]}))
    assert found.confirmed
    assert {found.trial, *(row["trial"] for row in found.ties)} == {1, 2}
    assert "Within the noise" in found.reason
    clear = choose(confirmed(trials, {0: [100, 101, 99], 1: [130, 131, 130], 2: [160, 161, 160]}))
    assert clear.trial == 2 and clear.ties == ()


def test_a_point_that_another_promise_chooses_is_not_confirmed() -> None:
    base = outcome(0, points=[point(1, throughput=20, e2e_p95_ms=400), point(8, throughput=100)])
    other = outcome(
        1,
        deployment={"max_num_seqs": 1},
        points=[point(1, throughput=30, e2e_p95_ms=300), point(8, throughput=130, e2e_p95_ms=990)],
    )
    trials = confirmed([base, other], {0: [100, 101, 99], 1: [130, 131, 129]})
    own = choose(trials, "throughput")
    assert (own.level, own.confirmed) == ("concurrency 8", True)
    assert "confirmed: better by" in own.headline
    newly = choose(trials, "throughput", e2e_p95_ms=500)
    assert (newly.level, newly.confirmed) == ("concurrency 1", False)
    assert "Not confirmed: it was measured once." in newly.reason


def test_a_named_trial_keeps_the_verdict_of_its_launches_under_another_rule() -> None:
    """The best by this rule was not launched again; the trial that is asked for was."""
    base = outcome(0, points=[point(1, throughput=20, e2e_p95_ms=400), point(8, throughput=100)])
    other = outcome(1, deployment={"max_num_seqs": 1}, points=[point(8, throughput=130)])
    third = outcome(2, deployment={"max_num_seqs": 2}, points=[point(1, e2e_p95_ms=100)])
    trials = confirmed([base, other, third], {0: [100, 101, 99], 1: [130, 131, 129]})
    found = recommend(points_frame(trials), SelectConfig(prefer="latency"), only_trial=1)
    assert found.confirmed and found.confirmation is not None
    assert "confirmed: better by" in found.headline
    elsewhere = recommend(points_frame(trials), SelectConfig(prefer="latency"), only_trial=2)
    assert not elsewhere.confirmed


def test_the_recommended_is_on_the_front_whatever_is_preferred() -> None:
    frame = points_frame(study())
    for prefer in PREFERENCES:
        found = recommend(frame, SelectConfig(prefer=prefer))
        row = (frame["trial"] == found.trial) & (frame["level"] == found.level)
        assert front_mask(frame)[row].all(), prefer
