"""Figures of a trial, and their multiples of the baseline's. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from sweeper.report.comparison.results import ratio_interval
from sweeper.report.trade.storage import as_split, otherwise_alike, under_one_limit
from sweeper.trial.outcome import Point, TrialOutcome

KV_TOKENS, MODEL_MEMORY = "kv_cache_tokens", "model_memory_gib"


@dataclass(frozen=True)
class Figure:
    """A figure and its multiple of the baseline's.

    Attributes:
        value: with the metric's unit.
        interval: 95 %, None if it has none.
        ratio: over the baseline's; None where that is not known or may not be compared.
        ratio_interval: see `sweeper.report.comparison.results`.
    """

    value: float
    interval: Sequence[float] | None = None
    ratio: float | None = None
    ratio_interval: Sequence[float] | None = None


def over(value: float | None, base: float | None) -> Figure | None:
    """A figure without intervals; None if there is no value."""
    if value is None:
        return None
    return Figure(value, ratio=value / base if base else None)


def speed(metric: str, point: Point | None, base: Point | None) -> Figure | None:
    """A metric of a point; None if it was not measured there."""
    if point is None or metric not in point.metrics:
        return None
    value, interval = point.metrics[metric], point.intervals.get(metric)
    if base is None or not base.metrics.get(metric):
        return Figure(value, interval)
    known = None if base is point else ratio_interval(base.intervals.get(metric), interval)
    return Figure(value, interval, value / base.metrics[metric], known)


def model_memory(best: TrialOutcome, baseline: TrialOutcome | None) -> Figure | None:
    """Of the loaded model on a device; a multiple where it is split over as many."""
    comparable = baseline is not None and as_split(best, baseline)
    return over(_told(best, MODEL_MEMORY), _told(baseline, MODEL_MEMORY) if comparable else None)


def kv_room(group: Sequence[TrialOutcome], plain: Sequence[TrialOutcome]) -> Figure | None:
    """Tokens that the KV cache has room for, and their multiple under the same memory limit.

    Of the launches that may be compared, two that differ in nothing but storage go first.

    Args:
        group: launches that store in one way, the one that is shown first.
        plain: launches that store as the baseline does, the baseline first.
    """
    told = [outcome for outcome in group if _told(outcome, KV_TOKENS) is not None]
    known = [outcome for outcome in plain if _told(outcome, KV_TOKENS) is not None]
    pairs = [(ours, base) for ours in told for base in known if under_one_limit(ours, base)]
    if pairs:
        ours, base = max(pairs, key=lambda pair: otherwise_alike(*pair))
        return over(_told(ours, KV_TOKENS), _told(base, KV_TOKENS))
    return over(_told(told[0], KV_TOKENS), None) if told else None


def tells_kv_room(launches: Iterable[TrialOutcome]) -> bool:
    """Whether the engine told of any of them how much room its KV cache has."""
    return any(_told(outcome, KV_TOKENS) is not None for outcome in launches)


def positive(value: Any) -> float | None:
    """A number above 0 out of plain data, None for anything else."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number and 0 < value < float("inf") else None


def _told(outcome: TrialOutcome | None, name: str) -> float | None:
    """What the engine told of a launch, None if it did not."""
    return None if outcome is None else positive(outcome.learnt.get(name))
