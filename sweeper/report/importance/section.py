"""Why the winner wins and which parameters mattered, in the HTML report and as Markdown."""

from __future__ import annotations

import html
from collections.abc import Sequence
from html import escape
from typing import Any

from sweeper.redaction import shown
from sweeper.report import markdown
from sweeper.report.importance.compute import Importance
from sweeper.report.importance.insight import Insight
from sweeper.report.tables import table

COLUMNS = ("Figure", "Parameter", "Share", "9 in 10 forests", "Verdict", "Best value", "Trials")
_MATTERS, _IDLE = "#1769aa", "#9aa5b1"
NOTE = (
    "Share: of what the parameters explain of a figure, by a forest of trees over the trials that "
    "were measured whole; the interval comes from resampled trials. “Within noise”: no better than "
    "a shuffled copy. Parameters that often changed together share what they explain. Trials that "
    "failed are left out: what makes a deployment fail stands with the failures."
)


def insight_section(found: Insight) -> str:
    """Title, paragraph, figure and table; without the figure where there is too little to say."""
    parts = []
    if found.why:
        parts.append(f"<h2>Why it wins</h2><p>{escape(shown(found.why))}</p>")
    parts.append(f"<h2>Which parameters mattered</h2><p>{escape(shown(found.verdict))}</p>")
    if found.tables:
        figure = importance_figure(found)
        parts.append(figure.to_html(full_html=False, include_plotlyjs=False, div_id="importance"))
        parts.append(table(COLUMNS, rows(found), numeric=(2, 3, 6)))
        parts.append(f"<p class=sub>{escape(NOTE)}</p>")
    return "\n".join(parts)


def insight_markdown(found: Insight) -> str:
    """The same without its figure."""
    parts = []
    if found.why:
        parts.append(f"## Why it wins\n\n{markdown.text(found.why)}")
    parts.append(f"## Which parameters mattered\n\n{markdown.text(found.verdict)}")
    if found.tables:
        parts += [markdown.table(COLUMNS, rows(found)), NOTE]
    return "\n\n".join(parts)


def rows(found: Insight) -> list[list[str]]:
    """One a figure and parameter."""
    return [_row(name, one) for name, ones in found.tables.items() for one in ones]


def importance_figure(found: Insight) -> Any:
    """Shares with their intervals, one panel a figure; grey is within noise.

    Returns:
        A `plotly.graph_objects.Figure`.
    """
    from plotly.subplots import make_subplots

    names = list(found.tables)
    figure = make_subplots(
        rows=1,
        cols=len(names),
        subplot_titles=[html.escape(shown(name)) for name in names],
        horizontal_spacing=0.16 / max(1, len(names) - 1) + 0.04,
    )
    for column, name in enumerate(names, start=1):
        figure.add_trace(_bars(found.tables[name]), row=1, col=column)
    most = max(len(ones) for ones in found.tables.values())
    figure.update_layout(
        template="plotly_white",
        showlegend=False,
        height=140 + 28 * most,
        margin={"l": 20, "r": 20, "t": 40, "b": 40},
    )
    figure.update_xaxes(tickformat=".0%", rangemode="tozero")
    figure.update_yaxes(autorange="reversed", automargin=True)
    return figure


def _bars(ones: Sequence[Importance]) -> Any:
    import plotly.graph_objects as go

    return go.Bar(
        orientation="h",
        x=[one.share for one in ones],
        y=[html.escape(shown(one.parameter)) for one in ones],
        error_x={
            "type": "data",
            "array": [one.high - one.share for one in ones],
            "arrayminus": [one.share - one.low for one in ones],
        },
        marker={"color": [_MATTERS if one.matters else _IDLE for one in ones]},
        hovertemplate="%{y}: %{x:.0%}<extra></extra>",
    )


def _row(name: str, one: Importance) -> list[str]:
    trials = f"{one.trials}, where {one.condition}" if one.condition else str(one.trials)
    return [
        name,
        one.parameter,
        f"{one.share:.0%}",
        f"{one.low:.0%} to {one.high:.0%}",
        "matters" if one.matters else "within noise",
        "-" if one.best is None or not one.matters else str(one.best),
        trials,
    ]
