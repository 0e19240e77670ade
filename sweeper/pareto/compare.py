"""How one operating point stands against another: ratios, and gains beyond the noise."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Gain:
    """A metric of a point over the same metric of the baseline.

    Attributes:
        metric: name with unit.
        value: of the point.
        baseline: of the baseline.
        ratio: value / baseline.
        separated: True if the 95 % intervals do not overlap; False if they do, or are unknown.
        enclosed: True if one interval lies wholly inside the other.
    """

    metric: str
    value: float
    baseline: float
    ratio: float
    separated: bool
    enclosed: bool

    @property
    def percent(self) -> float:
        """Change against the baseline, in per cent; negative is less."""
        return (self.ratio - 1.0) * 100.0


def gain(point: Row, baseline: Row, metric: str) -> Gain | None:
    """Compare one metric. None if either lacks it, or the baseline's has no multiples.

    Those are zero, and what is negative: a quality that ranks by minus a figure.
    """
    if metric not in point or metric not in baseline or baseline[metric] <= 0:
        return None
    ours, theirs = _interval(point, metric), _interval(baseline, metric)
    separated = enclosed = False
    if ours and theirs:
        separated = ours[0] > theirs[1] or ours[1] < theirs[0]
        enclosed = _inside(ours, theirs) or _inside(theirs, ours)
    value, reference = float(point[metric]), float(baseline[metric])
    return Gain(metric, value, reference, value / reference, separated, enclosed)


def ratios(point: Row, baseline: Row | None, metrics: tuple[str, ...]) -> dict[str, float]:
    """Metric → point / baseline, for the metrics both have."""
    if baseline is None:
        return {}
    found = [gain(point, baseline, metric) for metric in metrics]
    return {g.metric: g.ratio for g in found if g is not None}


def interval_text(point: Row, metric: str) -> str:
    """``[low, high]`` of a metric, empty if it has no interval."""
    interval = _interval(point, metric)
    return f"[{interval[0]:.4g}, {interval[1]:.4g}]" if interval else ""


def _interval(row: Row, metric: str) -> tuple[float, float] | None:
    low, high = row.get(f"{metric}.low"), row.get(f"{metric}.high")
    return None if low is None or high is None else (float(low), float(high))


def _inside(inner: tuple[float, float], outer: tuple[float, float]) -> bool:
    return outer[0] <= inner[0] and inner[1] <= outer[1]
