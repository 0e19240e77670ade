"""What a mark says when it is pointed at: the whole point, the whole deployment."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from sweeper.pareto.compare import interval_text
from sweeper.report.plots.style import hover
from sweeper.report.words import (
    METRIC_LABELS,
    PREDICTED_LABELS,
    deployment_text,
    level_text,
    metric_label,
    metric_text,
    number,
)


def point_text(row: Mapping[str, Any]) -> str:
    """Lines of a point, as HTML with everything from outside escaped."""
    launches = int(row.get("launches", 1))
    lines = [f"trial {row['trial']} ({row['kind']}), {level_text(row)}"]
    lines.append(f"n={row['n']}" + (f", mean of {launches} launches" if launches > 1 else ""))
    lines += [
        f"{metric_label(metric, [row])}: {metric_text(metric, row)} "
        f"{interval_text(row, metric)}".rstrip()
        for metric in METRIC_LABELS
        if metric in row
    ]
    lines += [
        f"predicted: {label}: {number(row[name])}"
        for name, label in PREDICTED_LABELS.items()
        if name in row
    ]
    if row.get("predicted"):
        lines.append("predicted, not measured")
    if row.get("partial"):
        lines.append("cut short")
    return hover([*lines, deployment_text(row["deployment"])])


Texts = Mapping[tuple[int, str], str]
"""(trial, level) → what its mark says."""


def point_texts(rows: Iterable[Mapping[str, Any]]) -> Texts:
    """`point_text` of many points: made once where several figures show the same."""
    return {(int(row["trial"]), str(row["level"])): point_text(row) for row in rows}
