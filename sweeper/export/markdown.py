"""Text of foreign origin in Markdown: shown as it is, and no markup. Pure."""

from __future__ import annotations

import re

from sweeper.redaction import shown

_MARKUP = re.compile(r"[\\`*_{}\[\]<>|~]|^(?=[#+>-])|(?<=\d)(?=[.)]\s)")


def text(value: object) -> str:
    """Words of a line: no markup, no HTML, no link, no line break."""
    return _MARKUP.sub(lambda match: f"\\{match[0]}", _line(value))


def sentence(value: object) -> str:
    """Sentences of ours around numbers and names: one paragraph, and no HTML."""
    return _line(value).replace("<", "&lt;")


def code(value: object) -> str:
    """A code span that ends where its text ends, whatever backticks are in it."""
    line = _line(value)
    longest = max((len(run) for run in re.findall(r"`+", line)), default=0)
    fence = "`" * (longest + 1)
    pad = " " if line.startswith("`") or line.endswith("`") or not line else ""
    return f"{fence}{pad}{line}{pad}{fence}"


def _line(value: object) -> str:
    return " ".join(shown(str(value)).split())
