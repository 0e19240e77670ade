"""Levels whose true figures are known."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from sweeper.load.records import LevelRun, RequestOutcome, RequestRecord


def record(
    index: int, sent_s: float, ttft_s: float, tpot_s: float, **changes: Any
) -> RequestRecord:
    output = int(changes.get("output_tokens", 11))
    first = sent_s + ttft_s
    made = RequestRecord(
        index=index,
        scheduled_s=sent_s,
        sent_s=sent_s,
        first_token_s=first,
        finished_s=first + tpot_s * (output - 1),
        chunks=output,
        prompt_tokens=64,
        output_tokens=output,
        outcome=RequestOutcome.OK,
        finish_reason="length",
    )
    return replace(made, **changes)


def failed(index: int, sent_s: float = 0.0, error: str = "HTTP 500: gone") -> RequestRecord:
    return RequestRecord(
        index, sent_s, sent_s, None, sent_s + 0.1, 0, None, None, RequestOutcome.ERROR, None, error
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
        kind="closed",
        concurrency=concurrency,
        records=records,
        window_s=((concurrency - 1) * stagger_s, rounds * length),
        duration_s=rounds * length + (concurrency - 1) * stagger_s,
        client_cpu_s=0.01,
        server_before={},
        server_after={},
        input_tokens_asked=64,
        output_tokens_asked=11,
        requests_asked=len(records),
    )
    return replace(run, **changes)
