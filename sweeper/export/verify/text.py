"""A verification for the terminal, for the README of the exported folder, and as a file."""

from __future__ import annotations

import json
from pathlib import Path

from sweeper.export import markdown
from sweeper.export.verify.judge import Figure, LimitCheck, Status
from sweeper.export.verify.outcome import Verification
from sweeper.pareto.rule import is_floor, metric_of
from sweeper.report.terminal import words_table
from sweeper.report.words import METRIC_LABELS, number
from sweeper.tracking.paths import atomic_write_text

VERIFIED_NAME, README_NAME = "verified.json", "README.md"
TITLE = "## Verified"
_HEADS = {
    Status.KEPT: "It keeps what was promised",
    Status.NOT_KEPT: "It does not keep what was promised",
    Status.CANNOT_TELL: "Whether it keeps what was promised, this cannot tell",
}
_COLUMNS = ("figure", "promised", "started", "change", "noise", "")


def write_verification(folder: Path, found: Verification) -> None:
    """``verified.json``, and a paragraph in the README beside it. Raises StudyError if refused."""
    text = json.dumps(found.to_dict(), indent=2, allow_nan=False, ensure_ascii=False)
    atomic_write_text(folder / VERIFIED_NAME, f"{text}\n")
    readme = folder / README_NAME
    before = readme.read_text(encoding="utf-8") if readme.is_file() else ""
    kept, _, _ = before.partition(f"\n{TITLE}\n")
    atomic_write_text(readme, f"{kept.rstrip()}\n\n{paragraph(found)}\n".lstrip())


def paragraph(found: Verification) -> str:
    """For the README."""
    lines = [f"**{headline(found)}**", *(one for one in found.notes)]
    told = " ".join(markdown.sentence(line) for line in lines)
    return f"{TITLE}\n\n{told} Figures: {markdown.code(VERIFIED_NAME)}."


def headline(found: Verification) -> str:
    """The verdict in one sentence."""
    often = "once" if found.launches == 1 else f"{found.launches} times"
    how = f" Started {often} and driven at {found.level}" if found.launches else " Started"
    counted = f" with {found.requests} requests" if found.requests else ""
    when = f" on {found.verified_at[:10]}"
    return f"{_HEADS[found.status]}: {'; '.join(found.reasons)}.{how}{counted}{when}."


def render(found: Verification) -> str:
    """For the terminal: the verdict, every figure beside its promise, arguments, what to do."""
    parts = [headline(found)]
    rows = [*map(_figure_row, found.figures), *map(_limit_row, found.limits)]
    if rows:
        parts.append("\n" + words_table("promised and started", _COLUMNS, rows) + "\n")
    told = [one for one in found.arguments if one.told]
    if found.arguments and told:
        parts.append(f"in effect as exported: {len(told)} of {len(found.arguments)} arguments")
    parts += found.notes
    if found.evidence:
        parts.append(f"evidence:\n{found.evidence}")
    if found.remedy:
        parts.append(f"remedy: {found.remedy}")
    return "\n".join(parts)


def _figure_row(one: Figure) -> list[str]:
    margin = "not known" if one.margin_percent is None else f"±{one.margin_percent:.2g} %"
    return [
        METRIC_LABELS.get(one.metric, one.metric),
        _with_interval(one.promised, one.promised_interval),
        _with_interval(one.verified, one.verified_interval),
        "-" if one.change_percent is None else f"{one.change_percent:+.1f} %",
        margin,
        str(one.status),
    ]


def _limit_row(one: LimitCheck) -> list[str]:
    metric = metric_of(one.name)
    side = "at least" if is_floor(one.name) else "at most"
    label = METRIC_LABELS.get(metric, metric)
    return [label, f"{side} {number(one.limit)}", number(one.verified), "", "", str(one.status)]


def _with_interval(value: float | None, interval: tuple[float, float] | None) -> str:
    if interval is None:
        return number(value)
    return f"{number(value)} [{number(interval[0])}, {number(interval[1])}]"
