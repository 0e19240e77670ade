"""Launches of one deployment after another: its points pooled, and the noise that they show. Pure.

What a search chose for its figures, it chose in part for luck. So where a deployment was launched
again to confirm it, those launches alone are pooled into its points; the figures that got it chosen
are kept beside them and count for nothing (the baseline's own first launch tells the noise too:
nobody chose it).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sweeper.metrics.noise import WITHOUT_ERROR, Noise
from sweeper.trial.outcome import Point, TrialOutcome
from sweeper.verdicts import Verdict

BASELINE, CONFIRM = "baseline", "confirm"
CONFIRMATION = "confirmation"
"""Key of a confirming launch's manifest: which ``block`` of launches it belongs to."""

Row = Mapping[str, Any]

_WIDEST = 100.0
"""Margins of logarithms beyond which there is no interval worth writing down."""


@dataclass(frozen=True)
class Repeat:
    """One confirming launch at one load level.

    Attributes:
        trial: its own number.
        block: the block of launches that it belongs to, counted from 1.
        point: what it measured.
    """

    trial: int
    block: int
    point: Point

    def told(self) -> dict[str, Any]:
        """As plain data for a table's row."""
        return {"trial": self.trial, "block": self.block, "metrics": dict(self.point.metrics)}


@dataclass
class Repeats:
    """What became of a trial's deployment when it was launched again.

    Attributes:
        by_level: level → its launches that measured something valid, oldest first.
        unstable: how it failed in one of them, empty if it never did. (What fails for reasons of
            its surroundings says nothing.)
        verdict: of that launch.
    """

    by_level: dict[str, list[Repeat]] = field(default_factory=dict)
    unstable: str = ""
    verdict: Verdict = Verdict.OK

    @property
    def extra_points(self) -> Iterable[tuple[str, Point]]:
        """(level, a point) of each level that was driven."""
        return ((level, found[0].point) for level, found in self.by_level.items())


def block_of(outcome: TrialOutcome) -> int:
    """The block that a confirming launch belongs to; 0 where its manifest does not tell."""
    told = outcome.manifest.get(CONFIRMATION)
    block = told.get("block") if isinstance(told, Mapping) else None
    return block if isinstance(block, int) else 0


def repeats_by_trial(latest: Iterable[TrialOutcome]) -> dict[int, Repeats]:
    """Number of a trial → what its repeats showed.

    Args:
        latest: the last attempt of each trial.
    """
    found: dict[int, Repeats] = {}
    for outcome in latest:
        if outcome.kind != CONFIRM or outcome.repeats is None:
            continue
        repeats = found.setdefault(outcome.repeats, Repeats())
        if outcome.verdict.is_config_fault and not repeats.unstable:
            repeats.verdict = outcome.verdict
            repeats.unstable = (
                f"launched again as trial {outcome.number} it ended {outcome.verdict}: "
                f"{outcome.cause}"
            )
        if outcome.verdict is Verdict.OK:
            for point in outcome.valid_points:
                repeat = Repeat(outcome.number, block_of(outcome), point)
                repeats.by_level.setdefault(point.level, []).append(repeat)
    return found


def noise_of(outcomes: Sequence[TrialOutcome], *more: Sequence[Mapping[str, float]]) -> Noise:
    """The machine's noise, from everything that was launched more than once.

    Args:
        outcomes: the last attempt of each trial.
        more: figures of further launches, one sequence a deployment at one load.
    """
    groups: dict[tuple[int, str], list[Mapping[str, float]]] = {}
    for number, repeats in repeats_by_trial(outcomes).items():
        for level, found in repeats.by_level.items():
            groups[number, level] = [repeat.point.metrics for repeat in found]
    for outcome in outcomes:
        if outcome.kind == BASELINE and outcome.verdict is Verdict.OK:
            for point in outcome.valid_points:
                groups.setdefault((outcome.number, point.level), []).append(point.metrics)
    return Noise.from_repeats([*groups.values(), *more])


def noise_of_rows(rows: Iterable[Row]) -> Noise:
    """The same from a table's rows, see `sweeper.pareto.points.row_dict`."""
    groups = []
    for row in rows:
        told = [one["metrics"] for one in row.get("repeats", ())]
        if told and row["kind"] == BASELINE and (searched := row.get("searched")):
            told.append({name: searched[name] for name in told[0] if name in searched})
        groups.append(told)
    return Noise.from_repeats(groups)


def pooled(found: Sequence[Repeat], noise: Noise) -> dict[str, Any]:
    """The columns of a row that several launches make together.

    Metrics are geometric means (arithmetic where one is not positive) of those that every launch
    has; intervals say how far the mean of so many launches may be off, by the noise of the machine.
    """
    points = [repeat.point for repeat in found]
    told: dict[str, Any] = {
        "launches": len(points),
        "repeats": [repeat.told() for repeat in found],
        "n": sum(point.n for point in points),
        "valid": True,
        "saturated": any(point.load.get("saturated", False) for point in points),
        "low_confidence": " ".join(
            dict.fromkeys(name for point in points for name in point.low_confidence)
        ),
    }
    for metric in points[0].metrics:
        values = [point.metrics[metric] for point in points if metric in point.metrics]
        if len(values) < len(points):
            continue
        mean = _mean(values)
        told[metric] = mean
        margin = noise.margin(metric, (len(values), WITHOUT_ERROR)) if mean > 0 else None
        if margin is not None and margin < _WIDEST:
            told[f"{metric}.low"], told[f"{metric}.high"] = (
                mean * math.exp(-margin),
                mean * math.exp(margin),
            )
    return told


def _mean(values: Sequence[float]) -> float:
    if all(value > 0 for value in values):
        return math.exp(math.fsum(map(math.log, values)) / len(values))
    return math.fsum(values) / len(values)


def as_searched(row: Row) -> dict[str, Any] | None:
    """A row with the figures by which the search knew it; None if only repeats were driven there.

    Args:
        row: see `sweeper.pareto.points.row_dict`.
    """
    if "repeats" not in row:
        return dict(row)
    searched = row.get("searched")
    if not isinstance(searched, Mapping):
        return None
    kept = {name: value for name, value in row.items() if name not in {"repeats", "searched"}}
    return {**kept, **searched, "launches": 1}
