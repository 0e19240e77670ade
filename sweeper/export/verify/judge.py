"""Whether a started export keeps what was promised, figure by figure. Pure.

Two things are promised: the figures of the operating point, and the limits that it was chosen for.

    figure   no worse than promised, or worse within the noise      kept
             worse beyond the noise                                 not kept
    limit    every launch keeps it                                  kept
             beyond it by more than the noise                       not kept
    either   nothing tells the noise, or it hides even a factor 2   cannot tell

Noise is what launches of one deployment differ by (`sweeper.metrics.noise`), from the study's
repeats and those of the verification. Where neither launched anything twice, the intervals inside
the launches stand in for it, but only to acquit: a launch is slow or fast as a whole, so a loss
beyond them proves nothing unless it is twofold. A promise has several figures and one verdict, so
margins are widened to let a good deployment fail one of all of them in 5 of 100 verifications
(Bonferroni).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from sweeper.metrics.noise import CONFIDENCE, WITHOUT_ERROR, Noise
from sweeper.pareto.rule import Limits, figure_of, is_floor, metric_of
from sweeper.pareto.select import LATENCIES

Row = Mapping[str, Any]

FIGURES = ("output_tokens_per_s", LATENCIES[0], "ttft_p95_ms", "tpot_p95_ms")
"""What the README promises of an operating point."""
_HOPELESS = math.log(2.0)
"""Noise, on the logarithm, that would hide even a factor of two; and a loss that no noise is."""


class Status(StrEnum):
    """Whether something promised is kept."""

    KEPT = "kept"
    NOT_KEPT = "not kept"
    CANNOT_TELL = "cannot tell"


@dataclass(frozen=True)
class Figure:
    """A promised figure beside the verified one.

    Attributes:
        metric: name with unit.
        promised, verified: None where the started server gave none.
        promised_interval, verified_interval: 95 %, None where there is none.
        change_percent: of verified against promised; positive is more.
        margin_percent: what noise may make of it; None where nothing tells.
        status, why: whether it is kept, and why not if it is not.
    """

    metric: str
    promised: float
    verified: float | None
    promised_interval: tuple[float, float] | None
    verified_interval: tuple[float, float] | None
    change_percent: float | None
    margin_percent: float | None
    status: Status
    why: str = ""


@dataclass(frozen=True)
class LimitCheck:
    """A limit that the point was chosen for.

    Attributes:
        name: as in `SloConfig`.
        limit: its value.
        verified: the worst of the launches; None if it was not measured.
        status, why: whether it is kept.
    """

    name: str
    limit: float
    verified: float | None
    status: Status
    why: str = ""


def judge(
    promised: Row, verified: Row, slo: Limits, noise: Noise
) -> tuple[tuple[Figure, ...], tuple[LimitCheck, ...]]:
    """Everything that was promised of an operating point.

    Args:
        promised: its row of `points_frame`, see `row_dict`.
        verified: the started server's figures as such a row, ``repeats`` where it was launched
            more than once.
        slo: limits that were promised; the quality's is judged if `verified` has one.
        noise: between launches.
    """
    named = dict.fromkeys([*FIGURES, *(metric_of(name) for name in slo)])
    metrics = [name for name in named if name in promised and name != "quality"]
    confidence = 1 - 2 * (1 - CONFIDENCE) / max(2, len(metrics) + len(slo))
    figures = tuple(_figure(name, promised, verified, noise, confidence) for name in metrics)
    limits = tuple(_limit(name, slo[name], verified, noise, confidence) for name in slo)
    return figures, limits


def overall(statuses: Sequence[Status]) -> Status:
    """Of all parts: kept only if each is."""
    for status in (Status.NOT_KEPT, Status.CANNOT_TELL):
        if status in statuses:
            return status
    return Status.KEPT


def _figure(metric: str, promised: Row, verified: Row, noise: Noise, confidence: float) -> Figure:
    before, now = float(promised[metric]), verified.get(metric)
    status, why, margin = Status.CANNOT_TELL, "it was not measured", None
    if now is not None:
        launches = (int(verified.get("launches", 1)), int(promised.get("launches", 1)))
        margin = noise.margin(metric, launches, confidence)
        status, why = _compared(metric, promised, verified, margin)
    return Figure(
        metric=metric,
        promised=before,
        verified=now,
        promised_interval=_interval(promised, metric),
        verified_interval=_interval(verified, metric),
        change_percent=None if now is None or before <= 0 else (now / before - 1) * 100,
        margin_percent=None if margin is None else math.expm1(margin) * 100,
        status=status,
        why=why,
    )


def _compared(
    metric: str, promised: Row, verified: Row, margin: float | None
) -> tuple[Status, str]:
    before, now = float(promised[metric]), float(verified[metric])
    if before <= 0 or now <= 0:
        worse = now > before if _less_is_better(metric) else now < before
        return (Status.CANNOT_TELL, "it has no multiples") if worse else (Status.KEPT, "")
    loss = math.log(now / before) * (1 if _less_is_better(metric) else -1)
    if loss <= 0:
        return Status.KEPT, ""
    if margin is None:
        return _without_noise(loss, [_half_width(promised, metric), _half_width(verified, metric)])
    if loss > margin:
        return Status.NOT_KEPT, "worse by more than launches differ"
    if margin > _HOPELESS:
        return Status.CANNOT_TELL, "launches differ so much that even half the speed may be noise"
    return Status.KEPT, ""


def _without_noise(loss: float, half_widths: Sequence[float | None]) -> tuple[Status, str]:
    """A loss where no deployment was ever launched twice."""
    if loss > _HOPELESS:
        return Status.NOT_KEPT, "worse by more than a factor of 2"
    known = [width for width in half_widths if width is not None]
    within = math.hypot(*known) if len(known) == len(half_widths) else 0.0
    if loss <= within:
        return Status.KEPT, ""
    return Status.CANNOT_TELL, "worse, and nothing tells how much two launches differ"


def _limit(name: str, limit: float, verified: Row, noise: Noise, confidence: float) -> LimitCheck:
    value = figure_of(verified, name)
    if value is None:
        return LimitCheck(name, limit, None, Status.CANNOT_TELL, "it was not measured")
    metric, sign = metric_of(name), -1 if is_floor(name) else 1
    if value * sign <= limit * sign:
        return LimitCheck(name, limit, value, Status.KEPT)
    mean = float(verified.get(metric, value))
    margin = noise.margin(metric, (int(verified.get("launches", 1)), WITHOUT_ERROR), confidence)
    if metric == "quality":
        error = verified.get("quality_se")
        within = error is None or (limit - value) <= 1.96 * error
    elif mean <= 0 or limit <= 0:
        within = False
    else:
        beyond = math.log(mean / limit) * sign
        width = margin if margin is not None else _half_width(verified, metric)
        within = width is None or beyond <= width
    if within:
        return LimitCheck(name, limit, value, Status.CANNOT_TELL, "broken, but within the noise")
    side = "below" if is_floor(name) else "beyond"
    return LimitCheck(name, limit, value, Status.NOT_KEPT, f"{side} its limit")


def _less_is_better(metric: str) -> bool:
    return metric.endswith("_ms")


def _interval(row: Row, metric: str) -> tuple[float, float] | None:
    low, high = row.get(f"{metric}.low"), row.get(f"{metric}.high")
    return None if low is None or high is None else (float(low), float(high))


def _half_width(row: Row, metric: str) -> float | None:
    """Of an interval, on the logarithm, its wider side; None if there is none."""
    interval, value = _interval(row, metric), row.get(metric)
    if interval is None or not value or interval[0] <= 0:
        return None
    return max(math.log(interval[1] / value), math.log(value / interval[0]))
