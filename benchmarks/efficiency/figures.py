"""From studies to figures: medians, their intervals, ratios against random, and losses. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np
from numpy.typing import NDArray

from benchmarks.efficiency.policies import RANDOM
from benchmarks.efficiency.runs import Record

Floats = NDArray[np.float64]

DRAWS = 2000
LEVEL = 95.0
LAUNCHES, TIME = "launches", "virtual_s"


@dataclass(frozen=True)
class Spread:
    """A median and its 95 % bootstrap interval; a study that never came so far counts as infinite.

    Attributes:
        at: the median; inf if more than half never came so far.
        low, high: of the interval.
    """

    at: float
    low: float
    high: float


@dataclass(frozen=True)
class Cell:
    """One policy on one problem.

    Attributes:
        own: what it needed.
        ratio: that over what random needed, median over median. A study of random that never came
            so far counts as if it had with its last launch, so that the ratio is an upper bound.
            None for random itself, and if neither came so far in more than half of its studies.
    """

    own: Spread
    ratio: Spread | None


def needed(records: Iterable[Record], fraction: float, unit: str) -> list[float]:
    """What each study needed to come so far; inf where it did not."""
    told = (getattr(record, unit)[str(fraction)] for record in records)
    return [float("inf") if value is None else float(value) for value in told]


def at_least(records: Sequence[Record], fraction: float, unit: str) -> list[float]:
    """The same, and all that was spent where a study did not come so far."""
    spent = [record.total if unit == LAUNCHES else record.total_s for record in records]
    return [min(pair) for pair in zip(needed(records, fraction, unit), spent, strict=True)]


def spread(values: Sequence[float]) -> Spread:
    """Median and interval."""
    drawn = _medians(values, _chance(len(values)))
    return Spread(median(values), *_interval(drawn))


def ratio(own: Sequence[float], random: Sequence[float]) -> Spread:
    """Ratio of medians and its interval.

    Args:
        own: inf where a study did not come so far.
        random: finite.
    """
    chance = _chance(len(own) * 1000 + len(random))
    drawn = _medians(own, chance) / _medians(random, chance)
    return Spread(median(own) / median(random), *_interval(drawn))


def cells(
    records: Sequence[Record], kind: str, fraction: float, unit: str = LAUNCHES
) -> dict[tuple[str, str], Cell]:
    """(problem, policy) → what it needed."""
    groups: dict[tuple[str, str], list[Record]] = {}
    for record in records:
        if record.kind == kind:
            groups.setdefault((record.problem, record.policy), []).append(record)
    found = {}
    for (problem, policy), own in groups.items():
        control = groups.get((problem, RANDOM.name), [])
        values = needed(own, fraction, unit)
        against = None
        came = math.isfinite(median(values)) or _came(control, fraction, unit)
        if control and policy != RANDOM.name and came:
            against = ratio(values, at_least(control, fraction, unit))
        found[problem, policy] = Cell(spread(values), against)
    return found


def over_problems(ratios: Sequence[float]) -> Spread | None:
    """Median over problems and its interval, problems drawn anew; None without any."""
    return spread(ratios) if ratios else None


def is_loss(cell: Cell) -> bool:
    """Worse than random by more than noise: the whole interval lies above 1."""
    return cell.ratio is not None and cell.ratio.low > 1.0


def _chance(seed: int) -> np.random.Generator:
    return np.random.default_rng(seed)


def _medians(values: Sequence[float], chance: np.random.Generator) -> Floats:
    known = np.asarray(values, dtype=float)
    drawn = np.sort(known[chance.integers(0, len(known), (DRAWS, len(known)))], axis=1)
    # The mean of two middle ones, one of them infinite, is infinite; `np.median` would warn.
    middle: Floats = (drawn[:, (len(known) - 1) // 2] + drawn[:, len(known) // 2]) / 2
    return middle


def _came(records: Sequence[Record], fraction: float, unit: str) -> bool:
    return bool(records) and math.isfinite(median(needed(records, fraction, unit)))


def _interval(drawn: Floats) -> tuple[float, float]:
    tail = (100.0 - LEVEL) / 2
    low, high = np.percentile(drawn, [tail, 100.0 - tail], method="nearest")
    return float(low), float(high)
