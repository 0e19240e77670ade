"""The report's figures. Text that came from outside is escaped: plotly reads hover text as HTML."""

from __future__ import annotations

import html
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from sweeper.pareto.points import row_dict
from sweeper.pareto.recommendation import Recommendation
from sweeper.pareto.select import THROUGHPUT, front_mask, latency_of, selectable
from sweeper.redaction import shown
from sweeper.report.words import (
    METRIC_LABELS,
    PREDICTED_LABELS,
    deployment_text,
    level_text,
    metric_label,
    metric_text,
    number,
)

if TYPE_CHECKING:
    import pandas as pd

_COLOURS = {"points": "#9aa5b1", "front": "#1769aa", "baseline": "#d1495b", "chosen": "#2e933c"}


def front_figure(
    frame: pd.DataFrame, recommendation: Recommendation | None, latency: str | None = None
) -> Any:
    """Throughput over latency: every valid point, the front, the baseline, the recommendation.

    Args:
        frame: of `points_frame`.
        recommendation: marked by a star, None if there is none.
        latency: metric of the horizontal axis, in milliseconds; None takes `latency_of`.

    Returns:
        A `plotly.graph_objects.Figure`; both axes are logarithmic.
    """
    import plotly.graph_objects as go

    latency = latency or latency_of(frame)
    figure = go.Figure()
    if len(frame) and {latency, THROUGHPUT} <= set(frame.columns):
        valid = selectable(frame)
        valid = valid[valid[[latency, THROUGHPUT]].notna().all(axis=1)]
        front = frame[front_mask(frame)].sort_values(latency)
        baseline = valid[valid["kind"] == "baseline"].sort_values(latency)
        figure.add_trace(_trace(valid, latency, "all valid points", "points", "markers"))
        figure.add_trace(_trace(front, latency, "Pareto front", "front", "markers"))
        figure.add_trace(
            _trace(baseline, latency, "baseline (engine defaults)", "baseline", "lines+markers")
        )
    if recommendation is not None and latency in recommendation.point:
        figure.add_trace(_star(recommendation, latency))
    figure.update_layout(
        template="plotly_white",
        height=520,
        margin={"l": 70, "r": 20, "t": 20, "b": 60},
        legend={"orientation": "h", "y": 1.08},
        xaxis={"title": METRIC_LABELS.get(latency, latency) + " (lower is better)", "type": "log"},
        yaxis={"title": METRIC_LABELS[THROUGHPUT] + " (higher is better)", "type": "log"},
    )
    return figure


def _trace(rows: pd.DataFrame, latency: str, name: str, role: str, mode: str) -> Any:
    import plotly.graph_objects as go

    size = {"points": 8, "front": 13, "baseline": 10}[role]
    symbol = "circle-open" if role == "front" else "circle"
    return go.Scatter(
        x=rows[latency].tolist(),
        y=rows[THROUGHPUT].tolist(),
        mode=mode,
        name=name,
        text=[hover_text(row_dict(row)) for row in rows.to_dict("records")],
        hovertemplate="%{text}<extra></extra>",
        marker={"size": size, "color": _COLOURS[role], "symbol": symbol, "line": {"width": 2}},
        line={"color": _COLOURS[role], "dash": "dot"},
    )


def _star(recommendation: Recommendation, latency: str) -> Any:
    import plotly.graph_objects as go

    point = recommendation.point
    return go.Scatter(
        x=[point[latency]],
        y=[point[THROUGHPUT]],
        mode="markers",
        name="recommended" if recommendation.keeps_slo else "nearest to the SLO",
        text=[hover_text(point)],
        hovertemplate="%{text}<extra></extra>",
        marker={"size": 20, "color": _COLOURS["chosen"], "symbol": "star"},
    )


def hover_text(row: Mapping[str, Any]) -> str:
    """Lines of a point, as HTML with everything from outside escaped."""
    lines = [f"trial {row['trial']} ({row['kind']}), {level_text(row)}"]
    lines += [
        f"{metric_label(metric, [row])}: {metric_text(metric, row)}"
        for metric in METRIC_LABELS
        if metric in row
    ]
    lines += [
        f"predicted: {label}: {number(row[name])}"
        for name, label in PREDICTED_LABELS.items()
        if name in row
    ]
    lines.append(deployment_text(row["deployment"]))
    return "<br>".join(html.escape(shown(line)) for line in lines)
