"""Two sides put together: conditions, results, verdict; and the same as plain data. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sweeper.errors import ConfigError
from sweeper.report.comparison.checklist import checklist
from sweeper.report.comparison.conditions import Row
from sweeper.report.comparison.quality import compare_quality
from sweeper.report.comparison.results import LevelResults, Result, compare_levels
from sweeper.report.comparison.side import Side
from sweeper.report.comparison.verdict import Verdict, decide


@dataclass(frozen=True)
class Comparison:
    """Everything that is said of two sides.

    Attributes:
        a, b: what is compared.
        conditions: the checklist.
        levels: results at the levels both have, in a's order.
        quality: of the output, by its name; None if neither side has one.
        only_a, only_b: names of the levels that one side alone has.
        verdict: whether the comparison is fair.
    """

    a: Side
    b: Side
    conditions: tuple[Row, ...]
    levels: tuple[LevelResults, ...]
    quality: Result | None
    only_a: tuple[str, ...]
    only_b: tuple[str, ...]
    verdict: Verdict


def compare(a: Side, b: Side, level: str | None = None) -> Comparison:
    """Compare two sides.

    Args:
        a, b: the sides; ratios are b / a.
        level: only this load level; a bare number is that concurrency.

    Raises:
        ConfigError: `level` is none that both have.
    """
    ours, theirs = [x.name for x in a.levels], [x.name for x in b.levels]
    common = [name for name in ours if name in theirs]
    if level is not None:
        wanted = f"concurrency {level}" if level.isdigit() else level
        if wanted not in common:
            raise ConfigError(
                f"load={level}: not a level that both sides have",
                f"a has {_listed(ours)}; b has {_listed(theirs)}",
            )
        common = [wanted]
    rows = checklist(a, b, common)
    return Comparison(
        a,
        b,
        tuple(rows),
        tuple(compare_levels(a, b, common)),
        compare_quality(a, b),
        tuple(name for name in ours if name not in theirs),
        tuple(name for name in theirs if name not in ours),
        decide(rows, a, b),
    )


def _listed(names: list[str]) -> str:
    return ", ".join(names) or "none"


def to_dict(found: Comparison) -> dict[str, Any]:
    """Plain data for JSON, with all that the text shows."""
    verdict = found.verdict
    return {
        "a": _side(found.a),
        "b": _side(found.b),
        "conditions": [
            {
                "condition": row.condition.key,
                "label": row.condition.label,
                "a": row.a,
                "b": row.b,
                "status": str(row.status),
                "weight": str(row.condition.weight),
            }
            for row in found.conditions
        ],
        "levels": [
            {
                "level": level.name,
                "a_n": level.a_n,
                "b_n": level.b_n,
                "faults": list(level.faults),
                "results": [_result(result) for result in level.results],
            }
            for level in found.levels
        ],
        "quality": None if found.quality is None else _result(found.quality),
        "levels_only_a": list(found.only_a),
        "levels_only_b": list(found.only_b),
        "verdict": {
            "fairness": str(verdict.fairness),
            "sentence": verdict.sentence,
            "reasons": list(verdict.reasons),
            "unknown": list(verdict.unknown),
            "meant": list(verdict.meant),
            "noted": list(verdict.noted),
        },
    }


def _side(side: Side) -> dict[str, Any]:
    return {
        "label": side.label,
        "what": side.what,
        "foreign": side.foreign,
        "deployment": None if side.deployment is None else dict(side.deployment),
        "notes": list(side.notes),
    }


def _result(result: Result) -> dict[str, Any]:
    values = {
        "metric": result.metric.name,
        "label": result.metric.label,
        "group": result.metric.group,
        "more_is_better": result.metric.more_is_better,
        "a": result.a,
        "b": result.b,
        "a_interval": result.a_interval,
        "b_interval": result.b_interval,
        "ratio": result.ratio,
        "ratio_interval": result.ratio_interval,
        "change": result.change,
        "change_interval": result.change_interval,
        "judgement": str(result.judgement),
        "word": result.word,
    }
    return {name: value for name, value in values.items() if value is not None}
