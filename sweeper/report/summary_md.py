"""The report for a terminal, a review or a wiki: report.html without its figures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sweeper.pareto.compare import interval_text
from sweeper.pareto.points import row_dict
from sweeper.pareto.recommendation import Recommendation
from sweeper.redaction import shown
from sweeper.report import markdown
from sweeper.report.alike import merged, with_alike
from sweeper.report.confirm_text import COLUMNS as CONFIRM_COLUMNS
from sweeper.report.confirm_text import confirm_rows
from sweeper.report.importance.insight import Insight
from sweeper.report.importance.section import insight_markdown
from sweeper.report.misses import COLUMNS as MISS_COLUMNS
from sweeper.report.misses import miss_rows, misses
from sweeper.report.page.conditions import condition_rows, conditions_line
from sweeper.report.page.opening import AGAIN, how_sure, told_metrics, warnings
from sweeper.report.page.results import front_metrics
from sweeper.report.shortfall_text import COLUMNS as SHORTFALL_COLUMNS
from sweeper.report.shortfall_text import shortfall_rows
from sweeper.report.text import front_frame
from sweeper.report.words import level_text, metric_label, metric_text
from sweeper.trial.outcome import TrialOutcome

if TYPE_CHECKING:
    import pandas as pd


def report_markdown(  # noqa: PLR0917 - the order of report_html
    frame: pd.DataFrame,
    outcomes: Sequence[TrialOutcome],
    recommendation: Recommendation | None,
    study: str,
    ended: str,
    insight: Insight,
    commands: Sequence[tuple[str, str]] = (),
) -> str:
    """The report as Markdown.

    Args:
        frame: of `points_frame`.
        outcomes: all trials, failed ones too.
        recommendation: None if nothing was feasible.
        study: its name.
        ended: why the search ended and what it used, one line.
        insight: why the winner wins, and which parameters mattered.
        commands: how to make the numbers again, (what it does, what to type).
    """
    parts = [
        f"# {markdown.text(study)}",
        markdown.text(conditions_line(outcomes)),
        *(f"**{markdown.text(line)}**" for line in warnings(outcomes)),
        _verdict(recommendation),
        markdown.text(ended),
        _recommended(recommendation),
        _table(AGAIN, CONFIRM_COLUMNS, confirm_rows(recommendation)),
        insight_markdown(insight),
        _front(frame, recommendation),
        _table("What did not work, by cause", MISS_COLUMNS, miss_rows(misses(outcomes))),
        _table("Conditions", ("Condition", "Value"), condition_rows(outcomes)),
        _commands(commands),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _verdict(recommendation: Recommendation | None) -> str:
    if recommendation is None:
        return "**No feasible operating point.** The causes stand below, the nearest first."
    headline = f"**{markdown.text(recommendation.headline)}**"
    sure = markdown.text(how_sure(recommendation)[1])
    return f"{headline}\n\n{sure}\n\n{markdown.text(recommendation.reason)}"


def _recommended(recommendation: Recommendation | None) -> str:
    """Settings, figures, and how far a nearest miss is from the promise."""
    if recommendation is None:
        return ""
    point, base = recommendation.point, recommendation.baseline or {}
    settings = [[name, value] for name, value in sorted(recommendation.deployment.items())]
    figures = [
        [
            metric_label(metric, [point]),
            metric_text(metric, point),
            interval_text(point, metric) or "-",
            metric_text(metric, base),
        ]
        for metric in told_metrics(point)
    ]
    title = "Recommended deployment" if recommendation.keeps_slo else "Nearest to the SLO"
    parts = [
        _table(title, ("Parameter", "Value"), settings or [["everything", "engine defaults"]]),
        f"At {markdown.text(level_text(point))}, n={point['n']}:",
        markdown.table(("Figure", "Here", "95 % interval", "Baseline"), figures),
        _table("How far it is off", SHORTFALL_COLUMNS, shortfall_rows(recommendation)),
    ]
    return "\n\n".join(part for part in parts if part)


def _front(frame: pd.DataFrame, recommendation: Recommendation | None) -> str:
    if not len(frame):
        return ""
    rows = [row_dict(row) for row in front_frame(frame, recommendation).to_dict("records")]
    metrics = front_metrics(rows)
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
    return _table("Pareto front", columns, cells)


def _table(title: str, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A title and its table; nothing without rows."""
    heads = [name[:1].upper() + name[1:] for name in columns]
    return f"## {title}\n\n{markdown.table(heads, rows)}" if rows else ""


def _commands(commands: Sequence[tuple[str, str]]) -> str:
    """What to type, in blocks of code: a command is one line, so nothing in it ends the block."""
    if not commands:
        return ""
    blocks = (
        f"{markdown.text(what)}\n\n    {' '.join(shown(command).split())}"
        for what, command in commands
    )
    return "## How to reproduce this\n\n" + "\n\n".join(blocks)
