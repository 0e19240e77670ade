"""Texts that a toolchain calibrates on: the built-in ones, or the user's own.

Quantizing asks what activations look like when a model reads, so the best texts are like those that
will be served. A user's file is plain text, with paragraphs between blank lines, or JSON lines: a
`text`, or a conversation in the shape of chat APIs (`messages`) or of ShareGPT (`conversations`).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib import resources
from importlib.resources.abc import Traversable
from itertools import islice
from pathlib import Path
from typing import Any

from sweeper.errors import ConfigError
from sweeper.quantize.recipe import BUILTIN, Recipe

KEY = "quantize.recipes.*.calibration"

_SHAPES = (
    'one JSON object a line: {"text": "..."}, {"messages": [{"role": "user", "content": "..."}]} '
    'or {"conversations": [{"from": "human", "value": "..."}]}'
)
_SPEAKERS = {"human": "user", "gpt": "assistant"}


def texts(recipe: Recipe) -> list[str]:
    """Texts of a recipe, in the file's order; no more than it has samples.

    A worker cuts long texts if there are fewer than samples, so more are never used.

    Returns:
        An empty list for a recipe that needs no calibration.

    Raises:
        ConfigError: the file is missing, is not UTF-8, or holds no texts in a shape that is known.
    """
    if recipe.calibration is None:
        return []
    source = _source(recipe.calibration)
    try:
        with source.open("r", encoding="utf-8") as lines:
            read = _reader(source)
            found = list(islice(read(lines, str(source)), recipe.calibration_samples))
    except UnicodeDecodeError as error:
        raise ConfigError(
            f"{KEY}: {source} is not UTF-8 text (byte {error.start}: {error.reason})",
            "save the file as UTF-8, or convert it with iconv",
        ) from error
    except OSError as error:
        raise ConfigError(
            f"{KEY}: {source} cannot be read: {error.strerror}", "check the file's permissions"
        ) from error
    if not found:
        raise ConfigError(
            f"{KEY}: {source} holds no texts",
            f"give a few dozen texts like those that will be served, or {BUILTIN}",
        )
    return found


def calibration_hash(recipe: Recipe) -> str | None:
    """16 hex digits of what a checkpoint is calibrated on: the texts, their number and length.

    A file of another name with the same texts is the same calibration.

    Returns:
        None for a recipe that needs no calibration.

    Raises:
        ConfigError: see `texts`.
    """
    if recipe.calibration is None:
        return None
    content = [texts(recipe), recipe.calibration_samples, recipe.calibration_tokens]
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()[:16]


def write_texts(recipe: Recipe, path: Path) -> None:
    """Write the recipe's texts as the JSON lines that workers read.

    Raises:
        ConfigError: see `texts`.
    """
    lines = [json.dumps({"text": text}, ensure_ascii=False) + "\n" for text in texts(recipe)]
    path.write_text("".join(lines), encoding="utf-8")


def _source(calibration: str) -> Traversable:
    if calibration == BUILTIN:
        return resources.files("sweeper.quantize").joinpath("data", "calibration.jsonl")
    path = Path(calibration).expanduser()
    if not path.is_file():
        raise ConfigError(
            f"{KEY}: there is no file {path}",
            f"name a .txt or .jsonl file of texts, or {BUILTIN} for the texts that come along",
        )
    return path


def _reader(source: Traversable) -> Callable[[Iterable[str], str], Iterator[str]]:
    suffix = Path(source.name).suffix.lower()
    if suffix not in _READERS:
        raise ConfigError(
            f"{KEY}: {source} is of no known kind of file",
            f"name it by what is in it; known are {', '.join(_READERS)}",
        )
    return _READERS[suffix]


def paragraphs(lines: Iterable[str], where: str) -> Iterator[str]:
    """Texts between blank lines; `where` is for nothing, since any text will do."""
    gathered: list[str] = []
    for line in lines:
        if line.strip():
            gathered.append(line)
        elif gathered:
            yield "".join(gathered).strip()
            gathered = []
    if gathered:
        yield "".join(gathered).strip()


def json_lines(lines: Iterable[str], where: str) -> Iterator[str]:
    """Text of each JSON line; texts that are blank are passed over.

    Raises:
        ConfigError: a line is no JSON, or of no shape that is known; it names file and line.
    """
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            text = text_of(json.loads(line))
        except (json.JSONDecodeError, RecursionError):
            text = None
        if text is None:
            raise ConfigError(
                f"{KEY}: line {number} of {where} holds no text that can be read",
                f"write {_SHAPES}",
            )
        if text.strip():
            yield text


def text_of(entry: Any) -> str | None:
    """Text of one entry of a JSON-lines file, None if it has no known shape.

    A conversation becomes plain text, a line ``speaker: words`` for each turn: every model has
    another template, and what calibration needs of it is the words.
    """
    if isinstance(entry, Mapping):
        if isinstance(entry.get("text"), str):
            return str(entry["text"])
        entry = entry.get("messages", entry.get("conversations"))
    if not isinstance(entry, list) or not entry:
        return None
    turns = [_turn(turn) for turn in entry]
    return None if None in turns else "\n".join(turn for turn in turns if turn is not None)


def _turn(turn: Any) -> str | None:
    if not isinstance(turn, Mapping):
        return None
    speaker = turn.get("role", turn.get("from"))
    words = _words(turn.get("content", turn.get("value")))
    if not isinstance(speaker, str) or words is None:
        return None
    return f"{_SPEAKERS.get(speaker, speaker)}: {words}"


def _words(content: Any) -> str | None:
    """Content of a turn: a text, or a list of parts of which the texts count (not the pictures)."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return None
    parts = [part.get("text") for part in content if isinstance(part, Mapping)]
    return " ".join(part for part in parts if isinstance(part, str))


_READERS = {".txt": paragraphs, ".md": paragraphs, ".jsonl": json_lines}
