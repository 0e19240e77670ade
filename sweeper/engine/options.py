"""`engine.options` of the configuration as a variant's own dataclass."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import MISSING, Field, fields
from typing import Any, TypeVar

from sweeper.errors import ConfigError

T = TypeVar("T")


def read_options(kind: type[T], options: Mapping[str, Any], *, where: str = "engine.options") -> T:
    """Build `kind` from a mapping, the types of its values checked against its defaults.

    Raises:
        ConfigError: a name that the variant does not know, or a value of another type.
    """
    if not isinstance(options, Mapping):
        raise ConfigError(
            f"{where} is {options!r}, which is no mapping",
            f"write a mapping, {{name: value}}, with names of: {', '.join(_names(kind))}",
        )
    defaults = {field.name: _default(field) for field in fields(kind)}  # type: ignore[arg-type]
    for name, value in options.items():
        if name not in defaults:
            near = difflib.get_close_matches(str(name), defaults, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"it has: {', '.join(defaults)}"
            raise ConfigError(f"{where}.{name} does not exist", hint)
        if not _fits(value, defaults[name]):
            raise ConfigError(
                f"{where}.{name} is {value!r}, which is no {_kind_of(defaults[name])}",
                f"the default is {defaults[name]!r}",
            )
    return kind(**options)


_KINDS: dict[type, str] = {
    dict: "mapping",
    float: "number",
    int: "number",
    str: "text",
    bool: "true or false",
}


def _names(kind: type[Any]) -> list[str]:
    return [field.name for field in fields(kind)]


def _default(field: Field[Any]) -> Any:
    return field.default if field.default_factory is MISSING else field.default_factory()


def _kind_of(default: Any) -> str:
    return _KINDS.get(type(default), type(default).__name__)


def _fits(value: Any, default: Any) -> bool:
    if isinstance(default, dict):
        return isinstance(value, Mapping)
    if isinstance(default, list):
        return isinstance(value, list | tuple)
    if isinstance(default, bool):
        return isinstance(value, bool)
    if isinstance(default, int | float):
        return isinstance(value, int | float) and not isinstance(value, bool)
    return not isinstance(default, str) or isinstance(value, str)
