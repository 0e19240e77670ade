"""A level by what its requests differ in: input length, turn, moment of arrival. Pure.

Plain JSON values, for a point's `load`. Prefill shows in TTFT against input length; a ramp's knee
in its segments.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np

from sweeper.load.records import RequestRecord
from sweeper.metrics.latencies import latencies
from sweeper.metrics.percentiles import percentile
from sweeper.metrics.window import Repeat

MAX_BINS = 6
MIN_BIN_REQUESTS = 5
SEGMENTS = 5
_SAME_LENGTH = 1.1
_SEVERAL_TOKENS = 1.1

Row = dict[str, float]


def ttft_by_input(ok: Sequence[RequestRecord]) -> list[Row]:
    """TTFT in up to six quantile bins of prompt length; empty where lengths hardly differ.

    Returns:
        By bin: ``n``, ``input_tokens_mean``, ``ttft_p50_ms``, ``ttft_p95_ms``, shortest first.
    """
    told = [record for record in ok if record.first_token_s is not None and record.prompt_tokens]
    lengths = np.array([record.prompt_tokens for record in told], dtype=float)
    if len(lengths) == 0 or lengths.max() <= _SAME_LENGTH * lengths.min():
        return []
    edges = np.unique(np.percentile(lengths, np.linspace(0, 100, MAX_BINS + 1)[1:-1]))
    bins = np.searchsorted(edges, lengths, side="left")
    rows = [
        [record for record, place in zip(told, bins, strict=True) if place == number]
        for number in range(len(edges) + 1)
    ]
    return [_row(records) for records in rows if len(records) >= MIN_BIN_REQUESTS]


def by_turn(ok: Sequence[RequestRecord]) -> list[Row]:
    """TTFT by number of earlier turns; empty without conversations.

    Returns:
        By turn: ``turn``, ``n``, ``input_tokens_mean``, ``ttft_p50_ms``, ``ttft_p95_ms``.
    """
    turns: dict[int, list[RequestRecord]] = defaultdict(list)
    for record in ok:
        turns[record.turn].append(record)
    if set(turns) <= {0}:
        return []
    return [{"turn": turn, **_row(turns[turn])} for turn in sorted(turns)]


def segments(repeats: Sequence[Repeat]) -> list[Row]:
    """A ramp in equal parts of its time, by the moment requests were due.

    Returns:
        By part: ``start_s``, ``end_s``, ``request_rate_offered_per_s`` (failed requests
        included), ``n`` successful ones, ``ttft_p95_ms``, ``e2e_p95_ms``.
    """
    due = [_due_s(repeat) for repeat in repeats]
    span = max((max(moments) - min(moments) for moments in due if moments), default=0.0)
    if span <= 0:
        return []
    ok: list[list[RequestRecord]] = [[] for _ in range(SEGMENTS)]
    offered = [0] * SEGMENTS
    for repeat, moments in zip(repeats, due, strict=True):
        start = min(moments, default=0.0)
        for moment in moments:
            offered[_segment(moment - start, span)] += 1
        for record in repeat.ok:
            ok[_segment(record.scheduled_s - start, span)].append(record)
    length = span / SEGMENTS
    return [
        {
            "start_s": number * length,
            "end_s": (number + 1) * length,
            "request_rate_offered_per_s": offered[number] / (length * len(repeats)),
            "n": len(ok[number]),
            **_p95s(ok[number], ("ttft", "e2e")),
        }
        for number in range(SEGMENTS)
    ]


def tokens_per_chunk(ok: Sequence[RequestRecord]) -> float | None:
    """Mean output tokens a chunk, None where chunks are about as many as tokens."""
    chunks = sum(record.chunks for record in ok)
    tokens = sum(record.output_tokens or 0 for record in ok)
    return tokens / chunks if chunks and tokens > _SEVERAL_TOKENS * chunks else None


def _due_s(repeat: Repeat) -> list[float]:
    return [r.scheduled_s for r in repeat.run.records if math.isfinite(r.scheduled_s)]


def _segment(since_s: float, span_s: float) -> int:
    return min(SEGMENTS - 1, max(0, int(SEGMENTS * since_s / span_s)))


def _row(records: Sequence[RequestRecord]) -> Row:
    inputs = [record.prompt_tokens for record in records if record.prompt_tokens is not None]
    row: dict[str, Any] = {"n": len(records)}
    if inputs:
        row["input_tokens_mean"] = math.fsum(inputs) / len(inputs)
    samples = latencies(records)["ttft"]
    if len(samples):
        row["ttft_p50_ms"] = 1e3 * percentile(samples, 50)
    return row | _p95s(records, ("ttft",))


def _p95s(records: Sequence[RequestRecord], names: Sequence[str]) -> Row:
    found = latencies(records)
    return {
        f"{name}_p95_ms": 1e3 * percentile(found[name], 95) for name in names if len(found[name])
    }
