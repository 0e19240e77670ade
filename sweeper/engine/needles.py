"""Fixed words that a pattern cannot do without: a quick look before a slow one. Pure.

A table of a hundred expressions on each of a hundred thousand lines takes half a minute; a search
for fixed words takes a second or two. The words are read off the expression itself:

    r"head size \\((?P<size>\\d+)\\) is bad|^Killed\\b"  →  ("head size (", "Killed")
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

MIN_CHARS = 4

_CLASS = re.compile(r"\[\^?\]?(?:\\.|[^\]\\])*\]")
_REPEAT = re.compile(r"[*+?]\??|\{\d*,?\d*\}\??")
_FLAGS = re.compile(r"\(\?[aiLmsux]+\)")
_NOT_LITERAL = frozenset(".^$")


def needles(pattern: str) -> tuple[str, ...]:
    """Words of which any line that matches has at least one; empty if none can be told.

    Args:
        pattern: a regular expression. Alternatives at its top level have a word each; what stands
            in groups counts for none.
    """
    if _FLAGS.match(pattern):
        return ()
    words = [max(runs, key=len, default="") for runs in _alternatives(pattern)]
    return tuple(words) if all(len(word) >= MIN_CHARS for word in words) else ()


class Quick:
    """A regular expression that is tried only where its needles are.

    Args:
        pattern: the expression, without flags that change what a letter is.
    """

    def __init__(self, pattern: str) -> None:
        self._needles = needles(pattern)
        self._search = re.compile(pattern).search

    def search(self, text: str) -> re.Match[str] | None:
        """Like `re.Pattern.search`."""
        if self._needles and not any(needle in text for needle in self._needles):
            return None
        return self._search(text)


class Index:
    """Which of many expressions are worth trying on a line.

    Each needle is entered under one run of `MIN_CHARS` characters of it, the one that fewest others
    have. A line is then looked through once, however many expressions there are.

    Args:
        patterns: the expressions, in the order in which they are to be tried.
    """

    def __init__(self, patterns: Sequence[re.Pattern[str]]) -> None:
        words = [() if p.flags & re.IGNORECASE else needles(p.pattern) for p in patterns]
        counts = Counter(gram for known in words for word in known for gram in _grams(word))
        self._always = frozenset(number for number, known in enumerate(words) if not known)
        self._by_gram: dict[str, set[int]] = {}
        for number, known in enumerate(words):
            for word in known:
                rarest = min(sorted(_grams(word)), key=counts.__getitem__)
                self._by_gram.setdefault(rarest, set()).add(number)
        self._entered = frozenset(self._by_gram)

    def candidates(self, text: str) -> list[int]:
        """Numbers of the expressions that may match, in order. All that match are among them."""
        found = self._entered & _grams(text)
        if not found:
            return sorted(self._always)
        return sorted(self._always.union(*(self._by_gram[gram] for gram in found)))


def _grams(text: str) -> set[str]:
    return {text[start : start + MIN_CHARS] for start in range(len(text) - MIN_CHARS + 1)}


def _alternatives(pattern: str) -> list[list[str]]:
    """Of each top-level alternative the runs of characters that stand in it as they are."""
    found: list[list[str]] = [[""]]
    place = 0
    while place < len(pattern):
        char = pattern[place]
        repeat = _REPEAT.match(pattern, place)
        if repeat is not None:
            # The character before it may be missing, or come again.
            found[-1][-1] = found[-1][-1][:-1]
            found[-1].append("")
            place = repeat.end()
        elif char == "|":
            found.append([""])
            place += 1
        elif char == "(":
            found[-1].append("")
            place = _group_end(pattern, place)
        elif char == "[":
            found[-1].append("")
            place = _class_end(pattern, place)
        elif char == "\\":
            _take(found[-1], pattern[place + 1], literal=not pattern[place + 1].isalnum())
            place += 2
        else:
            _take(found[-1], char, literal=char not in _NOT_LITERAL)
            place += 1
    return found


def _take(runs: list[str], char: str, *, literal: bool) -> None:
    if literal:
        runs[-1] += char
    else:
        runs.append("")


def _class_end(pattern: str, place: int) -> int:
    match = _CLASS.match(pattern, place)
    if match is None:
        raise ValueError(f"no end of the class at {place} in {pattern!r}")
    return match.end()


def _group_end(pattern: str, place: int) -> int:
    depth = 0
    while place < len(pattern):
        char = pattern[place]
        if char == "\\":
            place += 2
            continue
        if char == "[":
            place = _class_end(pattern, place)
            continue
        depth += (char == "(") - (char == ")")
        place += 1
        if depth == 0:
            return place
    raise ValueError(f"no end of a group in {pattern!r}")
