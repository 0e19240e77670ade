"""A server's log as lines that can be searched: colours, prefixes and wrapping removed. Pure.

A raw line passes through these stages, each of them linear in its length:

    raw → JSON envelope opened → capped → colours off → prefixes off (their level kept)
        → cut where another process wrote into it → pydantic's tail off
        → marked as quoted (source in a traceback, usage and help of a program) → `Line`

Who writes prefixes: vLLM and its worker processes, Ray, PyTorch's C++ code, uvicorn, Python's
`logging`, Docker, Compose, Kubernetes, journald and the kernel.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

TAIL_LINES = 25
MAX_EVIDENCE_CHARS = 4000
MAX_CAUSE_CHARS = 500
MAX_LINE_CHARS = 4000
LINE_END_CHARS = 800
"""Of a line beyond the limit the end is kept too: a cause may stand behind a progress bar."""
MAX_JSON_CHARS = 200_000
MAX_PREFIXES = 12
MAX_SOURCES = 1000

_ANSI = re.compile(r"\x1b(?:\[[0-9;?]{0,40}[ -/]{0,4}[@-~]|\][^\x07\x1b]{0,200}\x07)")
_LEVELS = "DEBUG|INFO|WARNING|ERROR|CRITICAL|FATAL"
_PROCESS = r"\([A-Za-z_][\w.:-]{0,60}\s[^()]{0,60}?\b(?:pid|rank|ip)=[^()]{1,120}\)"
_HEADER = rf"(?:{_LEVELS})\s{{1,4}}\d\d-\d\d\s\d\d:\d\d:\d\d(?:\.\d+)?\s\[?[\w./<>-]{{1,120}}:\d+\]"
_PREFIXES = re.compile(
    rf"""
        (?P<process>{_PROCESS}|\(raylet[^()]{{0,60}}\))\s?         # (EngineCore_DP0 pid=1234)
      | \[rank\d+\]:\s?
      | \[vllm\]:\s?
      | (?P<vllm>{_LEVELS})\s{{1,4}}                               # ERROR 10-25 13:08:43 [a.py:7]
        \d\d-\d\d\s\d\d:\d\d:\d\d(?:\.\d+)?\s\[?[\w./<>-]{{1,120}}:\d+\]\s?
      | \[(?P<glog>[DIWEF])(?:\d{{2,4}}\s\d\d:\d\d:\d\d\.\d+)?     # [E1206 18:44:12.71 a.cpp:607]
        \s[\w./-]{{1,120}}:\d+\]\s?
      | \[?\d{{4}}-\d\d-\d\d[T\s]\d\d:\d\d:\d\d(?:[.,]\d{{1,9}})?  # 2026-03-11T17:57:10.97Z
        \s?(?:Z|UTC|[+-]\d\d:?\d\d)?\]?\s{{1,4}}(?:std(?:out|err)\s[FP]\s)?
      | [A-Z][a-z][a-z]\s[\s\d]\d\s\d\d:\d\d:\d\d\s                # Mar 11 17:57:10 host vllm[7]:
        [\w.-]{{1,64}}\s[\w.@/-]{{1,64}}(?:\[\d+\])?:\s
      | \[\s{{0,8}}\d{{1,8}}\.\d{{6}}\]\s                          # [12345.678901] of the kernel
      | (?:[\w.-]{{1,64}}\s{{1,20}}|\s{{0,8}})\|(?:\s|$)            # vllm-1  | of Compose
      | \[pod/[^\]]{{1,200}}\]\s
      | (?P<ray>{_LEVELS})\s[\w./-]{{1,120}}:\d+\s--\s             # INFO worker.py:1654 --
      | (?P<plain>{_LEVELS}):(?:[A-Za-z_][\w.]{{0,80}}:|\s{{1,8}}) # ERROR:root: and uvicorn's INFO:
      | (?:-\s)?[A-Za-z_][\w.]{{0,80}}\s-\s(?P<named>DEBUG|INFO|WARNING)\s-\s
    """,
    re.VERBOSE,
)
_WRITTEN_INTO = re.compile(rf"(?<=[^\s(\[]){_PROCESS}|{_HEADER}")
_PYTHON_WARNING = re.compile(r"^\S{1,300}:\d+: \w{0,60}Warning: ")
_GLOG_LEVELS = {"D": "DEBUG", "I": "INFO", "W": "WARNING", "E": "ERROR", "F": "FATAL"}
_JSON_TEXTS = ("log", "message", "msg", "textPayload", "event", "MESSAGE")
_JSON_LEVELS = ("levelname", "level", "severity")
_JSON_TRACEBACKS = ("exc_info", "exception", "stack_trace")
_PYDANTIC_TAIL = re.compile(r"\[type=\w{1,60}, input_value=")
_FILE_LINE = re.compile(r'^\s*File ".{1,2000}", line \d+')
_SOURCE_LINE = re.compile(r"^\s{4,}(?:raise |assert |return |f?[\"']|\^+|~+)")
_USAGE = re.compile(r"^\s{0,8}usage: ", re.IGNORECASE)
_OPTION = re.compile(r"^\s{1,200}\[?--?[A-Za-z][\w-]{0,100}(?:$|[\s,=\]|\[])|^\s*\[--?[A-Za-z]")
_HELP_HEADING = re.compile(
    r"^(?:(?:options|(?:optional|positional) arguments|arguments|commands|flags|config groups)"
    r"|[\w ]{1,40} options|(?-i:[A-Z])\w{0,40}Config):$",
    re.IGNORECASE,
)
_SECTION = re.compile(r"^(?!.*(?:Error|Exception):$)[A-Za-z][\w /-]{0,60}:$")
_CONTROL = {n: " " for n in (*range(32), 127, *range(0x80, 0xA0), 0x2028, 0x2029) if n != 9}
_NO_CAUSE_LEVELS = frozenset({"DEBUG", "INFO", "WARNING"})


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a log, cleaned.

    Attributes:
        number: place in the log, from 0.
        text: without colours, process prefixes and log headers; indentation kept. Printable, at
            most `MAX_LINE_CHARS` long.
        level: log level, or empty for bare output such as a traceback.
        quoted: True for what a program shows and does not say: a line of source code inside a
            traceback, or of its own usage and help.
    """

    number: int
    text: str
    level: str = ""
    quoted: bool = False

    @property
    def may_be_cause(self) -> bool:
        return not self.quoted and self.level not in _NO_CAUSE_LEVELS


@dataclass(frozen=True, slots=True)
class _Piece:
    """A part of a raw line that one process wrote."""

    text: str
    level: str
    source: str


def clean(raw: str) -> str:
    """A line without colours, process names, log header, and pydantic's wrapping.

    >>> clean("(EngineCore_DP0 pid=7) ERROR 10-25 13:08:43 [core.py:708] ValueError: no")
    'ValueError: no'
    """
    return _unwrapped(_without_prefixes(_printable(_capped(raw))).text)


def lines(log_text: str) -> list[Line]:
    """All lines of a log, cleaned and marked."""
    return list(_marked(log_text))


def _marked(log_text: str) -> Iterator[Line]:
    in_frame: dict[str, bool] = {}
    manual = _Manual()
    number = 0
    for raw in re.split(r"[\r\n]+", log_text):
        for piece in _pieces(raw):
            text = _unwrapped(piece.text)
            if len(in_frame) > MAX_SOURCES:
                in_frame.clear()
            quoted = _SOURCE_LINE.match(text) is not None or manual.holds(text)
            if piece.level not in _NO_CAUSE_LEVELS:
                is_file = _FILE_LINE.match(text) is not None
                in_frame[piece.source] = is_file or (
                    in_frame.get(piece.source, False) and text.startswith("    ")
                )
                quoted = quoted or in_frame[piece.source]
            yield Line(number, text, piece.level, quoted)
            number += 1


class _Manual:
    """Whether the lines of a log, one after another, are usage or help of a program.

    Such a text names every flag that there is, and so looks like any refusal of one. It begins with
    a line of its own and goes on for as long as lines are indented, or are headings.
    """

    def __init__(self) -> None:
        self._open = False

    def holds(self, text: str) -> bool:
        if _USAGE.match(text) or _HELP_HEADING.match(text):
            self._open = True
        elif self._open and text and not text[0].isspace():
            self._open = _SECTION.match(text) is not None
        return self._open or _OPTION.match(text) is not None


def _pieces(raw: str) -> Iterator[_Piece]:
    """What each process wrote of a raw line; several write into one where none ends its own."""
    if raw.startswith('{"'):
        opened = _opened(raw)
        if opened is not None:
            level, texts = opened
            for text in texts:
                for piece in _pieces(text):
                    yield _Piece(piece.text, piece.level or level, piece.source)
            return
    rest = _printable(_capped(raw))
    while True:
        piece = _without_prefixes(rest)
        cut = _WRITTEN_INTO.search(piece.text)
        if cut is None or cut.start() == 0:
            yield piece
            return
        yield _Piece(piece.text[: cut.start()].rstrip(), piece.level, piece.source)
        rest = piece.text[cut.start() :]


def _opened(raw: str) -> tuple[str, list[str]] | None:
    """Level and lines of a log record in JSON (Docker's files, structured logging), else None."""
    if len(raw) > MAX_JSON_CHARS:
        return None
    try:
        record = json.loads(raw)
    except (ValueError, RecursionError):
        return None
    texts = [record[key] for key in _JSON_TEXTS if isinstance(record.get(key), str)][:1]
    if not texts:
        return None
    texts += [record[key] for key in _JSON_TRACEBACKS if isinstance(record.get(key), str)]
    levels = [record[key] for key in _JSON_LEVELS if isinstance(record.get(key), str)]
    level = levels[0].upper() if levels else ""
    parts = [part for text in texts for part in re.split(r"[\r\n]+", text) if part]
    # A record may not hold another record: one envelope is opened, not a nest of them.
    return level, [f" {part}" if part.startswith('{"') else part for part in parts]


def _capped(raw: str) -> str:
    if len(raw) <= MAX_LINE_CHARS:
        return raw
    return f"{raw[: MAX_LINE_CHARS - LINE_END_CHARS - 7]} (...) {raw[-LINE_END_CHARS:]}"


def _printable(text: str) -> str:
    """Without colours and control characters; what is no character at all becomes a mark."""
    if "\x1b" in text:
        text = _ANSI.sub("", text)
    if text.isascii() and text.isprintable():
        return text.rstrip()
    text = text.encode("utf-8", "replace").decode("utf-8").replace("\0", "")
    return text.translate(_CONTROL).rstrip()


def _without_prefixes(text: str) -> _Piece:
    level, source, position = "", "", 0
    for _ in range(MAX_PREFIXES):
        match = _PREFIXES.match(text, position)
        if match is None:
            break
        position = match.end()
        name = match.lastgroup
        if name == "process":
            source += match.group()
        elif name == "glog":
            level = _GLOG_LEVELS[match.group("glog")]
        elif name is not None:
            level = match.group(name)
    rest = text[position:]
    if not level and _PYTHON_WARNING.match(rest):
        level = "WARNING"
    return _Piece(rest, level, source)


def _unwrapped(text: str) -> str:
    stripped = text.lstrip()
    if stripped.startswith("Value error, "):
        text = stripped.removeprefix("Value error, ")
    tail_match = _PYDANTIC_TAIL.search(text) if "[type=" in text else None
    return text if tail_match is None else text[: tail_match.start()].rstrip()


def last_line(log: Sequence[Line]) -> str:
    """The last line that says something; empty for an empty log."""
    for line in reversed(log):
        if line.text.strip():
            return line.text.strip()[:MAX_CAUSE_CHARS]
    return ""


def tail(log: Sequence[Line], count: int = TAIL_LINES) -> str:
    """The end of a log, for evidence."""
    said: list[str] = []
    for line in reversed(log):
        if len(said) == count:
            break
        if line.text.strip():
            said.append(line.text)
    return "\n".join(reversed(said))[-MAX_EVIDENCE_CHARS:]
