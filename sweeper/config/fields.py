"""The schema as a tree of keys: what a key is, what it takes, which keys there are.

budget            section (a group of its own)
budget.launches   leaf, "a whole number or null"
engine.args       open: any key may stand below it
"""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from sweeper.config.schema import SweeperConfig

_HINTS: dict[type[Any], dict[str, Any]] = {}
_WORDS = {int: "a whole number", float: "a number", bool: "true or false", str: "text"}


@dataclass(frozen=True)
class Field:
    """What stands at a key.

    Attributes:
        key: dotted key.
        kind: ``section`` (a dataclass), ``open`` (a mapping with free keys), ``inside`` (a key
            below an open one) or ``leaf``.
        annotation: its type; for ``inside`` the type of the mapping's values.
        owner: the dataclass whose attribute it is.
    """

    key: str
    kind: str
    annotation: Any
    owner: type[Any]

    @property
    def takes(self) -> str:
        """What value it takes, in words."""
        return describe_type(self.annotation)


def hints(cls: type[Any]) -> dict[str, Any]:
    """Attribute → resolved type of a schema class."""
    if cls not in _HINTS:
        _HINTS[cls] = typing.get_type_hints(cls)
    return _HINTS[cls]


def find(key: str) -> Field | None:
    """The field at a dotted key, or None if the schema has no such key."""
    return _descend(SweeperConfig, key.split("."), "")


def leaf_keys() -> list[str]:
    """Every key that takes a value, dotted."""
    return [key for key, kind in _walk(SweeperConfig, "") if kind != "section"]


def describe_type(annotation: Any) -> str:
    """A type in words a user reads, for example ``a whole number or null``."""
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin in (typing.Union, types.UnionType):
        inner = [describe_type(part) for part in arguments if part is not type(None)]
        return " or ".join([*inner, "null"])
    if origin is list:
        return _describe_list(arguments[0])
    if origin is dict or dataclasses.is_dataclass(annotation):
        return "a mapping, {name: value}"
    return _WORDS.get(annotation, "a value")


def _describe_list(element: Any) -> str:
    if element is int:
        return "a list of whole numbers, for example [1, 4, 8]"
    if element is str:
        return "a list of names, for example [a, b]"
    return "a list"


def _kind(annotation: Any) -> str:
    if dataclasses.is_dataclass(annotation):
        return "section"
    return "open" if typing.get_origin(annotation) is dict else "leaf"


def _descend(cls: type[Any], parts: list[str], prefix: str) -> Field | None:
    annotation = hints(cls).get(parts[0])
    if annotation is None:
        return None
    key, rest = f"{prefix}{parts[0]}", parts[1:]
    kind = _kind(annotation)
    if not rest:
        return Field(key, kind, annotation, cls)
    if kind == "section":
        return _descend(annotation, rest, f"{key}.")
    if kind == "open" and all(rest):
        return _inside(key, rest, annotation, cls)
    return None


def _inside(key: str, rest: list[str], annotation: Any, cls: type[Any]) -> Field | None:
    """A free key: of the mapping's value type; deeper only into a section, or where that is Any."""
    element = typing.get_args(annotation)[1]
    if dataclasses.is_dataclass(element) and isinstance(element, type) and len(rest) > 1:
        return _descend(element, rest[1:], f"{key}.{rest[0]}.")
    if element is not Any and len(rest) > 1:
        return None
    return Field(".".join([key, *rest]), "inside", element, cls)


def _walk(cls: type[Any], prefix: str) -> Iterator[tuple[str, str]]:
    for name, annotation in hints(cls).items():
        kind = _kind(annotation)
        yield f"{prefix}{name}", kind
        if kind == "section":
            yield from _walk(annotation, f"{prefix}{name}.")
