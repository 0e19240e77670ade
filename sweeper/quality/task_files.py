"""Task files of one's own, as far as sweeper must know them: names, and where their data is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import yaml

# Builders of the `datasets` library that read files; any other name is a data set of the hub.
_FILE_FORMATS = frozenset({"json", "csv", "text", "parquet", "arrow", "pandas", "xml"})
_MAX_INCLUDES = 8
Task = Mapping[str, Any]


class _TolerantLoader(yaml.SafeLoader):
    """Reads task files as data: what names code is not imported."""


_TolerantLoader.add_multi_constructor("!", lambda loader, suffix, node: None)


def local_tasks(folder: Path) -> dict[str, Task]:
    """Tasks defined below `folder`, by name. What cannot be read is left for lm-eval to refuse."""
    found: dict[str, Task] = {}
    for path in sorted(folder.rglob("*.yaml")):
        task = _read(path)
        if isinstance(task.get("task"), str):
            found[task["task"]] = {**task, "folder": path.parent}
    return found


def need_no_network(names: Iterable[str], tasks: Mapping[str, Task], folder: Path) -> bool:
    """Whether all tasks named have their data in files.

    Args:
        names: tasks asked for.
        tasks: those in `folder`.
        folder: from where relative paths of data start.
    """
    return all(name in tasks and _has_files(tasks[name], folder) for name in names)


def _has_files(task: Task, folder: Path) -> bool:
    source = task.get("dataset_path")
    if not isinstance(source, str) or "://" in str(task.get("dataset_kwargs")):
        return False
    return source in _FILE_FORMATS or (folder / source).is_dir()


def _read(path: Path, depth: int = 0) -> dict[str, Any]:
    """One file, with what it includes; its own fields win."""
    try:
        content = _content(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError):
        return {}
    if not isinstance(content, dict):
        return {}
    included = content.pop("include", None) if depth < _MAX_INCLUDES else None
    files = included if isinstance(included, list) else [included] if included else []
    merged: dict[str, Any] = {}
    for name in files:
        merged |= _read(path.parent / str(name), depth + 1)
    return merged | content


def _content(text: str) -> Any:
    """The data in a text. A loader of its own, since `yaml.load` would take unsafe ones as well."""
    loader = _TolerantLoader(text)
    try:
        return loader.get_single_data()
    finally:
        loader.dispose()
