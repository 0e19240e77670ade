"""Where a checkpoint that was made here comes from, and that its folder may go. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sweeper.export.bundle import ExportInput


def made_lines(source: ExportInput) -> list[str]:
    """Comments of an exported file: what the checkpoint is, then what to do; none for any other."""
    if not source.made:
        return []
    recipe, versions = _plain(source.made.get("recipe")), _plain(source.made.get("versions"))
    fields = [f"{name}={recipe[name]}" for name in recipe if name not in {"name", "tool"}]
    tools = [f"{name} {versions[name]}" for name in sorted(versions)]
    what = [
        f"recipe {recipe.get('name', '?')} of {recipe.get('tool', '?')} ({', '.join(fields)})",
        f"digest {source.made.get('digest', '?')}",
        *([f"made with {', '.join(tools)}"] if tools else []),
    ]
    return [f"Checkpoint made by sweeper: {'; '.join(what)}.", cache_warning(source)]


def cache_warning(source: ExportInput) -> str:
    """Why the folder must be copied before it is relied on."""
    return (
        f"{source.model_path} is in the cache of sweeper, from which `python -m sweeper "
        "checkpoints` or quantize.cache_limit_gib may remove it: copy the folder, and name the "
        "copy as the model."
    )


def _plain(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
