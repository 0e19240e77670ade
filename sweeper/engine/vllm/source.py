"""Lists of values that vLLM checks itself and its ``--help`` does not name, read from its source.

The files are parsed and not run: importing vLLM takes many seconds and belongs into no process of
ours. What is not found is not known, and then not checked.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from pathlib import Path

PLACES: Mapping[str, tuple[tuple[str, tuple[str, ...]], ...]] = {
    "quantization": (
        (
            "model_executor/layers/quantization/__init__.py",
            ("QuantizationMethods", "QUANTIZATION_METHODS"),
        ),
    ),
    "load_format": (
        ("model_executor/model_loader/__init__.py", ("LoadFormats",)),
        ("config/load.py", ("LoadFormat",)),
        ("config.py", ("LoadFormat",)),
    ),
    "attention_backend": (
        ("v1/attention/backends/registry.py", ("AttentionBackendEnum",)),
        ("attention/backends/registry.py", ("AttentionBackendEnum", "_Backend")),
        ("platforms/interface.py", ("_Backend",)),
    ),
    "spec_method": (
        ("config/speculative.py", ("SpeculativeMethod",)),
        ("config/__init__.py", ("SpeculativeMethod",)),
        ("config.py", ("SpeculativeMethod",)),
    ),
}
"""Flag → files and the names in them that hold its values, newest layout first."""

ENUM_NAMES = frozenset({"attention_backend"})
"""Flags whose values are the names of an enumeration's members, not their values."""


def read_values(root: Path) -> dict[str, tuple[str, ...]]:
    """Flag → its values, of the flags of `PLACES` whose values are found.

    Args:
        root: folder of the installed package.
    """
    found: dict[str, tuple[str, ...]] = {}
    for flag, places in PLACES.items():
        for relative, symbols in places:
            values = _values(root / relative, symbols, flag in ENUM_NAMES)
            if values:
                found[flag] = values
                break
    return found


def read_engine_fields(root: Path) -> tuple[str, ...]:
    """Names that the class `EngineArgs` takes, and with it vLLM's `LLM`; empty if not found."""
    module = _parsed(root / "engine" / "arg_utils.py")
    for node in module.body if module is not None else ():
        if isinstance(node, ast.ClassDef) and node.name == "EngineArgs":
            return tuple(
                item.target.id
                for item in node.body
                if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name)
            )
    return ()


def _values(path: Path, symbols: tuple[str, ...], enum_names: bool) -> tuple[str, ...]:
    module = _parsed(path)
    if module is None:
        return ()
    defined = _definitions(module)
    for symbol in symbols:
        node = defined.get(symbol)
        if node is None:
            continue
        words = _members(node, enum_names) if isinstance(node, ast.ClassDef) else None
        words = words if words is not None else _words(node, defined, frozenset({symbol}))
        if words:
            return tuple(dict.fromkeys(words))
    return ()


def _parsed(path: Path) -> ast.Module | None:
    try:
        return ast.parse(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, SyntaxError):
        return None


def _definitions(module: ast.Module) -> dict[str, ast.AST]:
    """Top-level name → the expression or class that it stands for."""
    defined: dict[str, ast.AST] = {}
    for node in module.body:
        if isinstance(node, ast.ClassDef):
            defined[node.name] = node
        elif isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Name):
                    defined.setdefault(target.id, node.value)
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value:
            defined.setdefault(node.target.id, node.value)
    return defined


def _members(node: ast.ClassDef, names: bool) -> list[str] | None:
    """Names or values of an enumeration; None if one of its values is no plain text."""
    words = []
    for item in node.body:
        if not isinstance(item, ast.Assign) or not isinstance(item.targets[0], ast.Name):
            continue
        if names:
            words.append(item.targets[0].id)
        elif isinstance(item.value, ast.Constant) and isinstance(item.value.value, str):
            words.append(item.value.value)
        else:
            return None
    return words


def _words(
    node: ast.AST | None, defined: Mapping[str, ast.AST], seen: frozenset[str]
) -> list[str] | None:
    """The texts of a Literal, a list, or a mapping's keys; None if one of them is not known."""
    if isinstance(node, ast.Constant):
        return [node.value] if isinstance(node.value, str) else None
    if isinstance(node, ast.Name):
        inner = defined.get(node.id)
        return None if node.id in seen else _words(inner, defined, seen | {node.id})
    if isinstance(node, ast.Subscript):
        return _words(node.slice, defined, seen)
    if isinstance(node, ast.Dict):
        items: list[ast.expr | None] = list(node.keys)
    elif isinstance(node, ast.List | ast.Tuple):
        items = list(node.elts)
    else:
        return None
    words: list[str] = []
    for item in items:
        more = _words(item, defined, seen)
        if more is None:
            return None
        words += more
    return words
