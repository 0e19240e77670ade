"""Which client wrote a result file: detected from its fields, refused if it is none known. Pure."""

from __future__ import annotations

import importlib
import json
from typing import Any, Protocol, cast

from sweeper.errors import ConfigError
from sweeper.metrics.external.result import ForeignRun

READERS = {
    "vllm bench serve": "sweeper.metrics.external.vllm_bench",
    "guidellm": "sweeper.metrics.external.guidellm",
    "InferenceX": "sweeper.metrics.external.inferencex",
}
_SHOWN_KEYS = 12


class Reader(Protocol):
    """What every reader module offers."""

    def missing(self, document: dict[str, Any]) -> list[str]:
        """Fields of the format that the document lacks; empty if it is of this format."""
        ...

    def read(self, document: dict[str, Any]) -> ForeignRun:
        """The document in this project's names and units."""
        ...


def read_foreign(text: str, name: str, pick: int | None = None) -> ForeignRun:
    """Read a result file of another client.

    Args:
        text: its content: one JSON document, a list of them, or JSON lines
            (`vllm bench serve --append-result`).
        name: of the file, for messages.
        pick: which of several documents, from 1; None takes the last and says so.

    Raises:
        ConfigError: it is not JSON, has no such document, or no known format.
    """
    documents = _documents(text, name)
    document, note = _picked(documents, name, pick)
    run = _reader(document, name).read(document)
    if note is None:
        return run
    return ForeignRun(run.client, run.conditions, run.levels, (note, *run.notes))


def _documents(text: str, name: str) -> list[dict[str, Any]]:
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        data = _lines(text, name)
    found = data if isinstance(data, list) else [data]
    documents = [item for item in found if isinstance(item, dict)]
    if not documents or len(documents) != len(found):
        raise ConfigError(
            f"{name} holds no result: {_kind(found)} instead of JSON objects",
            "give the JSON file that the benchmark client saved",
        )
    return documents


def _kind(found: list[Any]) -> str:
    odd = next((item for item in found if not isinstance(item, dict)), None)
    return "an empty list" if not found else type(odd).__name__


def _lines(text: str, name: str) -> list[Any]:
    found = []
    for line_number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        try:
            found.append(json.loads(line))
        except (ValueError, RecursionError) as error:
            raise ConfigError(
                f"{name} is neither JSON nor JSON lines (line {line_number}: {error})",
                "give the JSON file that the benchmark client saved; a file that was cut off while "
                "it was written has to be measured again",
            ) from error
    return found


def _picked(
    documents: list[dict[str, Any]], name: str, pick: int | None
) -> tuple[dict[str, Any], str | None]:
    count = len(documents)
    if pick is None:
        note = f"{name} holds {count} results, the last was taken (#1 to #{count} pick another)"
        return documents[-1], note if count > 1 else None
    if not 1 <= pick <= count:
        raise ConfigError(
            f"{name} has no result #{pick}",
            f"it holds {count}: use #1 to #{count}" if count > 1 else "it holds one: leave out #N",
        )
    return documents[pick - 1], None


def _reader(document: dict[str, Any], name: str) -> Reader:
    lacks = {}
    for client, module in READERS.items():
        reader = cast(Reader, importlib.import_module(module))
        lacks[client] = reader.missing(document)
        if not lacks[client]:
            return reader
    looked_for = "; ".join(
        f"{client}: {', '.join(fields)} not found" for client, fields in lacks.items()
    )
    keys = sorted(map(str, document))
    more = f" and {len(keys) - _SHOWN_KEYS} more" if len(keys) > _SHOWN_KEYS else ""
    raise ConfigError(
        f"{name} is of no known format ({looked_for}); found {', '.join(keys[:_SHOWN_KEYS])}{more}",
        "known are the JSON of `vllm bench serve --save-result`, the JSON report of guidellm and "
        "the rows of InferenceX",
    )
