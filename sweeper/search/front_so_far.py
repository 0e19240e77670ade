"""The non-dominated points of a study, kept up to date one point at a time. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from sweeper.trial.outcome import Point
from sweeper.trial.to_beat import Axis, Rival


@dataclass(frozen=True)
class Entry:
    """A point of the front.

    Attributes:
        rival: its values.
        trial: number of its trial.
        point: itself.
        quality: what its output ranks by, None if it was not judged.
    """

    rival: Rival
    trial: int
    point: Point
    quality: float | None


@dataclass
class FrontSoFar:
    """Points that no other is as good as, on every axis and in quality.

    Attributes:
        axes: what is compared, apart from quality.
        entries: the front, in the order in which it was found.
    """

    axes: tuple[Axis, ...]
    entries: list[Entry] = field(default_factory=list)

    def add(
        self, trial: int, point: Point, quality: float | None, *, rank_quality: bool, margin: float
    ) -> bool:
        """Take a point in.

        Args:
            trial, point, quality: see `Entry`.
            rank_quality: whether quality is an objective.
            margin: noise, as the log of a ratio.

        Returns:
            True if it beats the front so far beyond noise. A point without one of the metrics, or
            with one that is not above 0, is left out.
        """
        values = tuple(point.metrics.get(axis.metric, 0.0) for axis in self.axes)
        if not all(value > 0 for value in values):
            return False
        rival = Rival(values, quality if rank_quality else None)
        gained = not any(self.beats(entry.rival, rival, -margin) for entry in self.entries)
        if not any(self.beats(entry.rival, rival) for entry in self.entries):
            self.entries = [e for e in self.entries if not self.beats(rival, e.rival)]
            self.entries.append(Entry(rival, trial, point, quality))
        return gained

    def beats(self, one: Rival, other: Rival, by: float = 0.0) -> bool:
        """Whether `one` is better than `other` by so much (a log ratio) on every axis.

        In quality, which comes without its noise, as good is enough.
        """
        if other.quality is not None and (one.quality is None or one.quality < other.quality):
            return False
        return all(
            axis.sign * math.log(ours / theirs) >= by
            for axis, ours, theirs in zip(self.axes, one.values, other.values, strict=True)
        )


def pareto_axes(throughput: str, latency: str) -> tuple[Axis, ...]:
    """Throughput up, latency down."""
    return (Axis(throughput, 1), Axis(latency, -1))


def plane_values(entries: Sequence[Entry]) -> list[tuple[float, float]]:
    """(throughput, latency) of the entries of a front with those two axes."""
    return [(entry.rival.values[0], entry.rival.values[1]) for entry in entries]
