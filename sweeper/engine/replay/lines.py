"""Lines of a table's file, plain or gzipped. The only IO of tables but for the CSV reader's."""

from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sweeper.errors import ConfigError

READABLE = (
    "a table is a study's folder or its trials.jsonl, a *.jsonl or *.jsonl.gz with one deployment "
    "or one point a line, or a CSV of measured rows"
)


def text_of(path: Path) -> str:
    """The whole text of a file.

    Raises:
        ConfigError: it cannot be read.
    """
    try:
        data = path.read_bytes()
        return (gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data).decode("utf-8")
    except (OSError, EOFError, UnicodeDecodeError) as error:
        what = getattr(error, "strerror", None) or str(error)
        raise ConfigError(f"engine.table={path} cannot be read ({what})", READABLE) from error


def digest_of(path: Path) -> str:
    """12 hex digits of a file's content.

    Raises:
        ConfigError: it cannot be read.
    """
    return hashlib.sha256(text_of(path).encode()).hexdigest()[:12]


def json_lines(path: Path, text: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """(line number, its mapping) of every line; a torn last line, as a kill leaves it, is skipped.

    Raises:
        ConfigError: another line is no mapping.
    """
    lines = text.splitlines()
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            data = json.loads(line)
        except ValueError as error:
            if number == len(lines):
                return
            raise bad_line(path, number, f"is no JSON: {error}") from error
        if not isinstance(data, dict):
            raise bad_line(path, number, "is no mapping")
        yield number, data


def bad_line(path: Path, number: int, what: str) -> ConfigError:
    """A line of a table that cannot be what its format asks for."""
    return ConfigError(f"{path}, line {number} {what}", READABLE)
