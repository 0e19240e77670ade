"""Tables of the report. Every cell is escaped here and nowhere else."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

from sweeper.redaction import shown

LONG = 12
"""Rows from which on a table is folded."""


def table(
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    looks: Sequence[str] = (),
    numeric: Iterable[int] = (),
    wide: Iterable[int] = (),
    tag: int | None = None,
    stacked: bool = False,
    caption: str = "",
) -> str:
    """An HTML table. On a narrow screen a row of more than two cells becomes a card.

    Args:
        columns: heads.
        rows: cells, one sequence a row.
        looks: CSS class of each row.
        numeric: columns that are set to the right.
        wide: columns with long words, which get some room.
        tag: column whose cells are shown as a tag.
        stacked: the lines of a cell stand below one another, all but the first set small.
        caption: what the table is.
    """
    kinds = dict.fromkeys(numeric, " class=n") | dict.fromkeys(wide, " class=w")
    kinds |= {index: " class=l" for index, name in enumerate(columns) if name == "Load"}
    labels = [escape(shown(name)) for name in columns]

    def cell(index: int, text: Any) -> str:
        content = escape(shown(str(text)))
        if stacked:
            first, *rest = content.split("\n")
            content = first + "".join(f"<small>{line}</small>" for line in rest)
        if index == tag:
            content = f'<span class="mark {content}">{content}</span>'
        label = f' data-label="{labels[index]}"' if labels[index] else ""
        return f"<td{kinds.get(index, '')}{label}><span class=v>{content}</span></td>"

    head = "".join(
        f"<th scope=col{kinds.get(index, '')}>{label}</th>" for index, label in enumerate(labels)
    )
    body = "".join(
        f"<tr{f' class={chr(34)}{escape(looks[r])}{chr(34)}' if looks and looks[r] else ''}>"
        + "".join(cell(index, text) for index, text in enumerate(row))
        + "</tr>"
        for r, row in enumerate(rows)
    )
    told = f"<caption>{escape(shown(caption))}</caption>" if caption else ""
    kind = " class=rows" if len(columns) > 2 else ""
    return f"<table{kind}>{told}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def folded(title: str, body: str, *, is_open: bool = False) -> str:
    """HTML behind its title; print shows it all the same.

    Args:
        title: any text.
        body: HTML; nothing without one.
        is_open: whether it starts unfolded.
    """
    if not body:
        return ""
    state = " open" if is_open else ""
    return f"<details{state}><summary>{escape(shown(title))}</summary>{body}</details>"
