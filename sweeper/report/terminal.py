"""Tables for a terminal, as plain text."""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from sweeper.redaction import shown

if TYPE_CHECKING:
    from rich.table import Table

MIN_WIDTH = 100
LONG_WORD = 14
"""Characters of a word that is not broken to make room for another column."""


def table(title: str, left: Sequence[str], right: Sequence[str] = ()) -> Table:
    """An empty table: columns of words first, then columns of numbers."""
    from rich import box
    from rich.table import Table

    made = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    for name in left:
        made.add_column(name, overflow="fold")
    for name in right:
        made.add_column(name, justify="right")
    return made


def width() -> int:
    """Columns of the terminal, but never too few to read a table."""
    import shutil

    return max(MIN_WIDTH, shutil.get_terminal_size((140, 40)).columns)


def natural_width(made: Table) -> int:
    """Columns that a table takes if no cell is folded."""
    from rich.console import Console
    from rich.measure import Measurement

    console = Console(width=10_000)
    return Measurement.get(console, console.options, made).maximum


def plain(made: Table) -> str:
    """The table without colours, as wide as the terminal but never too narrow to read."""
    from rich.console import Console

    buffer = io.StringIO()
    Console(file=buffer, width=width(), no_color=True, force_terminal=False).print(made)
    return "\n".join(line.rstrip() for line in buffer.getvalue().splitlines()).strip("\n")


def words_table(
    title: str, columns: Sequence[str], rows: Iterable[Sequence[str]], unfolded: Sequence[str] = ()
) -> str:
    """A whole table of words. Brackets in them are text, and nothing in them steers a terminal.

    Args:
        title: above it.
        columns: their heads.
        rows: a cell a column.
        unfolded: heads of columns whose cells are to be copied, and stay in one piece.
    """
    from rich.markup import escape

    rows = [[escape(shown(cell)) for cell in row] for row in rows]
    made = table(title, columns)
    for place, column in enumerate(made.columns):
        column.no_wrap = column.header in unfolded
        words = [len(word) for row in rows for word in row[place].split()]
        column.min_width = min(LONG_WORD, max(words, default=0))
    for row in rows:
        made.add_row(*row)
    return plain(made)
