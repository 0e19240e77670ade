"""What a page tells its reader to type: fenced and indented blocks, and commands in a sentence."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGES = (
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "studies/README.md",
    *sorted((ROOT / "docs").glob("*.md")),
)
SHELL = ("sh", "console")
_FENCE = re.compile(r"^```(\w*)\s*$")
_INLINE = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")
_OURS = re.compile(r"^(?:\$ )?(?:\S*/)?(?:python -m sweeper|sweeper)(?:\s|$)")
_COMMAND = re.compile(r"(?:\S*/)?python -m \w|make [a-z-]+(?=$|\s+(?:#|[A-Z]+=))")
_PROGRAM = re.compile(r"^(?:\$ )?(?:\S*/)?(?:python -m sweeper|sweeper)\s*")


@dataclass(frozen=True)
class Block:
    """A fenced block.

    Attributes:
        page: its page.
        line: of its first line of content, from 1.
        language: as written behind the fence; empty for none.
        text: its content.
    """

    page: Path
    line: int
    language: str
    text: str


@dataclass(frozen=True)
class Command:
    """One command line of a page, its comment taken off and its continuation lines joined."""

    page: Path
    line: int
    text: str

    @property
    def where(self) -> str:
        """``docs/search.md:12``"""
        return f"{self.page.relative_to(ROOT)}:{self.line}"

    @property
    def is_ours(self) -> bool:
        """True of ``python -m sweeper ...``."""
        return bool(_OURS.match(self.text))

    @property
    def arguments(self) -> list[str]:
        """Of a command of ours: verb and settings, as the shell would hand them over."""
        return shlex.split(_PROGRAM.sub("", self.text), comments=True)


@cache
def blocks_of(page: Path) -> tuple[Block, ...]:
    """All fenced blocks of a page."""
    found, language, begin, content = [], None, 0, []
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), start=1):
        fence = _FENCE.match(line.strip())
        if fence and language is None:
            language, begin, content = fence[1], number + 1, []
        elif fence:
            found.append(Block(page, begin, language or "", "\n".join(content)))
            language = None
        elif language is not None:
            content.append(line)
    assert language is None, f"{page}: the block of line {begin} is not closed"
    return tuple(found)


def commands_of(page: Path) -> Iterator[Command]:
    """Every command that a page shows, in whatever form."""
    for block in blocks_of(page):
        if block.language in SHELL:
            yield from _in_shell(block)
        elif block.language == "":
            yield from (one for one in _in_shell(block) if one.text.startswith("$ "))
    yield from _in_prose(page)


def _in_shell(block: Block) -> Iterator[Command]:
    """One command a line; in a `console` block the lines of a prompt alone, the rest is output."""
    waiting = ""
    for number, line in enumerate(block.text.splitlines(), start=block.line):
        text = waiting + line.strip()
        if text.endswith("\\"):
            waiting = text[:-1].rstrip() + " "
            continue
        waiting = ""
        if block.language == "console" and not text.startswith("$ "):
            continue
        if (plain := without_comment(text)) != "":
            yield Command(block.page, number, plain)


def _in_prose(page: Path) -> Iterator[Command]:
    """Commands of ours between backticks, and in blocks that are indented instead of fenced."""
    fenced = {
        number
        for block in blocks_of(page)
        for number in range(block.line - 1, block.line + len(block.text.splitlines()) + 1)
    }
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), start=1):
        if number in fenced:
            continue
        if line.startswith("    ") and _COMMAND.match(line.strip()):
            yield Command(page, number, without_comment(line.strip()))
            continue
        for code in _INLINE.findall(line):
            if _COMMAND.match(code):
                yield Command(page, number, without_comment(code))


def without_comment(text: str) -> str:
    """A line without what the shell would not read: ``# …`` behind a blank, not in quotes."""
    quote = ""
    for place, letter in enumerate(text):
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "'\"":
            quote = letter
        elif letter == "#" and (place == 0 or text[place - 1].isspace()):
            return text[:place].strip()
    return text.strip()
