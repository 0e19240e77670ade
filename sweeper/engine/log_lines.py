"""A server's log as lines that can be searched: colours, prefixes and wrapping removed. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

TAIL_LINES = 25
MAX_EVIDENCE_CHARS = 4000
MAX_CAUSE_CHARS = 500

_ANSI = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")
_PREFIXES = re.compile(
    r"""^(?:
        \([A-Za-z_][\w.:-]*\s+(?:pid|rank|ip)=[^)]*\)\s?        # (EngineCore_DP0 pid=1234)
      | \[rank\d+\]:\s?                                         # [rank0]:
      | \[vllm\]:\s?
      | (?:DEBUG|INFO|WARNING|ERROR|CRITICAL)\s+                # ERROR 10-25 13:08:43 [core.py:708]
        \d\d-\d\d\s\d\d:\d\d:\d\d\s\[[^\]]*\]\s?
    )""",
    re.VERBOSE,
)
_LEVEL = re.compile(
    r"\b(DEBUG|INFO|WARNING|ERROR|CRITICAL)\s+\d\d-\d\d\s\d\d:\d\d:\d\d\s\[|^INFO: "
)
_PYDANTIC_TAIL = re.compile(r"\s*\[type=\w+, input_value=.*$")
_FILE_LINE = re.compile(r'^\s*File ".*", line \d+')


@dataclass(frozen=True)
class Line:
    """One line of a log, cleaned.

    Attributes:
        number: place in the log, from 0.
        text: without colours, process prefixes and log headers; indentation kept.
        level: log level, or empty for bare output such as a traceback.
        quoted: True for a line of source code inside a traceback.
    """

    number: int
    text: str
    level: str = ""
    quoted: bool = False

    @property
    def may_be_cause(self) -> bool:
        return not self.quoted and self.level not in {"DEBUG", "INFO", "WARNING"}


def clean(raw: str) -> str:
    """A line without colours, process names, log header, and pydantic's wrapping.

    >>> clean("(EngineCore_DP0 pid=7) ERROR 10-25 13:08:43 [core.py:708] ValueError: no")
    'ValueError: no'
    """
    text = _ANSI.sub("", raw).rstrip()
    while (match := _PREFIXES.match(text)) is not None and match.end():
        text = text[match.end() :]
    stripped = text.lstrip()
    if stripped.startswith("Value error, "):
        text = stripped.removeprefix("Value error, ")
    return _PYDANTIC_TAIL.sub("", text)


def lines(log_text: str) -> list[Line]:
    """All lines of a log, cleaned and marked."""
    return list(_marked(log_text))


def _marked(log_text: str) -> Iterator[Line]:
    in_frame = False
    for number, raw in enumerate(re.split(r"[\r\n]+", log_text)):
        plain = _ANSI.sub("", raw)
        level = _LEVEL.search(plain)
        text = clean(raw)
        if _FILE_LINE.match(text):
            in_frame = True
            yield Line(number, text, quoted=True)
            continue
        in_frame = in_frame and text.startswith("    ")
        name = (level.group(1) or "INFO") if level is not None else ""
        yield Line(number, text, name, quoted=in_frame)


def last_line(log: Sequence[Line]) -> str:
    """The last line that says something; empty for an empty log."""
    for line in reversed(log):
        if line.text.strip():
            return line.text.strip()[:MAX_CAUSE_CHARS]
    return ""


def tail(log: Sequence[Line], count: int = TAIL_LINES) -> str:
    """The end of a log, for evidence."""
    said = [line.text for line in log if line.text.strip()]
    return "\n".join(said[-count:])[-MAX_EVIDENCE_CHARS:]
