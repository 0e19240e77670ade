"""The report for a terminal, a review or a wiki: the verdict, the front and what was learnt."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sweeper.pareto.points import row_dict
from sweeper.pareto.recommendation import Recommendation
from sweeper.report import markdown
from sweeper.report.alike import merged, with_alike
from sweeper.report.importance.insight import Insight
from sweeper.report.importance.section import insight_markdown
from sweeper.report.text import front_frame
from sweeper.report.words import (
    METRIC_LABELS,
    level_text,
    metric_label,
    metric_text,
)

if TYPE_CHECKING:
    import pandas as pd


def report_markdown(
    frame: pd.DataFrame,
    recommendation: Recommendation | None,
    study: str,
    ended: str,
    insight: Insight,
) -> str:
    """The report as Markdown.

    Args:
        frame: of `points_frame`.
        recommendation: None if nothing was feasible.
        study: its name.
        ended: why the search ended and what it used, one line.
        insight: why the winner wins, and which parameters mattered.
    """
    parts = [f"# {markdown.text(study)}", markdown.text(ended)]
    if recommendation is None:
        parts.append("**No feasible operating point.** report.html lists the causes.")
    else:
        parts.append(f"**{markdown.text(recommendation.headline)}**")
        parts.append(markdown.text(recommendation.reason))
    parts.append(insight_markdown(insight))
    if len(frame):
        parts.append(_front(frame, recommendation))
    return "\n\n".join(part for part in parts if part) + "\n"


def _front(frame: pd.DataFrame, recommendation: Recommendation | None) -> str:
    rows = [row_dict(row) for row in front_frame(frame, recommendation).to_dict("records")]
    metrics = [name for name in METRIC_LABELS if any(name in row for row in rows)]
    columns = ["Trial", "Load", *(metric_label(name, rows) for name in metrics), "Deployment"]
    chosen = (recommendation.trial, recommendation.level) if recommendation is not None else None
    cells = [
        [
            row["trial"],
            level_text(row),
            *(metric_text(name, row) for name in metrics),
            with_alike(row),
        ]
        for row in merged(rows, metrics, chosen)
    ]
    return f"## Pareto front\n\n{markdown.table(columns, cells)}"
