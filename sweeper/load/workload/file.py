"""Requests from a file of one's own: JSON lines, or ShareGPT as JSON lines or one JSON array."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from sweeper.config.schema import WorkloadConfig
from sweeper.errors import ConfigError
from sweeper.load.prompts import Bank
from sweeper.load.workload.entries import EXPECTED, Entry, EntryError, entry
from sweeper.load.workload.estimate import fewest_tokens
from sweeper.load.workload.item import WorkItem
from sweeper.load.workload.source_file import Remembered, SourceFile, read_source

NO_HUMAN, LONG_INPUT, LONG_OUTPUT = "no human turn", "input too long", "output too long"


@dataclass(frozen=True)
class PromptFile:
    """Requests of a file.

    Attributes:
        items: in the order of the file.
        conditions: its name, hash and counts.
        exact: True if all prompts are token ids.
    """

    items: tuple[WorkItem, ...]
    conditions: dict[str, object]
    exact: bool


class FromFile:
    """The requests of a file, shuffled by seed and stream, again and again.

    Every line is sent once before one is sent again, in another order. Since a file is the same
    for all levels and trials, later ones meet prompts the server may have in its prefix cache:
    `shares_prefix` is True.
    """

    shares_prefix = True

    def __init__(self, cfg: WorkloadConfig, bank: Bank, seed: int) -> None:
        found = read_requests(cfg)
        self.exact = found.exact
        self._items = found.items
        self._seed = seed
        self.conditions: dict[str, object] = {"kind": "file", **found.conditions, "seed": seed}

    def items(self, stream: str) -> Iterator[WorkItem]:
        """Endless requests."""
        rng = random.Random(f"{self._seed}:file:{stream}")
        while True:
            yield from rng.sample(self._items, len(self._items))


def longest(cfg: WorkloadConfig) -> tuple[int, int]:
    """(input, output) tokens of the longest request; text is guessed low."""
    items = read_requests(cfg).items
    return max(_input_tokens(item.prompt) for item in items), max(i.output_tokens for i in items)


def read_requests(cfg: WorkloadConfig) -> PromptFile:
    """The requests of the workload's file.

    Raises:
        ConfigError: the file cannot be read, a line of it is broken or of no known shape, or no
            request is left. Lines are never passed over in silence.
    """
    return _remembered(cfg)


def _read(cfg: WorkloadConfig) -> PromptFile:
    source = read_source(str(cfg.path))
    only = "conversations" if cfg.format == "sharegpt" else None
    items: list[WorkItem] = []
    left_out: dict[str, int] = {}
    for line, value in _values(source, cfg.format):
        try:
            found = entry(value, only=only)
        except EntryError as error:
            raise source.fault(line, str(error), EXPECTED) from error
        item = _item(cfg, found)
        if isinstance(item, str):
            left_out[item] = left_out.get(item, 0) + 1
        else:
            items.append(item)
        if len(items) == cfg.max_requests:
            break
    if not items:
        raise source.fault(None, f"has no request that can be sent ({left_out})", EXPECTED)
    token_ids = sum(isinstance(item.prompt, list) for item in items)
    conditions: dict[str, object] = {
        "file": source.name,
        "file_sha256": source.sha256,
        "requests": len(items),
        "left_out": left_out,
        "output_tokens_default": cfg.output_tokens,
        "prompts": {len(items): "token ids", 0: "text"}.get(token_ids, "token ids and text"),
    }
    return PromptFile(tuple(items), conditions, exact=token_ids == len(items))


def _item(cfg: WorkloadConfig, found: Entry | None) -> WorkItem | str:
    """What is sent for an entry, or why it is left out."""
    if found is None:
        return NO_HUMAN
    output_tokens = cfg.output_tokens if found.output_tokens is None else found.output_tokens
    if cfg.output_tokens_max is not None and output_tokens > cfg.output_tokens_max:
        return LONG_OUTPUT
    if cfg.input_tokens_max is not None and _input_tokens(found.prompt) > cfg.input_tokens_max:
        return LONG_INPUT
    known = len(found.prompt) if isinstance(found.prompt, list) else None
    return WorkItem(found.prompt, output_tokens, known)


def _input_tokens(prompt: list[int] | str) -> int:
    return len(prompt) if isinstance(prompt, list) else fewest_tokens(prompt)


def _values(source: SourceFile, form: str) -> Iterator[tuple[int, Any]]:
    """(line, decoded JSON) of every entry."""
    if form != "jsonl" and source.text.lstrip().startswith("["):
        yield from _array(source)
        return
    for number, line in source.lines():
        try:
            yield number, json.loads(line)
        except RecursionError as error:
            raise source.fault(number, "is nested too deeply", EXPECTED) from error
        except json.JSONDecodeError as error:
            raise source.fault(
                number, f"is not JSON: {error.msg} at column {error.colno}", EXPECTED
            ) from error


def _array(source: SourceFile) -> Iterator[tuple[int, Any]]:
    """Elements of one JSON array, each with the line it begins on."""
    text, decoder = source.text, json.JSONDecoder()
    at, line, counted = _skip(text, text.index("[") + 1, " \t\r\n"), 1, 0
    while at < len(text) and text[at] != "]":
        line, counted = line + text.count("\n", counted, at), at
        try:
            value, end = decoder.raw_decode(text, at)
        except json.JSONDecodeError as error:
            raise _broken(source, error.lineno, error.msg) from error
        yield line, value
        after = _skip(text, end, " \t\r\n")
        if after >= len(text) or text[after] not in ",]":
            raise _broken(source, text.count("\n", 0, end) + 1, "no comma after an element")
        at = _skip(text, after + 1, " \t\r\n") if text[after] == "," else after
    if at >= len(text):
        raise _broken(source, text.count("\n") + 1, "the array has no end")


def _broken(source: SourceFile, line: int, what: str) -> ConfigError:
    return source.fault(line, f"is not JSON: {what}", EXPECTED)


def _skip(text: str, at: int, letters: str) -> int:
    while at < len(text) and text[at] in letters:
        at += 1
    return at


_remembered = Remembered(_read)
