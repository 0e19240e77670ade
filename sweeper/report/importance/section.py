"""Why the winner wins and which parameters mattered, in the HTML report and as Markdown."""

from __future__ import annotations

from html import escape

from sweeper.redaction import shown
from sweeper.report import markdown
from sweeper.report.importance.compute import Importance
from sweeper.report.importance.insight import Insight
from sweeper.report.tables import folded, table

COLUMNS = ("Figure", "Parameter", "Share", "9 in 10 forests", "Verdict", "Best value", "Trials")
NOTE = (
    "Share: of what the parameters explain of a figure, by a forest of trees over the trials that "
    "were measured whole; the interval comes from resampled trials. “Within noise”: no better than "
    "a shuffled copy. Parameters that often changed together share what they explain. Trials that "
    "failed are left out: what makes a deployment fail stands with the failures."
)


def insight_section(found: Insight, drawing: str = "") -> str:
    """What mattered, figure and table; the verdict alone where there is too little to say.

    Args:
        found: what there is to say.
        drawing: the figure's place in the page, as HTML.
    """
    parts = [f"<p>{escape(shown(found.verdict))}</p>"]
    if found.tables:
        made = table(COLUMNS, rows(found), numeric=(2, 3, 6), wide=[0])
        parts += [drawing, folded("Parameters as a table", made)]
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
