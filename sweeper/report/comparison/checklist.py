"""The checklist of conditions, filled in for two sides. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import PurePath
from typing import Any

from sweeper.load.level import CLOSED, SCHEDULED
from sweeper.report.comparison.conditions import (
    ACHIEVED_LENGTHS,
    ACHIEVED_LOAD,
    CHECKPOINT,
    CLIENT,
    ENGINE,
    HEAD,
    LEVELS,
    MACHINE,
    MADE,
    REQUESTS,
    WORK,
    Condition,
    Row,
    Status,
    Weight,
    compared,
)
from sweeper.report.comparison.side import Level, Side
from sweeper.report.words import number

LENGTH_TOLERANCE_SHARE = 0.02
LENGTH_TOLERANCE_TOKENS = 1.0
LOAD_TOLERANCE_SHARE = 0.05
# Arguments that say where a server listens or what it measured of itself, not how it serves.
_INCIDENTAL = frozenset(
    {"host", "port", "model", "served_model_name", "api_key", "uvicorn_log_level", "download_dir"}
    | {"num_kv_blocks", "num_cpu_blocks", "kv_cache_tokens"}
)


def checklist(a: Side, b: Side, common: Sequence[str]) -> list[Row]:
    """All conditions of two sides, in the order of the checklist.

    Args:
        a, b: the sides.
        common: names of the load levels that are compared; achieved lengths and load are theirs.
    """
    return [
        *(_row(condition, a, b) for condition in HEAD),
        *_achieved(ACHIEVED_LENGTHS, a, b, common),
        *(_row(condition, a, b) for condition in WORK),
        _levels(a, b),
        *_achieved_load(a, b, common),
        *_engine(a, b),
        _row(CHECKPOINT, a, b),
        *_made(a, b),
        *_arguments(a, b),
        *(_row(condition, a, b) for condition in MACHINE),
        _requests(a, b, common),
        *(_row(condition, a, b) for condition in CLIENT),
    ]


def _row(condition: Condition, a: Side, b: Side) -> Row:
    left, right = a.conditions.get(condition.key), b.conditions.get(condition.key)
    found = compared(condition, left, right)
    if condition.key == "model" and found.status is Status.DIFFERS and _same_model(a, b):
        return Row(condition, left, right, Status.SAME)
    if condition.key == "gpu" and found.status is Status.DIFFERS and (a.foreign or b.foreign):
        return Row(condition, left, right, _device_status(str(left), str(right)))
    if condition.key == "checkpoint" and found.status is Status.DIFFERS and _same_content(a, b):
        return Row(condition, left, right, Status.SAME)
    return _without_common(found)


def _without_common(row: Row) -> Row:
    """Of two mappings that differ, what is the same in both would only hide what is not."""
    a, b = row.a, row.b
    if row.status is not Status.DIFFERS or not isinstance(a, Mapping) or not isinstance(b, Mapping):
        return row
    return Row(row.condition, _without(a, b), _without(b, a), Status.DIFFERS)


def _same_content(a: Side, b: Side) -> bool:
    """True if both served the same files, wherever they lie."""
    digests = {side.conditions.get("checkpoint_digest") for side in (a, b)}
    return len(digests) == 1 and None not in digests


def _made(a: Side, b: Side) -> list[Row]:
    """How the checkpoints were made, where one was made here.

    A trial without one serves what somebody else made: that is told, not unknown.
    """
    if not any("recipe" in side.conditions for side in (a, b)):
        return []
    rows = [compared(c, _of_making(c.key, a), _of_making(c.key, b)) for c in MADE]
    return [_without_common(row) for row in rows]


def _of_making(key: str, side: Side) -> Any:
    if key in side.conditions or side.foreign:
        return side.conditions.get(key)
    return "none" if "recipe" in side.conditions else "not made here"


def _device_status(a: str, b: str) -> Status:
    """Other clients write ``h200`` for ``NVIDIA H200``: the words of one among those of both."""
    words = [set(re.findall(r"[a-z0-9]+", name.lower())) for name in (a, b)]
    return Status.SAME if words[0] <= words[1] or words[1] <= words[0] else Status.DIFFERS


def _without(values: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in values.items() if k not in other or other[k] != v}


def _same_model(a: Side, b: Side) -> bool:
    """By digest where both have one; else by the last part of the path or hub name."""
    digests = [side.conditions.get("digest") for side in (a, b)]
    if all(digests):
        return bool(digests[0] == digests[1])
    names = [
        {
            PurePath(str(side.conditions[key])).name.lower()
            for key in ("model", "model_path")
            if side.conditions.get(key)
        }
        for side in (a, b)
    ]
    return bool(names[0] & names[1])


def _engine(a: Side, b: Side) -> list[Row]:
    """Versions only mean something for one engine; another engine is another deployment."""
    rows = [_row(condition, a, b) for condition in ENGINE]
    if rows[0].status is not Status.DIFFERS:
        return rows
    meant = Condition("engine_version", "engine version", Weight.MEANT)
    return [rows[0], Row(meant, rows[1].a, rows[1].b, rows[1].status), *rows[2:]]


def _achieved(
    conditions: Mapping[str, Condition], a: Side, b: Side, common: Sequence[str]
) -> list[Row]:
    left, right = _levels_of(a, common), _levels_of(b, common)
    if not common:
        # No results to compare, but whether the work was the same can still be seen.
        left, right = list(a.levels[:1]), list(b.levels[:1])
    if len(left) != len(right):
        left = right = []
    return [
        _over_levels(condition, metric, left, right, _length_near)
        for metric, condition in conditions.items()
    ]


def _achieved_load(a: Side, b: Side, common: Sequence[str]) -> list[Row]:
    """Closed levels were kept if as many requests were under way, others if as many arrived."""
    rows = []
    for metric, condition in ACHIEVED_LOAD.items():
        closed = metric == "achieved_concurrency"
        kinds = {CLOSED} if closed else SCHEDULED
        names = [x.name for x in a.levels if x.kind in kinds and x.name in common]
        if names:
            left, right = _levels_of(a, names), _levels_of(b, names)
            rows.append(_over_levels(condition, metric, left, right, _load_near))
    return rows


def _levels_of(side: Side, names: Sequence[str]) -> list[Level]:
    by_name = {level.name: level for level in side.levels}
    return [by_name[name] for name in names]


def _over_levels(
    condition: Condition,
    metric: str,
    a: Sequence[Level],
    b: Sequence[Level],
    near: Callable[[float, float], bool],
) -> Row:
    """One row for a figure of every level; without a level in common nothing is known."""
    left = [level.metrics.get(metric) for level in a]
    right = [level.metrics.get(metric) for level in b]
    pairs = [(x, y) for x, y in zip(left, right, strict=True) if x is not None and y is not None]
    row = compared(condition, _range(left), _range(right))
    if not pairs or row.status not in {Status.SAME, Status.DIFFERS}:
        return row
    status = Status.SAME if all(near(x, y) for x, y in pairs) else Status.DIFFERS
    return Row(condition, row.a, row.b, status)


def _length_near(a: float, b: float) -> bool:
    return abs(a - b) <= max(LENGTH_TOLERANCE_TOKENS, LENGTH_TOLERANCE_SHARE * max(a, b))


def _load_near(a: float, b: float) -> bool:
    return abs(a - b) <= LOAD_TOLERANCE_SHARE * max(a, b)


def _range(values: Sequence[float | None]) -> str | None:
    found = [value for value in values if value is not None]
    if not found:
        return None
    low, high = number(min(found)), number(max(found))
    return low if low == high else f"{low} to {high}"


def _levels(a: Side, b: Side) -> Row:
    left, right = ([level.name for level in side.levels] or None for side in (a, b))
    return compared(LEVELS, left, right)


def _requests(a: Side, b: Side, common: Sequence[str]) -> Row:
    counts = []
    for side in (a, b):
        told = [level.n for level in _levels_of(side, common) if level.n is not None]
        counts.append(_range([float(n) for n in told]))
    return compared(REQUESTS, *counts)


def _arguments(a: Side, b: Side) -> list[Row]:
    """Deployment parameters and effective engine arguments: those that differ, and a summary."""
    rows = _differing("deployment", a.deployment, b.deployment, default="default")
    seen = {row.condition.key.partition(":")[2] for row in rows}
    effective = _differing("argument", a.arguments, b.arguments, default=None)
    rows += [row for row in effective if row.condition.key.partition(":")[2] not in seen]
    for key, label, left, right in (
        ("deployment", "deployment", a.deployment, b.deployment),
        ("arguments", "effective engine arguments", a.arguments, b.arguments),
    ):
        if left is None or right is None or not any(_is(key, row) for row in rows):
            rows.append(compared(Condition(key, label, Weight.MEANT), left, right))
    return [_summed(row) for row in rows]


def _is(key: str, row: Row) -> bool:
    return row.condition.key.startswith(key.removesuffix("s") + ":")


def _differing(
    kind: str, a: Mapping[str, Any] | None, b: Mapping[str, Any] | None, *, default: Any
) -> list[Row]:
    if a is None or b is None:
        return []
    names = sorted((set(a) | set(b)) - _INCIDENTAL)
    return [
        compared(
            Condition(f"{kind}:{name}", f"{kind} {name}", Weight.MEANT),
            a.get(name, default),
            b.get(name, default),
        )
        for name in names
        if a.get(name, default) != b.get(name, default)
    ]


def _summed(row: Row) -> Row:
    """Long lists of arguments are told by their number."""
    if row.condition.key != "arguments":
        return row
    a, b = (None if v is None else f"{len(v)} arguments" for v in (row.a, row.b))
    if row.status is Status.DIFFERS:  # only in what is incidental, else it would have its own rows
        return Row(row.condition, a, b, Status.SAME)
    return Row(row.condition, a, b, row.status)
