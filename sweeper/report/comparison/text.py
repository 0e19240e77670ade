"""A comparison in the terminal: readable in 100 columns. Plain text, returned."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import TYPE_CHECKING

from sweeper.report.comparison.compare import Comparison
from sweeper.report.comparison.conditions import Row, Status
from sweeper.report.comparison.results import SINGLE, SYSTEM, LevelResults, Result
from sweeper.report.comparison.side import Side
from sweeper.report.comparison.verdict import Verdict, value_text
from sweeper.report.words import deployment_text, number

if TYPE_CHECKING:
    from rich.table import Table

WIDTH = 100
_VALUE_WIDTH = 30
_RATIO_NOTE = (
    "b/a: interval from the lowest b over the highest a to the highest b over the lowest a; it "
    "holds\nwherever both intervals hold, and is wider than it need be. Latencies: less is better."
)


def render_comparison(found: Comparison) -> str:
    """Conditions, results at every level both have, verdict."""
    parts = [_heading("a", found.a), _heading("b", found.b), "", _conditions(found)]
    for level in found.levels:
        parts += ["", _level(level)]
    if found.quality is not None:
        parts += ["", _results_table("output, at every load", [found.quality])]
    parts += ["", *_levels_left_out(found), _verdict(found.verdict)]
    return "\n".join(parts)


def _heading(name: str, side: Side) -> str:
    lines = [f"{name}  {side.label}: {side.what}"]
    if side.deployment is not None:
        lines.append(f"   {deployment_text(side.deployment)}")
    lines += [f"   note: {note}" for note in side.notes]
    return "\n".join(_wrapped(line) for line in lines)


def _conditions(found: Comparison) -> str:
    table = _table("conditions")
    table.add_column("", max_width=28, overflow="fold")
    table.add_column("a", max_width=_VALUE_WIDTH, overflow="fold")
    table.add_column("b", max_width=_VALUE_WIDTH, overflow="fold")
    table.add_column("", no_wrap=True)
    silent = []
    for row in found.conditions:
        if row.status is Status.UNKNOWN:
            silent.append(row.condition.label)
        else:
            table.add_row(*_condition(row))
    text = _plain(table)
    if silent:
        text += "\n" + _wrapped(f"  neither tells: {', '.join(silent)}")
    return text


def _condition(row: Row) -> list[str]:
    from rich.markup import escape

    b = '"' if row.status is Status.SAME and row.a == row.b else value_text(row.b)
    status = str(row.status)
    if row.status is Status.DIFFERS:
        status = {"breaks": "DIFFERS", "meant": "deployment"}.get(
            str(row.condition.weight), "differs"
        )
    if row.status is Status.UNKNOWN_A:
        status = "a: not told"
    if row.status is Status.UNKNOWN_B:
        status = "b: not told"
    a = "-" if row.a is None else value_text(row.a)
    return [row.condition.label, escape(a), escape("-" if row.b is None else b), status]


def _level(level: LevelResults) -> str:
    n = ", ".join(
        f"{who} {'not told' if count is None else count}"
        for who, count in (("a", level.a_n), ("b", level.b_n))
    )
    kind = SINGLE if level.single_stream else SYSTEM
    table = _results_table(f"{level.name}: {kind} (requests: {n})", level.results)
    return "\n".join([table, *(_wrapped(f"  {fault}") for fault in level.faults)])


def _results_table(title: str, results: Sequence[Result]) -> str:
    table = _table(title)
    table.add_column("", max_width=26, overflow="fold")
    for name in ("a", "b", "b/a"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("", overflow="fold")
    for result in results:
        table.add_row(
            result.metric.label,
            _with_interval(result.a, result.a_interval),
            _with_interval(result.b, result.b_interval),
            _with_interval(result.ratio, result.ratio_interval),
            result.word.replace("[", "\\["),
        )
    return _plain(table)


def _with_interval(value: float | None, interval: Sequence[float] | None) -> str:
    if value is None:
        return "-"
    text = number(value)
    return text if interval is None else f"{text}\n\\[{number(interval[0])}, {number(interval[1])}]"


def _levels_left_out(found: Comparison) -> list[str]:
    lines = [
        _wrapped(f"only {who} was measured at: {', '.join(names)}")
        for who, names in (("a", found.only_a), ("b", found.only_b))
        if names
    ]
    if not found.levels:
        lines.append("there is no load level that both sides have: no results to compare")
    else:
        lines.append(_RATIO_NOTE)
    return lines


def _verdict(verdict: Verdict) -> str:
    lines = [f"verdict: {verdict.sentence}"]
    if verdict.reasons and verdict.unknown:
        lines.append(f"not told: {', '.join(verdict.unknown)}")
    if verdict.noted:
        lines.append(f"also different: {', '.join(verdict.noted)}")
    return "\n".join(_wrapped(line) for line in lines)


def _wrapped(text: str) -> str:
    import textwrap

    indent = " " * (len(text) - len(text.lstrip()) + 2)
    return textwrap.fill(text, WIDTH, subsequent_indent=indent, break_on_hyphens=False)


def _table(title: str) -> Table:
    from rich import box
    from rich.table import Table

    return Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)


def _plain(table: Table) -> str:
    from rich.console import Console

    buffer = io.StringIO()
    Console(file=buffer, width=WIDTH, no_color=True, force_terminal=False).print(table)
    return "\n".join(line.rstrip() for line in buffer.getvalue().splitlines()).strip("\n")
