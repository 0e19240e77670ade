"""A group given as the user's own YAML file: `space=my_space.yaml`."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from sweeper.config.fields import find, hints
from sweeper.config.values import check_value
from sweeper.config.yaml_text import read_yaml
from sweeper.errors import ConfigError


def is_file_option(option: str) -> bool:
    """True if a group's option is a file's path rather than a name."""
    return option.endswith((".yaml", ".yml"))


def read_group_file(group: str, option: str) -> dict[str, Any]:
    """Content of a group's file, checked against the schema; `name` defaults to the file's.

    Raises:
        ConfigError: missing, not YAML, or with a key or value that the group does not take.
    """
    path = Path(option).expanduser()
    data = _load(group, path)
    if not isinstance(data, dict):
        raise ConfigError(
            f"{group}={option}: the file holds {_what(data)}, not a mapping",
            f"write the keys of the group, one a line: {', '.join(_keys(group))}",
        )
    if set(data) == {group}:  # a file that repeats the group's name on top is meant the same
        data = data[group] or {}
    for name, value in data.items():
        check_value(f"{group}.{name}", value, where=str(path))
    return {"name": path.stem, **data}


def read_recipe_file(group: str, option: str) -> tuple[str, dict[str, Any]]:
    """Name and content of a recipe of the user's own: one recipe a file, named like the file.

    Raises:
        ConfigError: as `read_group_file`.
    """
    path = Path(option).expanduser()
    data = _load(group, path)
    name = re.sub(r"[^A-Za-z0-9_-]+", "_", path.stem)
    if not isinstance(data, dict):
        raise ConfigError(
            f"{group}={option}: the file holds {_what(data)}, not a mapping",
            "write a recipe's keys, one a line: tool, bits, group_size ...",
        )
    for key, value in data.items():
        check_value(f"{group}.recipes.{name}.{key}", value, where=str(path))
    return name, data


def _load(group: str, path: Path) -> Any:
    if not path.is_file():
        what = "is a folder" if path.is_dir() else "does not exist"
        raise ConfigError(
            f"{group}={path}: the file {what}",
            f"give the path of a YAML file (looked up from {Path.cwd()})",
        )
    return read_yaml(path, f"{group}={path}")


def _keys(group: str) -> list[str]:
    field = find(group)
    return sorted(hints(field.annotation)) if field else []


def _what(data: Any) -> str:
    return "nothing" if data is None else f"a {type(data).__name__}"
