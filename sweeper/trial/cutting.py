"""When a launch can no longer matter, and which of its levels cannot. Pure.

    first level: where the recommended deployment stands
        │
        ▼
    beaten there on every objective, beyond noise?  ──no──► all other levels
        │ yes
        ▼
    could any level still beat what is known? ──yes──► drive the level that comes nearest to it,
        │ no                                           and look again
        ▼
    cut: what was measured is recorded, and the bound of what was not

A level that was not driven is bounded from those that were: by the most favourable change between
the two levels that any whole launch of the study showed, with some room (`Growth`). A difference
within noise is none: a level that can at best tie with what is known adds nothing.

Two kinds of levels are left out without cutting the launch: harder ones once throughput has fallen
twice in a row beyond noise, and harder ones once a promise is broken, where the promise is the
objective. Neither can add to what the objective counts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from sweeper.config.schema import LoadConfig
from sweeper.load.ladder import Seen, given_levels, next_level
from sweeper.load.level import LoadLevel
from sweeper.trial.ladder import pressure
from sweeper.trial.outcome import Point
from sweeper.trial.to_beat import Rival, ToBeat

Bound = dict[str, float]
"""Metric → the best value that a level may still have."""

OPTIMISTIC, CEILING, QUALITY_AT_MOST = "optimistic", "ceiling", "quality_at_most"
"""Names under which `TrialOutcome.learnt` of a partial trial has the fields of `Cut`."""
FALLS = 2
"""Falls of throughput in a row, each beyond noise, after which harder levels are left out."""


@dataclass(frozen=True)
class Cut:
    """Why a launch ends before its ladder does.

    Attributes:
        reason: one line.
        optimistic: level that was not driven → the best it may have been.
        ceiling, quality: of `ToBeat`.
    """

    reason: str
    optimistic: dict[str, Bound]
    ceiling: tuple[float, ...] = ()
    quality: float | None = None

    def learnt(self) -> dict[str, Any]:
        """As the journal keeps it, for `sweeper.search.objective`."""
        told: dict[str, Any] = {OPTIMISTIC: self.optimistic, CEILING: list(self.ceiling)}
        return told if self.quality is None else {**told, QUALITY_AT_MOST: self.quality}


@dataclass
class Course:
    """The levels of one launch, in their order.

    Attributes:
        load: the configured ladder.
        to_beat: None drives the whole ladder as configured.
        cut: why the launch ended early, None if it did not.
        skipped: level → why it was left out.
    """

    load: LoadConfig
    to_beat: ToBeat | None = None
    cut: Cut | None = None
    skipped: dict[str, str] = field(default_factory=dict)

    def next(self, seen: Sequence[Seen], points: Sequence[Point]) -> LoadLevel | None:
        """The next level to drive, None at the end.

        Args:
            seen: one entry a level that was driven.
            points: of the same levels.
        """
        goal = self.to_beat
        if goal is None or self.load.levels != "given":
            return next_level(self.load, seen)
        driven = {point.level for point in points}
        left = [level for level in given_levels(self.load) if level.name not in driven]
        if not points:
            return next((level for level in left if level.name == goal.first), left[0])
        for level in left:
            reason = needless(level, points, goal)
            if reason is not None:
                self.skipped.setdefault(level.name, reason)
        left = [level for level in left if level.name not in self.skipped]
        if not left:
            return None
        self.cut = hopeless(points, [level.name for level in left], goal)
        return None if self.cut is not None else self._most_contested(left, points, goal)

    @staticmethod
    def _most_contested(
        left: Sequence[LoadLevel], points: Sequence[Point], goal: ToBeat
    ) -> LoadLevel:
        """The level that may add most where it decides; the easiest where nothing is at stake."""
        if not goal.may_cut or not _is_beaten(points, goal):
            return left[0]
        return max(left, key=lambda level: _gain(bound(points, level.name, goal), goal))


def hopeless(points: Sequence[Point], left: Sequence[str], goal: ToBeat) -> Cut | None:
    """Why nothing that is left can make a launch matter, None if something may.

    Args:
        points: of the levels driven so far.
        left: names of the levels that would be driven yet.
        goal: what to beat.
    """
    if not goal.may_cut or not goal.rivals or not all(point.valid for point in points):
        return None
    if not _is_beaten(points, goal):
        return None
    measured = {point.level: _figures(point, goal) for point in points}
    open_ = {name: bound(points, name, goal) for name in left if name in goal.levels}
    hopes = [measured[name] for name in goal.levels if name in measured] + list(open_.values())
    if any(_gain(hope, goal) > goal.margin for hope in hopes):
        return None
    at = ", ".join(point.level for point in points)
    behind = ", ".join(_behind(points[0], goal))
    return Cut(
        f"cut after {at}: {behind} than what is known, and no level left can beat that "
        f"beyond noise ({math.expm1(goal.margin):.1%})",
        open_,
        goal.ceiling,
        goal.quality,
    )


def needless(level: LoadLevel, points: Sequence[Point], goal: ToBeat) -> str | None:
    """Why a level cannot add anything to a launch, None if it may."""
    if not goal.may_skip or level.name not in goal.levels:
        return None
    hardness = pressure(level.asked())
    easier = sorted(
        (p for p in points if p.valid and pressure(p.load) < hardness),
        key=lambda point: pressure(point.load),
    )
    for point in easier:
        for metric, limit in goal.limits.items():
            value = point.metrics.get(metric)
            if value is not None and _low(point, metric) > limit * math.exp(goal.margin):
                return (
                    f"{metric} is {value:.4g} at {point.level} already, beyond the limit of "
                    f"{limit:g}"
                )
    return _falling(easier, goal)


def bound(points: Sequence[Point], level: str, goal: ToBeat) -> Bound:
    """The best that a level may show, from the levels that were driven.

    Returns:
        Metric → value. A metric without a bound is absent.
    """
    found: Bound = {}
    signs = {axis.metric: axis.sign for axis in goal.axes} | dict.fromkeys(goal.limits, -1)
    for metric, sign in signs.items():
        bounds = []
        for point in points:
            value = point.metrics.get(metric)
            change = goal.growth.get(point.level, {}).get(level, {}).get(metric)
            if value is not None and value > 0 and change is not None:
                bounds.append(value * math.exp(change + sign * goal.margin))
        if bounds:
            found[metric] = min(bounds) if sign > 0 else max(bounds)
    return found


def _gain(hope: Bound, goal: ToBeat) -> float:
    """By how much a level may beat all rivals: the log of a ratio; 0 or less if it cannot.

    It is what the best rival would have to gain on every objective at once to be as good.
    """
    if any(hope.get(metric, 0.0) > limit for metric, limit in goal.limits.items()):
        return -math.inf
    if any(axis.metric not in hope or hope[axis.metric] <= 0 for axis in goal.axes):
        return math.inf
    rivals = [rival for rival in goal.rivals if _quality_holds(rival, goal)]
    return min((_ahead(hope, rival, goal) for rival in rivals), default=math.inf)


def _ahead(hope: Bound, rival: Rival, goal: ToBeat) -> float:
    return max(
        axis.sign * math.log(hope[axis.metric] / value)
        for axis, value in zip(goal.axes, rival.values, strict=True)
    )


def _is_beaten(points: Sequence[Point], goal: ToBeat) -> bool:
    """Whether the first level lost against a rival on every objective, beyond noise of both."""
    first = points[0]
    optimistic: Bound = {}
    for axis in goal.axes:
        value = first.metrics.get(axis.metric)
        if value is None or value <= 0:
            return False
        low, high = first.intervals.get(axis.metric, (value, value))
        end = high if axis.sign > 0 else low
        noisy = value * math.exp(axis.sign * 2 * goal.margin)
        optimistic[axis.metric] = max(end, noisy) if axis.sign > 0 else min(end, noisy)
    return _gain(optimistic, _without_limits(goal)) <= 0 or _misses(first, goal)


def _misses(point: Point, goal: ToBeat) -> bool:
    """Whether a point breaks a promise, beyond noise."""
    return any(
        _low(point, metric) > limit * math.exp(2 * goal.margin)
        for metric, limit in goal.limits.items()
        if metric in point.metrics
    )


def _falling(easier: Sequence[Point], goal: ToBeat) -> str | None:
    """Throughput falls, and latency grows, over the last levels: harder ones are dominated."""
    metric = next((axis.metric for axis in goal.axes if axis.sign > 0), None)
    if metric is None or len(easier) <= FALLS:
        return None
    last = easier[-FALLS - 1 :]
    figures = [(point.metrics.get(metric), _latencies(point, goal)) for point in last]
    for (before, sooner), (after, later) in pairwise(figures):
        if before is None or after is None or after > before * math.exp(-goal.margin):
            return None
        if any(b > a for b, a in zip(sooner, later, strict=True)):
            return None
    return f"throughput has fallen at {last[-2].level} and again at {last[-1].level}"


def _latencies(point: Point, goal: ToBeat) -> list[float]:
    return [point.metrics.get(axis.metric, math.inf) for axis in goal.axes if axis.sign < 0]


def _quality_holds(rival: Rival, goal: ToBeat) -> bool:
    if goal.quality is None:
        return True
    return rival.quality is not None and rival.quality >= goal.quality


def _figures(point: Point, goal: ToBeat) -> Bound:
    names = [*(axis.metric for axis in goal.axes), *goal.limits]
    return {name: point.metrics[name] for name in names if name in point.metrics}


def _low(point: Point, metric: str) -> float:
    low, _ = point.intervals.get(metric, (point.metrics[metric], 0.0))
    return min(low, point.metrics[metric])


def _without_limits(goal: ToBeat) -> ToBeat:
    return ToBeat(goal.axes, goal.rivals, goal.levels, goal.first, {}, goal.margin, goal.quality)


def _behind(point: Point, goal: ToBeat) -> list[str]:
    """How far the first level stays behind the rival that it comes nearest to, axis by axis."""
    hope = _figures(point, goal)
    rivals = [rival for rival in goal.rivals if _quality_holds(rival, goal)]
    nearest = min(rivals, key=lambda rival: _ahead(hope, rival, goal))
    words = []
    for axis, value in zip(goal.axes, nearest.values, strict=True):
        share = hope[axis.metric] / value - 1.0
        words.append(f"{axis.metric} {share:+.0%}")
    return words
