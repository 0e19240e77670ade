"""Recorded traces: when requests came and how long they were. Formats:

==============  ==================================================================================
azure_csv       ``TIMESTAMP,ContextTokens,GeneratedTokens``, as Azure publishes for its LLM
                services: a date and time, tokens read, tokens written
mooncake_jsonl  ``{"timestamp": ms, "input_length": n, "output_length": n, "hash_ids": [...]}``,
                as published with Mooncake; a hash id stands for a block of 512 prompt tokens, and
                requests that have ids in common had these blocks in common
==============  ==================================================================================

Neither holds a word of text.
"""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from typing import Any

from sweeper.config.schema import WorkloadConfig
from sweeper.load.workload.source_file import Remembered, SourceFile, read_source

HASH_BLOCK_TOKENS = 512
AZURE_COLUMNS = ("TIMESTAMP", "ContextTokens", "GeneratedTokens")
AZURE_EXPECTED = (
    "an Azure trace begins with the line TIMESTAMP,ContextTokens,GeneratedTokens and goes on "
    "with lines like 2023-11-16 18:17:03.9799600,4808,10"
)
MOONCAKE_EXPECTED = (
    'a line of a Mooncake trace is {"timestamp": 27482, "input_length": 6955, '
    '"output_length": 52, "hash_ids": [46, 47, ...]}, with one hash id for each 512 tokens of '
    "input begun"
)
EMPTY, LONG_INPUT, LONG_OUTPUT = "no tokens", "input too long", "output too long"


@dataclass(frozen=True, slots=True)
class Arrival:
    """One request of a trace.

    Attributes:
        at_s: seconds; from the first request that is kept, once a trace is read as a whole.
        input_tokens, output_tokens: lengths.
        hash_ids: of the prompt's blocks of 512 tokens, empty if the trace tells none.
    """

    at_s: float
    input_tokens: int
    output_tokens: int
    hash_ids: tuple[int, ...] = ()


@dataclass(frozen=True)
class Trace:
    """A trace as it is replayed.

    Attributes:
        arrivals: by time; the first at 0 s.
        conditions: what a manifest needs to know of it; `left_out` counts the requests that are
            not sent, by reason.
    """

    arrivals: tuple[Arrival, ...]
    conditions: dict[str, object]

    @property
    def has_hashes(self) -> bool:
        return any(one.hash_ids for one in self.arrivals)


def read_trace(cfg: WorkloadConfig) -> Trace:
    """The trace of a workload, sorted by time.

    Left out and counted: requests without a token to read or to write, which no server takes, and
    those longer than `input_tokens_max` or `output_tokens_max` where these are set. Lengths are
    never cut: a shortened request is another request. Then the first `max_requests` are taken.

    Raises:
        ConfigError: the file cannot be read, a line is not of its format, or nothing is left.
    """
    return _remembered(cfg)


def _read(cfg: WorkloadConfig) -> Trace:
    source = read_source(str(cfg.path))
    form = _format(source) if cfg.format == "auto" else cfg.format
    found = list(_READERS[form](source))
    was_sorted = all(a.at_s <= b.at_s for a, b in pairwise(found))
    kept: list[Arrival] = []
    left_out: dict[str, int] = {}
    for one in sorted(found, key=lambda one: one.at_s):
        reason = _reason_to_leave_out(one, cfg)
        if reason is None:
            kept.append(one)
        else:
            left_out[reason] = left_out.get(reason, 0) + 1
    if not kept:
        raise source.fault(
            None,
            f"has no request that can be sent ({len(found)} lines, left out: {left_out})",
            "raise workload.input_tokens_max and workload.output_tokens_max, or give another trace",
        )
    kept = kept[: cfg.max_requests]
    start_s = kept[0].at_s
    arrivals = tuple(
        Arrival(one.at_s - start_s, one.input_tokens, one.output_tokens, one.hash_ids)
        for one in kept
    )
    of_file: dict[str, object] = {
        "file": source.name,
        "file_sha256": source.sha256,
        "format": form,
        "requests_in_file": len(found),
        "sorted_here": not was_sorted,
        "left_out": left_out,
    }
    return Trace(arrivals, of_file | _figures(arrivals))


def _figures(arrivals: tuple[Arrival, ...]) -> dict[str, object]:
    return {
        "requests": len(arrivals),
        "duration_s": round(arrivals[-1].at_s, 6),
        "input_tokens_mean": round(sum(a.input_tokens for a in arrivals) / len(arrivals), 1),
        "output_tokens_mean": round(sum(a.output_tokens for a in arrivals) / len(arrivals), 1),
    }


def _reason_to_leave_out(one: Arrival, cfg: WorkloadConfig) -> str | None:
    if one.input_tokens < 1 or one.output_tokens < 1:
        return EMPTY
    if cfg.input_tokens_max is not None and one.input_tokens > cfg.input_tokens_max:
        return LONG_INPUT
    if cfg.output_tokens_max is not None and one.output_tokens > cfg.output_tokens_max:
        return LONG_OUTPUT
    return None


def _format(source: SourceFile) -> str:
    line, first = source.lines()[0]
    if first.lstrip().startswith("{"):
        return "mooncake_jsonl"
    if _columns(first) is not None:
        return "azure_csv"
    raise source.fault(
        line, "begins like no trace that is known here", f"{AZURE_EXPECTED}; {MOONCAKE_EXPECTED}"
    )


def _columns(header: str) -> list[int] | None:
    """Where the three columns are, None if one is missing."""
    names = [name.strip().lower() for name in next(csv.reader([header]))]
    wanted = [column.lower() for column in AZURE_COLUMNS]
    return [names.index(name) for name in wanted] if set(wanted) <= set(names) else None


def _azure(source: SourceFile) -> Iterator[Arrival]:
    (number, header), *rows = source.lines()
    columns = _columns(header)
    if columns is None:
        raise source.fault(number, "is not the header of an Azure trace", AZURE_EXPECTED)
    epoch: datetime | None = None
    for number, row in rows:
        cells = next(csv.reader([row]))
        try:
            when, context, generated = (cells[column].strip() for column in columns)
            at = datetime.fromisoformat(when)
            epoch = epoch or at
            seconds = (at - epoch).total_seconds()
            yield Arrival(seconds, _count(int(context)), _count(int(generated)))
        except (IndexError, ValueError, TypeError) as error:
            raise source.fault(
                number, f"is not a request of an Azure trace: {_reason(error)}", AZURE_EXPECTED
            ) from error


def _mooncake(source: SourceFile) -> Iterator[Arrival]:
    for number, line in source.lines():
        try:
            yield _mooncake_arrival(json.loads(line))
        except (KeyError, ValueError, TypeError, RecursionError) as error:
            raise source.fault(
                number, f"is not a request of a Mooncake trace: {_reason(error)}", MOONCAKE_EXPECTED
            ) from error


def _mooncake_arrival(line: Any) -> Arrival:
    if not isinstance(line, dict):
        raise TypeError("not an object")
    at_ms, input_tokens = line["timestamp"], _count(line["input_length"])
    if isinstance(at_ms, bool) or not isinstance(at_ms, int | float) or not math.isfinite(at_ms):
        raise ValueError(f"timestamp {at_ms!r} is not a number of milliseconds")
    hash_ids = tuple(map(_count, line.get("hash_ids") or ()))
    blocks = math.ceil(input_tokens / HASH_BLOCK_TOKENS)
    if hash_ids and len(hash_ids) != blocks:
        raise ValueError(f"{len(hash_ids)} hash ids for {blocks} blocks of 512 tokens")
    return Arrival(at_ms / 1000, input_tokens, _count(line["output_length"]), hash_ids)


def _count(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise ValueError(f"{value!r} is not a whole number of 0 or more")
    return value


def _reason(error: Exception) -> str:
    if isinstance(error, KeyError):
        return f"there is no {error.args[0]!r}"
    if isinstance(error, IndexError):
        return "a column is missing"
    return str(error)


_READERS: dict[str, Callable[[SourceFile], Iterator[Arrival]]] = {
    "azure_csv": _azure,
    "mooncake_jsonl": _mooncake,
}
_remembered = Remembered(_read)
