"""Words and tables in Markdown. Text that came from outside is no markup, HTML or link there."""

from __future__ import annotations

import re
from collections.abc import Sequence

from sweeper.redaction import shown

# An underscore between letters is one; anywhere else it may begin emphasis.
_MARKUP = re.compile(r"[\\`*{}\[\]<>|~]|(?<!\w)_|_(?!\w)")


def text(value: object) -> str:
    """One line of plain words."""
    line = " ".join(shown(str(value)).split())
    return _MARKUP.sub(lambda match: f"\\{match[0]}", line)


def table(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A table; every cell is plain words."""
    lines = [[text(cell) for cell in columns], ["---"] * len(columns)]
    lines += [[text(cell) for cell in row] for row in rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
