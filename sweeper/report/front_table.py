"""The front as a table for a terminal: the settings beside each point, or where that is too narrow
below, once for each deployment."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sweeper.pareto.cost import COST, DEVICE_SECONDS, costs
from sweeper.pareto.recommendation import Recommendation
from sweeper.pareto.select import LATENCIES, THROUGHPUT
from sweeper.redaction import shown
from sweeper.report.alike import merged, with_alike
from sweeper.report.terminal import natural_width, plain, table, width
from sweeper.report.words import level_text, metric_label, metric_text

if TYPE_CHECKING:
    from rich.table import Table

Row = dict[str, Any]

_SHOWN = ("output_tokens_per_s", THROUGHPUT, "ttft_p95_ms", "tpot_p95_ms", *LATENCIES, "quality")
_MIN_SETTINGS = 40
"""Columns of a terminal that settings need to be read beside a row."""
_LINE = 10
"""Characters after which the head of a column goes on in a second line."""


def front_table(rows: list[Row], recommendation: Recommendation) -> str:
    """The front's points and the recommended one, with the defaults at the same load."""
    measured = [name for name in _SHOWN if any(name in row for row in rows)]
    base, chosen = recommendation.baseline, (recommendation.trial, recommendation.level)
    if base is not None and not any(_key(row) == _key(base) for row in rows):
        rows = [*rows, {**base, "off_front": True}]
    rows = merged(rows, measured, chosen)
    metrics = _columns(measured, rows, recommendation)
    text = _table(rows, metrics, recommendation)
    if any(row.get("tie") for row in rows):
        text += "\n≈ within the noise of this machine as good as the front"
    return text


def _columns(measured: Sequence[str], rows: Sequence[Row], found: Recommendation) -> list[str]:
    """Figures that are shown: one latency end to end, and what is the same twice only once."""
    others = [name for name in measured if name in LATENCIES][1:]
    names = [name for name in measured if name not in others]
    if all(row.get("output_tokens_per_s") == row.get(THROUGHPUT) for row in rows):
        names = [name for name in names if name != THROUGHPUT]
    if found.price is not None:
        return [*names, COST]
    return [*names, DEVICE_SECONDS] if found.prefer == "cost" else names


def _table(rows: Sequence[Row], metrics: Sequence[str], found: Recommendation) -> str:
    """With the settings beside the figures where there is room for them, else below."""
    from rich.markup import escape

    labels = [_on_lines(_label(name, rows, found)) for name in metrics]
    title = "Pareto front" + (" (predicted)" if found.predicted else "")
    cells = [_cells(row, metrics, found) for row in rows]
    settings = [shown(with_alike(row)) for row in rows]
    narrow = _unfolded(table(title, ["", "trial", "load"], labels))
    for line in cells:
        narrow.add_row(*line)
    if width() - natural_width(narrow) < _MIN_SETTINGS:
        trials = [f"trial {row['trial']}: {text}" for row, text in zip(rows, settings, strict=True)]
        return "\n".join([plain(narrow), "", *dict.fromkeys(trials), ""])
    whole = _unfolded(table(title, ["", "trial", "load"], labels))
    whole.add_column("deployment", overflow="fold")
    for line, text in zip(cells, settings, strict=True):
        whole.add_row(*line, escape(text))
    return plain(whole)


def _unfolded(made: Table) -> Table:
    """With no cell on two lines, and as close as can be read."""
    made.padding = (0, 1, 0, 0)
    for column in made.columns:
        column.no_wrap = True
    return made


def _cells(row: Row, metrics: Sequence[str], found: Recommendation) -> list[str]:
    priced = {**row, **costs(row, found.price)}
    values = [metric_text(name, priced) for name in metrics]
    mark = _mark(row, (found.trial, found.level))
    return [mark, str(row["trial"]), level_text(row), *values]


def _label(metric: str, rows: Sequence[Row], found: Recommendation) -> str:
    if metric == COST and found.price is not None:
        return f"{found.price.currency} / million tokens"
    if metric == DEVICE_SECONDS:
        return "device seconds / million tokens"
    return metric_label(metric, rows)


def _on_lines(label: str) -> str:
    """A long head of a column on several short lines."""
    return "\n".join(textwrap.wrap(label, _LINE, break_long_words=False))


def _key(row: Mapping[str, Any]) -> tuple[int, str]:
    return int(row["trial"]), str(row["level"])


def _mark(row: Mapping[str, Any], chosen: tuple[int, str]) -> str:
    if _key(row) == chosen:
        return "►"
    if row["kind"] == "baseline":
        return "(baseline)" if row.get("off_front") else "baseline"
    return "≈" if row.get("tie") else ""
