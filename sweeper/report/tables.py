"""Tables of the report. Every cell is escaped here and nowhere else."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

from sweeper.redaction import shown


def table(
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    looks: Sequence[str] = (),
    numeric: Iterable[int] = (),
    tag: int | None = None,
    stacked: bool = False,
) -> str:
    """An HTML table.

    Args:
        columns: heads.
        rows: cells, one sequence a row.
        looks: CSS class of each row.
        numeric: columns that are set to the right.
        tag: column whose cells are shown as a tag.
        stacked: the lines of a cell stand below one another, all but the first set small.
    """
    right = set(numeric)

    def cell(kind: str, index: int, text: Any) -> str:
        look = " class=n" if index in right else ""
        content = escape(shown(str(text)))
        if stacked:
            first, *rest = content.split("\n")
            content = first + "".join(f"<small>{line}</small>" for line in rest)
        if kind == "td" and index == tag:
            content = f'<span class="tag {content}">{content}</span>'
        return f"<{kind}{look}>{content}</{kind}>"

    head = "".join(cell("th", i, name) for i, name in enumerate(columns))
    body = "".join(
        f'<tr class="{escape(looks[r]) if looks else ""}">'
        + "".join(cell("td", i, text) for i, text in enumerate(row))
        + "</tr>"
        for r, row in enumerate(rows)
    )
    return f"<div class=wide><table><tr>{head}</tr>{body}</table></div>"
