"""When a launch can no longer matter, and which of its levels cannot."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sweeper.config.schema import LoadConfig
from sweeper.load.ladder import Seen, given_levels
from sweeper.load.level import LoadLevel
from sweeper.trial.cutting import Course, bound, hopeless, needless
from sweeper.trial.outcome import Point
from sweeper.trial.to_beat import Axis, Rival, ToBeat

TPS, E2E = "output_tokens_per_s_per_gpu", "e2e_p95_ms"
LADDER = LoadConfig(concurrency=[1, 8, 32])
C1, C8, C32 = (level.name for level in given_levels(LADDER))
CURVE = {C1: (20.0, 400.0), C8: (100.0, 800.0), C32: (200.0, 1600.0)}
"""What is known, level by level."""


def point(level: str, throughput: float, latency_ms: float, **more: Any) -> Point:
    intervals = more.pop("intervals", {})
    valid = more.pop("valid", True)
    load = {"kind": "closed", "concurrency": int(level.rsplit(maxsplit=1)[-1])}
    return Point(load, {TPS: throughput, E2E: latency_ms, **more}, intervals, 50, valid)


def growth(room: float = 0.0) -> dict[str, dict[str, dict[str, float]]]:
    """How the known curve changes between its levels, with some room to the good side."""
    return {
        start: {
            end: {
                TPS: math.log(CURVE[end][0] / CURVE[start][0]) + room,
                E2E: math.log(CURVE[end][1] / CURVE[start][1]) - room,
            }
            for end in CURVE
            if end != start
        }
        for start in CURVE
    }


def goal(**changes: Any) -> ToBeat:
    made = ToBeat(
        axes=(Axis(TPS, 1), Axis(E2E, -1)),
        rivals=tuple(Rival(values) for values in CURVE.values()),
        levels=(C1, C8, C32),
        first=C32,
        growth=growth(),
        margin=math.log(1.05),
        may_cut=True,
        may_skip=True,
        ceiling=(4.0,),
    )
    return replace(made, **changes)


def seen(points: list[Point]) -> list[Seen]:
    levels = {level.name: level for level in given_levels(LADDER)}
    return [Seen(levels[p.level], p.valid) for p in points]


def walk(to_beat: ToBeat | None, curve: dict[str, tuple[float, float]]) -> tuple[list[str], Course]:
    """Drive a launch whose curve is known."""
    course, points = Course(LADDER, to_beat), []
    while (level := course.next(seen(points), points)) is not None:
        points.append(point(level.name, *curve[level.name]))
    return [p.level for p in points], course


def scaled(factor: float) -> dict[str, tuple[float, float]]:
    return {level: (tps * factor, ms / factor) for level, (tps, ms) in CURVE.items()}


def test_without_a_stake_the_ladder_is_driven_as_configured() -> None:
    assert walk(None, scaled(0.1)) == ([C1, C8, C32], Course(LADDER))


def test_a_launch_beaten_everywhere_ends_after_its_first_level() -> None:
    driven, course = walk(goal(), scaled(0.5))
    assert driven == [C32]
    assert course.cut is not None
    assert f"{TPS} -50%" in course.cut.reason and f"{E2E} +100%" in course.cut.reason
    assert set(course.cut.optimistic) == {C1, C8}
    assert course.cut.learnt()["ceiling"] == [4.0]


def test_a_launch_within_noise_is_measured_whole_from_the_best_ones_level_up() -> None:
    driven, course = walk(goal(), scaled(0.98))
    assert driven == [C32, C1, C8] and course.cut is None


def test_where_another_level_could_still_win_it_is_asked_next() -> None:
    """Slow at the first level, but launches of this study differ widely at a single stream."""
    wide = growth()
    wide[C32][C1] = {TPS: wide[C32][C1][TPS] + 1.0, E2E: wide[C32][C1][E2E] - 1.0}
    beaten = scaled(0.5)
    driven, course = walk(goal(growth=wide), beaten)
    assert driven == [C32, C1] and course.cut is not None
    assert set(course.cut.optimistic) == {C8}
    driven, course = walk(goal(growth=wide), beaten | {C1: (40.0, 200.0)})
    assert len(driven) == 3 and course.cut is None


@pytest.mark.parametrize(
    "kept",
    [
        {"may_cut": False},
        {"growth": {}},
        {"rivals": ()},
        {"quality": 0.9},  # nobody as fast has shown a quality
        {"rivals": (Rival((300.0, 5000.0)),)},  # faster, and slower to answer
    ],
)
def test_nothing_is_cut_that_may_matter(kept: dict[str, Any]) -> None:
    driven, course = walk(goal(**kept), scaled(0.5))
    assert len(driven) == 3 and course.cut is None


def test_a_rival_counts_only_with_a_quality_as_good() -> None:
    rivals = tuple(Rival(values, 0.8) for values in CURVE.values())
    assert walk(goal(rivals=rivals, quality=0.8), scaled(0.5))[1].cut is not None
    assert walk(goal(rivals=rivals, quality=0.9), scaled(0.5))[1].cut is None


def test_an_interval_wider_than_the_noise_counts() -> None:
    wide = {TPS: [90.0, 210.0], E2E: [1500.0, 4000.0]}
    assert hopeless([point(C32, 100, 3200)], [C1, C8], goal()) is not None
    assert hopeless([point(C32, 100, 3200, intervals=wide)], [C1, C8], goal()) is None


def test_an_invalid_level_decides_nothing() -> None:
    assert hopeless([point(C32, 100, 3200, valid=False)], [C1, C8], goal()) is None


def test_a_bound_is_the_tightest_that_any_driven_level_gives() -> None:
    points = [point(C32, 100.0, 3200.0), point(C1, 20.0, 400.0)]
    found = bound(points, C8, goal(margin=0.0))
    assert found == pytest.approx({TPS: 50.0, E2E: 1600.0})


def level(concurrency: int) -> LoadLevel:
    return LoadLevel("closed", 8, concurrency=concurrency)


def test_levels_beyond_two_falls_are_left_out() -> None:
    stake = goal(levels=(C1, C8, C32, "concurrency 64"))
    falls = [point(C1, 200, 100), point(C8, 180, 400), point(C32, 150, 900)]
    reason = needless(level(64), falls, stake)
    assert reason is not None and C8 in reason and C32 in reason
    once = [point(C1, 200, 100), point(C8, 195, 400), point(C32, 150, 900)]
    assert needless(level(64), once, stake) is None, "the first fall is within noise"
    sooner = [point(C1, 200, 100), point(C8, 180, 400), point(C32, 150, 300)]
    assert needless(level(64), sooner, stake) is None, "less throughput, but sooner"
    assert needless(level(64), falls, replace(stake, may_skip=False)) is None


def test_levels_beyond_a_broken_promise_are_left_out() -> None:
    stake = goal(axes=(Axis(TPS, 1),), limits={"ttft_p95_ms": 500.0}, rivals=(), may_cut=False)
    broken = [point(C8, 100, 900, ttft_p95_ms=700.0)]
    assert "ttft_p95_ms is 700" in (needless(level(32), broken, stake) or "")
    assert needless(level(1), broken, stake) is None, "an easier level may keep it"
    near = [point(C8, 100, 900, ttft_p95_ms=510.0)]
    assert needless(level(32), near, stake) is None, "within noise of the limit"
    unsure = [point(C8, 100, 900, ttft_p95_ms=700.0, intervals={"ttft_p95_ms": [450.0, 900.0]})]
    assert needless(level(32), unsure, stake) is None, "its interval reaches below the limit"


def test_a_skipped_level_is_told_and_not_driven() -> None:
    load = LoadConfig(concurrency=[1, 8, 32, 64])
    stake = goal(first=C1, levels=(C1, C8, C32, "concurrency 64"), may_cut=False)
    course, points = Course(load, stake), []
    curve = {1: (200.0, 100.0), 8: (180.0, 400.0), 32: (150.0, 900.0)}
    while (asked := course.next([], points)) is not None:
        points.append(point(asked.name, *curve[asked.concurrency or 0]))
    assert list(course.skipped) == ["concurrency 64"] and course.cut is None


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([0.0, 0.02, 0.08]), st.sampled_from([0.0, 0.05, 0.3]))
def test_a_cut_launch_would_not_have_been_on_the_front(
    seed: int, margin: float, spread: float
) -> None:
    """As long as noise keeps to its margin and curves to the changes that were seen.

    True curves are drawn, everything is measured with noise, and the cut is judged by the truth:
    at its first level the launch is beaten, and at no level does it beat the front beyond noise.
    """
    draw = random.Random(seed)

    def measured(value: float) -> float:
        return value * math.exp(margin / 2 * draw.uniform(-1, 1))

    def curve() -> dict[str, tuple[float, float]]:
        base = draw.uniform(0.3, 1.4)
        return {
            level: (
                tps * base * math.exp(spread * draw.uniform(-1, 1)),
                ms / base * math.exp(spread * draw.uniform(-1, 1)),
            )
            for level, (tps, ms) in CURVE.items()
        }

    known = [pair for _ in range(draw.randint(1, 4)) for pair in curve().values()]
    first = draw.choice([C1, C8, C32])
    stake = goal(
        first=first,
        margin=margin,
        # Any two curves of this family change from level to level alike, but for twice the spread.
        growth=growth(2 * spread + margin),
        rivals=tuple(Rival((measured(tps), measured(ms))) for tps, ms in known),
    )

    def ahead(pair: tuple[float, float]) -> float:
        return min(max(math.log(pair[0] / tps), math.log(ms / pair[1])) for tps, ms in known)

    for _ in range(5):
        candidate = curve()
        _, course = walk(
            stake, {name: (measured(tps), measured(ms)) for name, (tps, ms) in candidate.items()}
        )
        if course.cut is not None:
            assert ahead(candidate[first]) <= 1e-9
            assert all(ahead(pair) <= 2 * margin + 1e-9 for pair in candidate.values())
