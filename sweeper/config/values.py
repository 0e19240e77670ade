"""Does a value fit its key? Asked before composition, so that the message can name the key."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from sweeper.config.fields import Field, find, hints, leaf_keys
from sweeper.config.schema import SweeperConfig
from sweeper.config.suggest import nearest
from sweeper.errors import ConfigError

MAX_LISTED = 12
"""Neighbours of a misspelt key that are listed beside the nearest."""


def check_value(key: str, value: Any, *, where: str = "") -> None:
    """Raise ConfigError if `key` is unknown or does not take `value`.

    Args:
        key: dotted key.
        value: plain Python value (numbers, text, lists, mappings, None).
        where: origin named in the message, such as a file.
    """
    field = find(key)
    if field is None:
        raise unknown_key(key, where=where)
    if field.kind == "section":
        _check_section(field, value, where)
    elif not _fits(field, value):
        raise _wrong_value(field, value, where)
    elif field.kind == "open" and isinstance(value, Mapping):
        for name, inner in value.items():
            check_value(f"{key}.{name}", inner, where=where)


def unknown_key(key: str, *, where: str = "") -> ConfigError:
    """The error for a key that the schema does not have."""
    parent, _, last = key.rpartition(".")
    holder = find(parent) if parent else None
    is_entry = holder is not None and dataclasses.is_dataclass(holder.annotation)
    if holder is not None and holder.kind != "section" and not is_entry:
        return ConfigError(
            f"{_at(where)}there is nothing below {parent}, which takes {holder.takes} (key {key})",
            f"set the whole value: {parent}=...",
        )
    remedy = _nearest_key(last, parent, _names_below(holder, parent))
    return ConfigError(f"{_at(where)}there is no configuration key {key}", remedy)


def _nearest_key(last: str, parent: str, siblings: list[str]) -> str:
    """A neighbour that is alike, the same name elsewhere, an alike name elsewhere, else a list."""
    everywhere = leaf_keys()
    same = [key for key in everywhere if "." in key and key.rpartition(".")[2] == last]
    if same:
        return f"did you mean {' or '.join(same[:4])}?"
    if close := nearest(last, siblings):
        dotted = f"{parent}.{close}" if parent else close
        # Where one is near, a wall of others helps nobody.
        is_short = parent and len(siblings) <= MAX_LISTED
        listing = f" (keys of {parent}: {', '.join(siblings)})" if is_short else ""
        return f"did you mean {dotted}?{listing}"
    if parent and not siblings and (close := nearest(f"{parent}.{last}", everywhere, cutoff=0.7)):
        return f"did you mean {close}?"
    by_last = {key.rpartition(".")[2]: key for key in everywhere}
    if not parent and (close := nearest(last, by_last, cutoff=0.75)):
        return f"did you mean {by_last[close]}?"
    if parent and siblings:
        return f"keys of {parent}: {', '.join(siblings)}"
    return f"keys begin with one of: {', '.join(sorted(hints(SweeperConfig)))}"


def _names_below(holder: Field | None, parent: str) -> list[str]:
    annotation = None if holder is None else holder.annotation
    if isinstance(annotation, type) and dataclasses.is_dataclass(annotation):
        return sorted(hints(annotation))
    return [] if parent else sorted(hints(SweeperConfig))


def _check_section(field: Field, value: Any, where: str) -> None:
    if not isinstance(value, Mapping):
        names = list(hints(field.annotation))  # as declared: what is asked for most comes first
        raise ConfigError(
            f"{_at(where)}{field.key} has keys of its own, it is not {show(value)}",
            f"set one of them: {', '.join(f'{field.key}.{name}=...' for name in names[:4])}",
        )
    for name, inner in value.items():
        check_value(f"{field.key}.{name}", inner, where=where)


def _fits(field: Field, value: Any) -> bool:
    """Whether the typed node that Hydra will fill takes the value."""
    if field.kind == "inside":
        text_only = field.annotation is str
        return not text_only or (value is not None and not isinstance(value, (Mapping, list)))
    if field.kind == "open":
        return isinstance(value, Mapping)
    listed = field.takes.startswith("a list")
    if isinstance(value, Mapping) or (isinstance(value, list) and not listed):
        return False
    return _node_takes(field, value)


def _node_takes(field: Field, value: Any) -> bool:
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException

    try:
        OmegaConf.update(OmegaConf.structured(field.owner), field.key.rpartition(".")[2], value)
    except (OmegaConfBaseException, ValueError):
        return False
    return True


def _wrong_value(field: Field, value: Any, where: str) -> ConfigError:
    example = "" if "for example" in field.takes else _example(field)
    return ConfigError(
        f"{_at(where)}{field.key} takes {field.takes}, not {show(value)}",
        f"give {field.takes}{example}",
    )


def _example(field: Field) -> str:
    """The schema's own default as an example, where it has one worth showing."""
    name = field.key.rpartition(".")[2]
    for attribute in dataclasses.fields(field.owner):
        simple = isinstance(attribute.default, (bool, int, float, str))
        if attribute.name == name and simple:
            return f", for example {field.key}={show(attribute.default, quote=False)}"
    return ""


def show(value: Any, *, quote: bool = True) -> str:
    """A value as a user would type it."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return f"'{value}'" if quote else value
    return str(value)


def _at(where: str) -> str:
    return f"{where}: " if where else ""
