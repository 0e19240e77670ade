"""What was asked of an engine beside what is in effect. Pure.

A flag that an engine accepts and does not follow makes two deployments into one: the numbers of the
second would be told as the gain of a flag that did nothing. So such a launch fails, by the flag's
name. The opposite mistake costs a good deployment, so that two spellings of one value must never
count as a difference: numbers are compared as numbers, words without case, and what an engine is
known to write differently stands in a table of its own (`Tolerance`).
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

UNASKED = frozenset({"auto", "default", "none", ""})
"""Words by which a flag leaves the choice to the engine."""

_SUFFIXED = re.compile(r"(-?\d+(?:\.\d+)?)([kKmMgGtT])")
_DECIMAL = {"k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
_BINARY = {"K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
_TRUTH = {"true": True, "false": False}


@dataclass(frozen=True)
class Tolerance:
    """A difference that does not mean that a flag had no effect.

    Attributes:
        flag: underscored name; of a mapping's entry ``flag.entry``.
        reason: why the engine may say something else than what was asked.
        versions: engine versions in which it was seen.
        holds: asked, in effect → whether this is that difference.
    """

    flag: str
    reason: str
    versions: str
    holds: Callable[[Any, Any], bool]


def ineffective(
    asked: Mapping[str, Any],
    effective: Mapping[str, Any],
    *,
    tolerated: Iterable[Tolerance] = (),
) -> dict[str, str]:
    """Flags that had no effect: another value rules than the one asked for.

    Args:
        asked: flag → value, as the engine was given it; ``no_x: True`` counts as ``x: False``.
        effective: flag → value, as the engine tells it. A flag that is not in it is unknown, and
            never in the answer.
        tolerated: differences that are none.

    Returns:
        Flag → "asked 64, in effect 128", in the order asked.
    """
    table = tuple(tolerated)
    found: dict[str, str] = {}
    for name, value in _plain(asked).items():
        if name not in effective or _unasked(value):
            continue
        if not _same(name, value, effective[name], table):
            found[name] = f"asked {_text(value)}, in effect {_text(effective[name])}"
    return found


def not_told(asked: Mapping[str, Any], effective: Mapping[str, Any]) -> list[str]:
    """Flags of which the engine tells nothing, so that nobody knows whether they took effect."""
    return sorted(
        name
        for name, value in _plain(asked).items()
        if name not in effective and not _unasked(value)
    )


def _plain(asked: Mapping[str, Any]) -> dict[str, Any]:
    """Flags by their own names; the negative form turned round."""
    plain: dict[str, Any] = {}
    for name, value in asked.items():
        word = name.replace("-", "_")
        if word.startswith("no_") and _truth(value) is True:
            plain[word.removeprefix("no_")] = False
        else:
            plain[word] = value
    return plain


def _unasked(value: Any) -> bool:
    if value is None:
        return True
    # -1 is the number by which lengths and sizes are left to an engine.
    return value == -1 or (isinstance(value, str) and value.strip().lower() in {*UNASKED, "-1"})


def _same(name: str, asked: Any, effective: Any, tolerated: Sequence[Tolerance]) -> bool:
    if any(entry.flag == name and entry.holds(asked, effective) for entry in tolerated):
        return True
    asked, effective = _opened(asked), _opened(effective)
    if isinstance(asked, Mapping):
        return isinstance(effective, Mapping) and all(
            _same(f"{name}.{key}", value, effective[key], tolerated)
            for key, value in asked.items()
            if key in effective and not _unasked(value)
        )
    if isinstance(asked, list | tuple) or isinstance(effective, list | tuple):
        ones, others = _items(asked), _items(effective)
        return len(ones) == len(others) and all(
            _same(name, one, other, tolerated) for one, other in zip(ones, others, strict=True)
        )
    return _same_value(asked, effective)


def _same_value(asked: Any, effective: Any) -> bool:
    if isinstance(asked, bool) or isinstance(effective, bool):
        return _truth(asked) is not None and _truth(asked) == _truth(effective)
    if effective is None:
        return False
    one, other = as_number(asked), as_number(effective)
    if one is not None and other is not None:
        return math.isclose(one, other, rel_tol=1e-6)
    return _word(asked) == _word(effective) or _same_path(str(asked), str(effective))


def as_number(value: Any) -> float | None:
    """A number, also from text and with a suffix: 1k is 1000, 1K is 1024. None if it is none."""
    if isinstance(value, int | float):
        return float(value)
    text = str(value).strip()
    match = _SUFFIXED.fullmatch(text)
    if match is not None:
        return float(match.group(1)) * {**_DECIMAL, **_BINARY}[match.group(2)]
    try:
        return float(text)
    except ValueError:
        return None


def _truth(value: Any) -> bool | None:
    if isinstance(value, bool):
        return value
    if value in (0, 1, "0", "1"):
        return bool(int(value))
    return _TRUTH.get(str(value).strip().lower())


def _word(value: Any) -> str:
    text = value if isinstance(value, str) else str(value)
    return text.strip().strip("'\"").lower().replace("-", "_").removeprefix("torch.")


def _same_path(asked: str, effective: str) -> bool:
    """Whether one is the whole path of the other: engines run in folders of their own."""
    if "/" not in effective:
        return False
    parts = [part for part in PurePath(asked).parts if part != "."]
    return bool(parts) and list(PurePath(effective).parts[-len(parts) :]) == parts


def _opened(value: Any) -> Any:
    """A mapping or list that is written as JSON, opened; everything else as it is."""
    if isinstance(value, str) and value.strip()[:1] in {"{", "["}:
        try:
            return json.loads(value)
        except ValueError:
            return value
    return value


def _items(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else [value]


def _text(value: Any) -> str:
    return json.dumps(dict(value), default=str) if isinstance(value, Mapping) else str(value)
