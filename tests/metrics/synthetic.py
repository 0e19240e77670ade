"""Levels whose true figures are known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from sweeper.load.level import BATCH, CLOSED, OPEN, LoadLevel
from sweeper.load.records import LevelRun, RequestOutcome, RequestRecord

INPUT_TOKENS, OUTPUT_TOKENS = 64, 11


def record(
    index: int, sent_s: float, ttft_s: float, tpot_s: float, **changes: Any
) -> RequestRecord:
    output = int(changes.get("output_tokens", OUTPUT_TOKENS))
    first = sent_s + ttft_s
    made = RequestRecord(
        index=index,
        scheduled_s=sent_s,
        sent_s=sent_s,
        first_token_s=first,
        finished_s=first + tpot_s * (output - 1),
        chunks=output,
        prompt_tokens=INPUT_TOKENS,
        output_tokens=output,
        outcome=RequestOutcome.OK,
        finish_reason="length",
        input_tokens_asked=INPUT_TOKENS,
        output_tokens_asked=OUTPUT_TOKENS,
    )
    return replace(made, **changes)


def failed(
    index: int,
    sent_s: float = 0.0,
    error: str = "HTTP 500: gone",
    outcome: RequestOutcome = RequestOutcome.ERROR,
) -> RequestRecord:
    return RequestRecord(
        index, sent_s, sent_s, None, sent_s + 0.1, 0, None, None, outcome, None, error
    )


def level(
    concurrency: int = 4,
    rounds: int = 5,
    ttft_s: float = 0.1,
    tpot_s: float = 0.02,
    stagger_s: float = 0.0,
    **changes: Any,
) -> LevelRun:
    """Streams that send back to back; stream k starts k times `stagger_s` late."""
    length = ttft_s + 10 * tpot_s
    records = tuple(
        record(r * concurrency + k, k * stagger_s + r * length, ttft_s, tpot_s)
        for r in range(rounds)
        for k in range(concurrency)
    )
    run = LevelRun(
        level=LoadLevel(CLOSED, len(records), concurrency=concurrency),
        records=records,
        window_s=((concurrency - 1) * stagger_s, rounds * length),
        duration_s=rounds * length + (concurrency - 1) * stagger_s,
        client_cpu_s=0.01,
        server_before={},
        server_after={},
    )
    return replace(run, **changes)


def with_records(run: LevelRun, records: Sequence[RequestRecord]) -> LevelRun:
    """The same run with other records, and a duration that fits them."""
    end = max((r.finished_s for r in records), default=0.0)
    return replace(run, records=tuple(records), duration_s=max(end, 1e-3))


def by_the_clock(
    *,
    rate_per_s: float = 10.0,
    requests: int = 200,
    ttft_s: float = 0.1,
    tpot_s: float = 0.02,
    served_per_s: float | None = None,
    kind: str = OPEN,
    arrivals_s: Sequence[float] | None = None,
    **changes: Any,
) -> LevelRun:
    """Arrivals at a constant rate; a server that starts at most `served_per_s` requests a second.

    Below its capacity each request is served at once. Above, request k waits for its turn.
    """
    due = [k / rate_per_s for k in range(requests)] if arrivals_s is None else list(arrivals_s)
    records, free_s = [], 0.0
    for index, at_s in enumerate(due):
        begin = at_s if served_per_s is None else max(at_s, free_s)
        free_s = begin + (0.0 if served_per_s is None else 1.0 / served_per_s)
        records.append(record(index, at_s, begin - at_s + ttft_s, tpot_s))
    mean = sum(r.finished_s - r.scheduled_s for r in records) / len(records)
    end = max(r.finished_s for r in records)
    asked = LoadLevel(
        kind,
        len(records),
        rate_per_s=rate_per_s,
        arrivals="constant",
        start_rate_per_s=0.1 if kind == "ramp" else None,
    )
    run = LevelRun(
        level=asked,
        records=tuple(records),
        window_s=(due[0] + mean, max(due[0] + mean, due[-1])),
        duration_s=end - due[0],
        client_cpu_s=0.01,
        server_before={},
        server_after={},
    )
    return replace(run, **changes)


def batch(requests: int = 20, duration_s: float = 2.0, **changes: Any) -> LevelRun:
    """All requests given at once to an engine that tells neither first tokens nor a window."""
    records = tuple(
        record(i, 0.0, 0.1, 0.02, first_token_s=None, chunks=1, finished_s=duration_s)
        for i in range(requests)
    )
    run = LevelRun(
        level=LoadLevel(BATCH, requests, concurrency=requests),
        records=records,
        window_s=(0.0, duration_s),
        duration_s=duration_s,
        client_cpu_s=0.01,
        server_before={},
        server_after={},
    )
    return replace(run, **changes)
