"""The checkpoints made on this machine, as text and as JSON. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sweeper.quantize.cache import GIB, Entry
from sweeper.report.terminal import words_table
from sweeper.report.words import seconds


def render_checkpoints(
    folder: Path, there: Sequence[Entry], removed: Sequence[Entry], kept: Sequence[Entry]
) -> str:
    """What is in the cache, and what has become of what was to be removed.

    Args:
        folder: the cache.
        there: what is in it now.
        removed: what was removed.
        kept: what was to be removed and is in use.
    """
    lines = []
    if removed:
        keys = ", ".join(entry.key for entry in removed)
        lines.append(f"removed {keys}: {_gib(removed)} free now")
    lines += [f"{entry.key} stays: it is in use or being made" for entry in kept]
    if not there:
        return "\n".join([*lines, f"no checkpoint has been made in {folder}"])
    title = f"checkpoints in {folder}: {_gib(there)}"
    columns = ["key", "recipe", "model", "size", "made", "last used", "state"]
    whole = ["key", "size", "last used"]
    return "\n".join([*lines, words_table(title, columns, map(_cells, there), whole)])


def checkpoints_json(
    folder: Path, there: Sequence[Entry], removed: Sequence[Entry], kept: Sequence[Entry]
) -> str:
    """The same as one JSON object."""
    plain = {
        "folder": str(folder),
        "size_bytes": sum(entry.size_bytes for entry in there),
        "checkpoints": [_row(entry) for entry in there],
        "removed": [{"key": entry.key, "size_bytes": entry.size_bytes} for entry in removed],
        "kept": [entry.key for entry in kept],
    }
    return json.dumps(plain, indent=2)


def _row(entry: Entry) -> dict[str, Any]:
    facts = entry.facts
    return {
        "key": entry.key,
        "path": str(entry.path),
        "state": str(entry.state),
        "in_use": entry.in_use,
        "size_bytes": entry.size_bytes,
        "recipe": facts.get("recipe"),
        "model": facts.get("model"),
        "versions": facts.get("versions"),
        "made_s": facts.get("seconds"),
        "made_at": facts.get("made_at"),
        "last_used": None if entry.last_used_s is None else _time(entry.last_used_s),
    }


def _cells(entry: Entry) -> list[str]:
    row = _row(entry)
    recipe, model = row["recipe"] or {}, row["model"] or {}
    return [
        entry.key,
        _recipe(recipe),
        Path(str(model.get("path") or "-")).name,
        _gib([entry]),
        f"{str(row['made_at'] or '-')[:10]}{_took(row['made_s'])}",
        str(row["last_used"] or "-")[:10],
        f"{entry.state}, in use" if entry.in_use else str(entry.state),
    ]


def _took(made_s: float | None) -> str:
    return "" if made_s is None else f" in {seconds(made_s)}"


def _recipe(recipe: Mapping[str, Any]) -> str:
    """``w4a16: llmcompressor W4A16, bits 4, group size 64``."""
    if not recipe:
        return "-"
    said = [f"{recipe.get('tool', '')} {recipe.get('method', '')}".strip()]
    said += [
        f"{name.replace('_', ' ')} {recipe[name]}"
        for name in ("bits", "group_size", "calibration_samples")
        if name in recipe
    ]
    return f"{recipe.get('name', '')}: {', '.join(said)}"


def _gib(listed: Sequence[Entry]) -> str:
    return f"{sum(entry.size_bytes for entry in listed) / GIB:.2f} GiB"


def _time(at_s: float) -> str:
    return datetime.fromtimestamp(at_s, UTC).isoformat(timespec="seconds")
