"""How far the nearest point is from a promise, as a table."""

from __future__ import annotations

from sweeper.pareto.recommendation import Recommendation, distance_text
from sweeper.pareto.rule import is_floor, metric_of
from sweeper.pareto.shortfall import Shortfall
from sweeper.report.terminal import words_table
from sweeper.report.words import METRIC_LABELS, number

COLUMNS = ("limit", "asked", "there", "distance", "best of all points")


def shortfall_table(recommendation: Recommendation) -> str:
    """Every limit at the nearest miss; empty if the promise is kept."""
    rows = shortfall_rows(recommendation)
    where = f"trial {recommendation.trial} at {recommendation.level}"
    return words_table(f"the nearest miss, {where}", COLUMNS, rows) if rows else ""


def shortfall_rows(recommendation: Recommendation) -> list[list[str]]:
    """A row a limit, in the words of `COLUMNS`."""
    return [_row(one) for one in recommendation.shortfalls]


def _row(one: Shortfall) -> list[str]:
    metric = metric_of(one.name)
    return [
        METRIC_LABELS.get(metric, metric),
        f"{'at least' if is_floor(one.name) else 'at most'} {number(one.limit)}",
        "not measured" if one.value is None else number(one.value),
        _distance(one),
        _best(one),
    ]


def _distance(one: Shortfall) -> str:
    if one.is_kept:
        return "kept"
    if one.factor is None:
        return "not known" if one.value is None else "below"
    return distance_text(one.name, one.factor)


def _best(one: Shortfall) -> str:
    if one.best is None:
        return "nobody measured it"
    at = f"{number(one.best)}, trial {one.best_trial} at {one.best_level}"
    return at if one.is_within_reach else f"{at}: no point keeps this limit"
