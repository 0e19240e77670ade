"""What the client notes of one request: times and counts only, never text."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class RequestOutcome(StrEnum):
    """Successful, errored and incomplete requests are kept apart."""

    OK = "ok"
    ERROR = "error"
    TIMEOUT = "timeout"
    INCOMPLETE = "incomplete"
    """The stream ended without a finish or without `usage`."""


@dataclass(frozen=True)
class RequestRecord:
    """One request. Times are seconds on a monotonic clock, counted from the start of the level.

    Attributes:
        index: number within the level.
        scheduled_s: when it was due; equal to `sent_s` in a closed loop.
        sent_s: when it was sent.
        first_token_s: first chunk with non-empty content, None if there was none.
        finished_s: when the stream ended or failed.
        chunks: chunks with content.
        prompt_tokens: the server's count, None if it told none.
        output_tokens: the server's count, None if it told none.
        outcome: how it ended.
        finish_reason: the server's word for it.
        error: one line, None if OK.
    """

    index: int
    scheduled_s: float
    sent_s: float
    first_token_s: float | None
    finished_s: float
    chunks: int
    prompt_tokens: int | None
    output_tokens: int | None
    outcome: RequestOutcome
    finish_reason: str | None = None
    error: str | None = None


@dataclass(frozen=True)
class LevelRun:
    """One load level as it was driven.

    Attributes:
        kind: ``closed``.
        concurrency: streams asked for.
        records: one a request, warm-up excluded.
        window_s: (start, end) of the steady state: from the moment all streams were in flight to
            the moment the first stream found nothing left to send.
        duration_s: from first send to last finish.
        client_cpu_s: processor seconds the client used meanwhile.
        server_before: the server's counters at the start (name → value), empty if it tells none.
        server_after: the same at the end.
        input_tokens_asked: prompt length asked for, in tokens.
        output_tokens_asked: output length asked for, in tokens.
        requests_asked: requests the level was meant to send, warm-up excluded.
        fixed_output: True if the server was told to write exactly `output_tokens_asked`.
        exact_input: True if prompts were sent as token ids, so that their length is known.
        ended_early: why the level stopped before all requests were sent, None if it did not.
    """

    kind: str
    concurrency: int
    records: tuple[RequestRecord, ...]
    window_s: tuple[float, float]
    duration_s: float
    client_cpu_s: float
    server_before: dict[str, float]
    server_after: dict[str, float]
    input_tokens_asked: int
    output_tokens_asked: int
    requests_asked: int = 0
    fixed_output: bool = True
    exact_input: bool = True
    ended_early: str | None = None
