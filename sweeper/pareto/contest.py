"""Which deployments are launched again to confirm them, and what of them is compared. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sweeper.load.level import SCHEDULED
from sweeper.pareto.repeats import BASELINE, as_searched
from sweeper.pareto.rule import Row, Rule, lasting

WORTH_A_LOOK = 0.9
"""A deployment that the search saw below this share of the defaults is not launched again: chosen
as the best of many it was lucky if anything."""
_MORE_LOOKS = 8
"""Deployments that are passed over, at most, in looking for those that are worth a launch."""


@dataclass(frozen=True)
class Entry:
    """A deployment that is launched again.

    Attributes:
        trial: number of the trial that it was found by.
        level: the load level at which it would be recommended.
    """

    trial: int
    level: str


@dataclass(frozen=True)
class Contest:
    """Who is launched again, and what is compared.

    Attributes:
        metric: what decides.
        lower_is_better: whether less of it is better.
        baseline_level: the load level at which the defaults are compared with.
        baseline_keeps: whether the defaults kept the promise there when they were searched.
        entries: the best first.
    """

    metric: str
    lower_is_better: bool
    baseline_level: str
    baseline_keeps: bool
    entries: tuple[Entry, ...]

    @property
    def levels(self) -> frozenset[str]:
        """Load levels that matter."""
        return frozenset({self.baseline_level, *(entry.level for entry in self.entries)})


def contest_of(rows: Sequence[Row], rule: Rule, count: int) -> Contest | None:
    """Who is to be launched again.

    With a promise each entry stands at the highest load that keeps it, and so do the defaults.
    Without one all are compared at the load of the best: there the knee of the front lies.

    Args:
        rows: of selectable points that have the rule's metrics, see `row_dict`.
        rule: the recommendation's own.
        count: how many entries at most.

    Returns:
        None if nothing is worth it, or there are no defaults to compare with.
    """
    searched = [row for row in map(as_searched, rows) if row is not None]
    own = [row for row in searched if row["kind"] == BASELINE]
    hashes = {row["deployment_hash"] for row in own}
    left = [row for row in searched if row["deployment_hash"] not in hashes]
    first = rule.best(lasting(left)) if left and own else None
    if first is None:
        return None
    kept = rule.best(lasting(own)) if rule.slo else None
    reference = kept or next((row for row in own if row["level"] == first["level"]), None)
    if reference is None:
        return None
    metric, lower = deciding(first, rule)
    entries: list[Row] = []
    best: Row | None = first
    for _ in range(count + _MORE_LOOKS):
        if best is None or len(entries) == count:
            break
        left = [row for row in left if row["deployment_hash"] != best["deployment_hash"]]
        if _is_worth_a_look(best, reference, metric, lower) or (rule.slo and kept is None):
            entries.append(best)
        among = left if rule.slo else _at(left, first["level"])
        best = rule.best(lasting(among)) if among else None
    if not entries:
        return None
    named = tuple(Entry(int(row["trial"]), str(row["level"])) for row in entries)
    return Contest(metric, lower, str(reference["level"]), kept is not None, named)


def _at(rows: Sequence[Row], level: str) -> list[Row]:
    return [row for row in rows if row["level"] == level]


def deciding(first: Mapping[str, Any], rule: Rule) -> tuple[str, bool]:
    """(metric, whether less is better): latency where it is preferred, or all else is given."""
    is_given = not rule.slo and first["load_kind"] in SCHEDULED
    by_latency = rule.preference == "latency" or is_given
    return (rule.latency, True) if by_latency else (rule.throughput, False)


def _is_worth_a_look(row: Row, reference: Row, metric: str, lower: bool) -> bool:
    ours, theirs = row.get(metric), reference.get(metric)
    if not ours or not theirs:
        return False
    share = theirs / ours if lower else ours / theirs
    return bool(share >= WORTH_A_LOOK)
