"""What an error in a log says in full: over several lines, and where it was raised. Pure.

A cause is for one line of a report. What takes more (lists of choices, advice) stays in the
evidence:

    class path off → opened up to what follows a colon → pydantic's fields listed → shortened
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from sweeper.engine.log_lines import Line

READABLE_CHARS = 300
MAX_FIELDS = 8
MAX_BELOW = 40
MAX_FRAME_LINES = 60

EXCEPTION = re.compile(
    r"(?:[A-Za-z_]\w{0,99}\.){0,20}[A-Za-z_]\w{0,99}(?:Error|Exception|Exit|Interrupt)\b(?=:|$)"
)
_PLAIN_CLASS = re.compile(r"^(?:ValueError|RuntimeError|AssertionError|Exception)(?::\s*|(?=\())")
_CLASS_PATH = re.compile(r"^(?:[A-Za-z_]\w{0,99}\.){2,20}(?=[A-Za-z_]\w{0,99}(?:Error|Exception):)")
_NOISE = re.compile(
    r"^\[enforce fail at [^\]]{1,300}\] |^Worker failed with error '"
    r"|^Exception in worker \w{1,60} while processing method \W?\w{1,60}\W?: "
    r"|', please check the stack trace above.{0,60}$|,? Traceback \(most recent call last\):$"
)
_QUOTED_MESSAGE = re.compile(r"""^\((["'])(.*)\1,?\)$""")
_SENTENCE_END = re.compile(r"(?<!e\.g)(?<!i\.e)[.!?](?= )")
_VALIDATION = re.compile(
    r"(?:[\w.]{1,200}\.)?(?:ValidationError: )?\b(?P<count>\d{1,4}) validation errors? for "
    r"(?P<config>\w{1,100})$"
)
_FIELD_NAME = re.compile(r"^[A-Za-z_][\w.\[\]`-]{0,120}$")
_FURTHER = "For further information visit"
_FILE = re.compile(r'^\s*File "(?P<path>[^"]{1,2000})", line (?P<line>\d{1,9})')
_MARKS = re.compile(r"^[\s^~]*$")


@dataclass(frozen=True)
class Frame:
    """Where an exception was raised.

    Attributes:
        path: of the source file, as the log writes it.
        line: in that file, from 1.
        source: that line of source, empty if the log does not quote it.
    """

    path: str
    line: int
    source: str = ""

    def __str__(self) -> str:
        """Without the folder of the installation, which says nothing."""
        _, found, inside = self.path.rpartition("/site-packages/")
        short = inside if found else "/".join(self.path.split("/")[-3:])
        return f"{short}:{self.line}" + (f": {self.source}" if self.source else "")


def raised_at(log: Sequence[Line], number: int) -> Frame | None:
    """The innermost frame of the traceback that ends with a line; None if there is none.

    What other processes write between is skipped where it can be told apart.
    """
    source = ""
    for line in reversed(log[max(0, number - MAX_FRAME_LINES) : number]):
        found = _FILE.match(line.text)
        if found is not None:
            return Frame(found["path"], int(found["line"]), source)
        if line.may_be_cause and line.text.strip():
            return None
        if not _MARKS.match(line.text) and line.text.startswith("    "):
            source = line.text.strip()
    return None


def message(log: Sequence[Line], line: Line) -> tuple[str, dict[str, Any]]:
    """The message that a line begins, as one readable line; and the fields that it names.

    Returns:
        The message; and, of a configuration that was checked, `config` (its name), `fields` and
        `problems`, one for each field.
    """
    text = line.text.strip()
    validation = _VALIDATION.search(text)
    if validation is not None:
        return _refusals(log, line, text[: validation.start()], validation)
    if EXCEPTION.fullmatch(text.removesuffix(":")):
        frame = raised_at(log, line.number)
        return readable(f"{text.removesuffix(':')} at {frame}" if frame else text), {}
    if text.endswith(":") and not EXCEPTION.fullmatch(text[:-1]):
        text = _opened(text, log, line.number)
    return readable(text), {}


def readable(text: str) -> str:
    """A message for one line of a report: nothing before it and no more than it takes."""
    said = _PLAIN_CLASS.sub("", _NOISE.sub("", _PLAIN_CLASS.sub("", text.strip())))
    said = _CLASS_PATH.sub("", said)
    if (quoted := _QUOTED_MESSAGE.match(said)) is not None:
        said = quoted.group(2)
    return _shortened(said or text.strip())


def _shortened(text: str) -> str:
    """At the end of a sentence if one ends late enough, else at a word."""
    if len(text) <= READABLE_CHARS:
        return text
    ends = [match.end() for match in _SENTENCE_END.finditer(text, 0, READABLE_CHARS + 1)]
    if ends and ends[-1] > READABLE_CHARS // 4:
        return text[: ends[-1]]
    cut = text.rfind(" ", READABLE_CHARS // 2, READABLE_CHARS - 3)
    return text[: cut if cut > 0 else READABLE_CHARS - 4].rstrip(" ,") + " ..."


def _opened(text: str, log: Sequence[Line], number: int) -> str:
    """With the lines below that a colon announces, as many as are readable."""
    for below in _below(log, number):
        said = below.text.strip()
        if EXCEPTION.match(said) or len(text) + len(said) >= READABLE_CHARS:
            break
        text = f"{text} {said}"
    return text


def _refusals(
    log: Sequence[Line], line: Line, before: str, validation: re.Match[str]
) -> tuple[str, dict[str, Any]]:
    """All that a check of a configuration found; a finding of the whole has no field."""
    found: list[tuple[str, str]] = []
    field = ""
    for below in _below(log, line.number):
        said = below.text.strip()
        if said.startswith(_FURTHER):
            continue
        if len(found) >= min(int(validation["count"]), MAX_FIELDS) or EXCEPTION.match(said):
            break
        if _FIELD_NAME.match(said):
            field = said
        else:
            found.append((field, said))
            field = ""
    if not found:
        return readable(line.text), {}
    named = [(name, problem) for name, problem in found if name]
    learnt: dict[str, Any] = {"config": validation["config"]}
    if named:
        learnt["fields"] = [name for name, _ in named]
        learnt["problems"] = [problem[:READABLE_CHARS] for _, problem in named]
    each = [f"{name}: {problem}" if name else problem for name, problem in found]
    return readable(before + "; ".join(each)), learnt


def _below(log: Sequence[Line], number: int) -> Iterator[Line]:
    """What the same message may go on with."""
    for line in log[number + 1 : number + 1 + MAX_BELOW]:
        if line.level == "INFO" or not line.text.strip():
            continue
        if line.quoted or line.text.startswith("Traceback "):
            return
        yield line
