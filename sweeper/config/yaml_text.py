"""YAML that somebody else wrote, read with bounds: size, depth, aliases, and no tags of its own.

A few aliases of aliases stand for more data than any machine has (the "billion laughs"). What is
read is therefore counted as it would be without aliases before anything copies it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sweeper.errors import ConfigError

MAX_BYTES = 1_000_000
MAX_VALUES = 20_000
"""Values of a document, those behind an alias counted each time."""
MAX_DEPTH = 100


class YamlError(ValueError):
    """Text that is no YAML, or more than is read; one line says what."""


def load_yaml(text: str) -> Any:
    """Plain data from YAML text. Pure.

    Raises:
        YamlError: not YAML, a tag that is not YAML's own, or too large, too deep or without end.
    """
    import yaml

    if len(text) > MAX_BYTES:
        raise YamlError(f"it has {len(text)} characters, more than {MAX_BYTES}")
    try:
        _check_parts(yaml.parse(text, Loader=yaml.SafeLoader))
        data = yaml.safe_load(text)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f"line {mark.line + 1}: " if mark else ""
        raise YamlError(f"{line}{getattr(error, 'problem', None) or 'cannot be read'}") from error
    except YamlError:
        raise
    except ValueError as error:  # a date that is none, say
        raise YamlError(str(error)) from error
    if _count(data, {}, set()) > MAX_VALUES:
        raise YamlError(_TOO_MANY)
    return data


def read_yaml(path: Path, what: str, remedy: str = "correct the file there") -> Any:
    """Plain data from a YAML file.

    Args:
        path: the file.
        what: how messages name it, such as ``space=my_space.yaml``.
        remedy: for content that is no YAML.

    Raises:
        ConfigError: missing, unreadable, too large, or not YAML.
    """
    try:
        if (size := path.stat().st_size) > MAX_BYTES:
            raise ConfigError(
                f"{what}: the file has {size} bytes, more than {MAX_BYTES}",
                "give a file of settings; data for a workload are named by workload.path",
            )
        return load_yaml(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"{what}: {error.strerror or error}", "make the file readable") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{what}: not a text file", "save it as UTF-8") from error
    except YamlError as error:
        raise ConfigError(f"{what}: not valid YAML: {error}", remedy) from error


_TOO_MANY = f"it stands for more than {MAX_VALUES} values"


def _check_parts(events: Any) -> None:
    """Refuse what is too deep or too long while it is read, and before anything is made of it."""
    depth = 0
    for number, event in enumerate(events):
        kind = type(event).__name__
        depth += kind in {"MappingStartEvent", "SequenceStartEvent"}
        depth -= kind in {"MappingEndEvent", "SequenceEndEvent"}
        if depth > MAX_DEPTH:
            raise YamlError(f"it is nested more than {MAX_DEPTH} deep")
        if number > 2 * MAX_VALUES:
            raise YamlError(_TOO_MANY)


def _count(data: Any, counted: dict[int, int], above: set[int]) -> int:
    """Values in `data`; of what an alias repeats each time, though it is looked at once."""
    if not isinstance(data, dict | list):
        return 1
    mark = id(data)
    if mark in above:
        raise YamlError("it contains itself")
    if mark not in counted:
        above.add(mark)
        inner = data.values() if isinstance(data, dict) else data
        counted[mark] = 1 + sum(_count(item, counted, above) for item in inner)
        above.remove(mark)
    return counted[mark]
