"""One text that an engine is known to fail with, as a value: what it means and teaches. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from sweeper.engine.log_lines import MAX_CAUSE_CHARS
from sweeper.verdicts import Verdict

Learnt = dict[str, Any]
"""Figures by name, with units: numbers, words, or a list of sizes."""

MAX_FIGURE_DIGITS = 18


@dataclass(frozen=True)
class Rule:
    """One text that an engine is known to fail with.

    Attributes:
        name: short identifier; several wordings of one kind share it.
        pattern: searched in a cleaned line.
        verdict: what it means at start.
        remedy: what the user can change.
        versions: engine versions in which the text was seen; `any` where it is not the engine's.
        learn: figures from the match, named with units.
        judge: refines the verdict by figures of the match and the rest of the log.
        every_launch: a fault of the machine that no choice of parameters avoids.
        follows: often the consequence of another failure: an exception before it goes first.
        raised_in: searched in the path of the source file that raised the text; such a rule is for
            what a server says before it is ready.
    """

    name: str
    pattern: re.Pattern[str]
    verdict: Verdict
    remedy: str
    versions: str = "any"
    learn: Callable[[re.Match[str]], Learnt] | None = None
    judge: Callable[[Learnt, str], tuple[Verdict, str] | None] | None = None
    every_launch: bool = False
    follows: bool = False
    raised_in: re.Pattern[str] | None = None


def rule(
    name: str,
    pattern: str,
    verdict: Verdict,
    remedy: str,
    versions: str = "any",
    *,
    every_launch: bool = False,
    follows: bool = False,
    **figures: type[int] | type[float] | type[str],
) -> Rule:
    """A rule whose named groups are its figures, each with its type."""
    learn = groups(**figures) if figures else None
    return Rule(
        name,
        re.compile(pattern),
        verdict,
        remedy,
        versions,
        learn,
        every_launch=every_launch,
        follows=follows,
    )


def number(text: str) -> float:
    """A figure as logs write it, thousands separated by commas."""
    return float(text.replace(",", ""))


def groups(
    **kinds: type[int] | type[float] | type[str],
) -> Callable[[re.Match[str]], Learnt]:
    """A `Rule.learn` that takes named groups as figures.

    Groups that did not match are left out, and so is what only looks like a figure.
    """

    def learn(match: re.Match[str]) -> Learnt:
        values: Mapping[str, str | None] = match.groupdict()
        learnt: Learnt = {}
        for name, kind in kinds.items():
            text = values.get(name)
            if text is None:
                continue
            value = text.strip()[:MAX_CAUSE_CHARS] if kind is str else _figure(text, kind)
            if value is not None:
                learnt[name] = value
        return learnt

    return learn


def _figure(text: str, kind: type[int] | type[float] | type[str]) -> float | int | None:
    if len(text) > MAX_FIGURE_DIGITS:
        return None
    try:
        return int(number(text)) if kind is int else number(text)
    except ValueError:
        return None
