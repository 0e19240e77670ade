"""vLLM's flags in another engine's words, each with what became of it. Pure.

A rule says of one flag's value what the other engine is given for it, or why it has nothing:
``Same`` where both mean one thing, ``Near`` where the nearest means something else (and what),
``Nothing`` with the reason. A flag without a rule has no equivalent that is known here.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from sweeper.engine.vllm.flags import to_argv
from sweeper.export.bundle import ExportInput
from sweeper.export.vllm_config import asked_flags


def unmeasured(engine: str) -> str:
    """What the head of a file says before any number."""
    return (
        f"Nearest equivalent in {engine}, which was NOT RUN: every number and every limit below is "
        f"of vLLM. Where no flag is given, the default of {engine} holds."
    )


@dataclass(frozen=True)
class Same:
    """Words of the command line and entries of a configuration file; neither: its default."""

    argv: tuple[str, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    note: str = ""


@dataclass(frozen=True)
class Near(Same):
    """The nearest there is; `note` says in what it differs."""


@dataclass(frozen=True)
class Nothing:
    """No equivalent, and why."""

    reason: str


Found = Same | Near | Nothing
Rule = Callable[[Any], Found]


@dataclass(frozen=True)
class Translation:
    """What a deployment becomes.

    Attributes:
        argv: words for the command line.
        options: content of the configuration file, nested.
        lines: what became of each flag, a line each.
    """

    argv: tuple[str, ...]
    options: Mapping[str, Any]
    lines: tuple[str, ...]


def translate(source: ExportInput, rules: Mapping[str, Rule], engine: str) -> Translation:
    """Every flag by its rule, and a line on each; variables of vLLM have none."""
    argv: list[str] = []
    options: dict[str, Any] = {}
    lines: list[str] = []
    for name, value in asked_flags(source).items():
        rule = rules.get(name)
        found = rule(value) if rule else Nothing("none is known")
        shown = " ".join(to_argv({name: value}))
        if isinstance(found, Nothing):
            lines.append(f"{shown}: NO EQUIVALENT in {engine} ({found.reason})")
            continue
        argv += found.argv
        _merge(options, found.options)
        lines.append(f"{shown}: {_became(found)}")
    lines += [
        f"{name} (variable): NO EQUIVALENT in {engine} (it is vLLM's own)"
        for name in source.public_env
        if name.startswith("VLLM_")
    ]
    return Translation(tuple(argv), options, tuple(lines))


def _became(found: Same) -> str:
    what = [" ".join(found.argv)] if found.argv else []
    what += [f"{name}: {json.dumps(value)}" for name, value in found.options.items()]
    is_near = isinstance(found, Near)
    text = ("near: " if is_near else "") + (", ".join(what) or "its default")
    return f"{text} ({found.note})" if found.note else text


def _merge(into: dict[str, Any], more: Mapping[str, Any]) -> None:
    for name, value in more.items():
        if isinstance(value, Mapping) and isinstance(into.get(name), dict):
            _merge(into[name], value)
        else:
            into[name] = dict(value) if isinstance(value, Mapping) else value


def option(name: str, note: str = "") -> Rule:
    """The same value under another name; `note` where it means something else there."""

    def rule(value: Any) -> Found:
        words = words_of(name, value)
        return Near(words, note=note) if note else Same(words)

    return rule


def switch(*, on: tuple[str, ...] = (), off: tuple[str, ...] = ()) -> Rule:
    """A flag that is true or false; no words stand for the default."""
    return lambda value: Same(on if value is True else off)


def one_of(name: str, words: Mapping[str, str], reason: str) -> Rule:
    """A value by its word there; nothing for a value that has none."""

    def rule(value: Any) -> Found:
        word = words.get(str(value))
        return Nothing(reason) if word is None else Same(words_of(name, word))

    return rule


def whole_number(name: str, note: str = "") -> Rule:
    """A count; vLLM also takes words such as ``auto`` and ``32k``, which others do not."""
    as_it_is = option(name, note)
    return lambda value: (
        as_it_is(value)
        if isinstance(value, int) and value > 0
        else Nothing("it takes a number of tokens, and no word")
    )


def words_of(name: str, value: Any) -> tuple[str, ...]:
    """A flag and its value, in one word where the value would be taken for a flag."""
    text = str(value)
    return (f"{name}={text}",) if text.startswith("-") else (name, text)
