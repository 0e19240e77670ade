"""Which point is recommended: by what confirmed it, else by what the search measured. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from sweeper.errors import NoFeasibleTrialError
from sweeper.metrics.noise import Noise
from sweeper.pareto.compare import gain
from sweeper.pareto.confirmed import INCONCLUSIVE, Judgement, judge_point
from sweeper.pareto.recommendation import asked_sentence, noise_sentence, tie_sentence
from sweeper.pareto.repeats import BASELINE, noise_of_rows
from sweeper.pareto.rule import Row, Rule, lasting, misses


@dataclass(frozen=True)
class Choice:
    """What was chosen, and on what grounds.

    Attributes:
        point: the row.
        why: it and not what the rule ranks first; empty if it is that.
        confirmation: what fresh launches said of it.
        ties: points of other deployments that noise does not tell from it.
    """

    point: Row
    why: str = ""
    confirmation: Judgement | None = None
    ties: tuple[Row, ...] = ()


def asked_for(number: int, rows: list[Row], rule: Rule, judged: Sequence[Judgement]) -> Choice:
    own = [row for row in rows if row["trial"] == number]
    if not own:
        raise NoFeasibleTrialError(
            f"trial {number} has no valid operating point",
            "see its verdict with `python -m sweeper status study=NAME`",
        )
    own = lasting(own)
    chosen = rule.best(own) or rule.nearest(own)
    found = _judgement_of(chosen, judged) or judge_point(chosen, rows, rule)
    return Choice(chosen, asked_sentence(chosen), found)


def settled(rows: list[Row], rule: Rule, judged: Sequence[Judgement]) -> Choice | None:
    """The choice where confirming launches came to a verdict; None where they did not.

    Of several that are better and cannot be told from one another the cheapest is taken.
    """
    eligible = [(_row_of(rows, one), one) for one in judged if one.is_eligible]
    best = rule.best([row for row, _ in eligible])
    if best is not None:
        equals = _equals(best, [row for row, _ in eligible], rule, noise_of_rows(rows))
        chosen = min([best, *equals], key=_cost)
        found = next(one for row, one in eligible if row is chosen)
        return Choice(chosen, "", found, _others(chosen, [best, *equals]))
    if not judged or any(one.verdict == INCONCLUSIVE for one in judged):
        return None
    own = baseline_rows_of(rows)
    chosen_own = rule.best(lasting(own)) if rule.slo else at_level(own, judged[0].baseline_level)
    return None if chosen_own is None else Choice(chosen_own, "", judged[0])


def _row_of(rows: Sequence[Row], one: Judgement) -> Row:
    return next(row for row in rows if (row["trial"], row["level"]) == (one.trial, one.level))


def _equals(best: Row, rows: Sequence[Row], rule: Rule, noise: Noise) -> list[Row]:
    """Points that keep the promise too and cannot be told from the best of them."""
    return [
        row
        for row in rows
        if row is not best and not misses(row, rule.slo) and _are_equal(row, best, rule, noise)
    ]


def _others(chosen: Row, equals: Sequence[Row]) -> tuple[Row, ...]:
    """Those of other deployments, one each."""
    known = {row["deployment_hash"]: row for row in equals}
    known.pop(chosen["deployment_hash"], None)
    return tuple(known.values())


def _are_equal(row: Row, other: Row, rule: Rule, noise: Noise) -> bool:
    """Whether two points cannot be told apart by what the rule ranks by."""
    if row.get("quality_settled") != other.get("quality_settled"):
        return False
    launches = (int(row["launches"]), int(other["launches"]))
    return noise.is_tie(row, other, (rule.throughput, rule.latency), launches)


def _is_the_same(row: Row, other: Row, rule: Rule) -> bool:
    """Whether two points have the same figures to the last digit, as tables and simulators give."""
    names = ("level", rule.throughput, rule.latency, "quality_settled")
    return all(row.get(name) == other.get(name) for name in names)


def _cost(row: Row) -> tuple[float, int, int]:
    """What a deployment takes: devices, then settings that differ from the defaults."""
    deployment = row["deployment"]
    sizes = ("tensor_parallel_size", "pipeline_parallel_size", "data_parallel_size")
    devices = math.prod(float(deployment.get(name, 1)) for name in sizes)
    return devices, len(deployment), int(row["trial"])


def searched(rows: list[Row], rule: Rule, judged: Sequence[Judgement]) -> Choice:
    """The choice by what the search measured."""
    baseline_rows = baseline_rows_of(rows)
    candidates = lasting(rows)
    best = rule.best(candidates)
    if best is None:
        return Choice(rule.nearest(candidates))
    rival = (
        rule.best(lasting(baseline_rows)) if rule.slo else at_level(baseline_rows, best["level"])
    )
    best = min((row for row in candidates if _is_the_same(row, best, rule)), key=_cost)
    noise = noise_of_rows(rows)
    tie = _tie(best, rival, rule, noise)
    chosen = rival if tie and rival is not None else best
    found = _judgement_of(best, judged) or (None if tie else _shown_better(best, rows, rule))
    if best["kind"] == BASELINE and judged:
        found = judged[0]
    equals = [best, *_equals(best, candidates, rule, noise)]
    return Choice(chosen, tie, found, _others(chosen, equals))


def _shown_better(row: Row, rows: list[Row], rule: Rule) -> Judgement | None:
    """What confirmed a point under another rule than this one; None if nothing did."""
    found = judge_point(row, rows, rule)
    return found if found is not None and found.is_eligible else None


def _judgement_of(row: Row, judged: Sequence[Judgement]) -> Judgement | None:
    key = (row["trial"], row["level"])
    return next((one for one in judged if (one.trial, one.level) == key), None)


def _tie(best: Row, rival: Row | None, rule: Rule, noise: Noise) -> str:
    """Why the baseline is as good as `best`; empty if it is not."""
    if rival is None or best["deployment_hash"] == rival["deployment_hash"]:
        return ""
    faster = gain(best, rival, rule.throughput)
    sooner = gain(best, rival, rule.latency)
    if faster is None or sooner is None:
        return ""
    if faster.enclosed and sooner.enclosed:
        return tie_sentence(best, faster)
    return noise_sentence(best, faster) if _are_equal(best, rival, rule, noise) else ""


def baseline_rows_of(rows: Sequence[Row]) -> list[Row]:
    """The points of the engine's defaults."""
    return [row for row in rows if row["kind"] == BASELINE]


def at_level(rows: Sequence[Row], level: str) -> Row | None:
    """The first point at a load level."""
    return next((row for row in rows if row["level"] == level), None)
