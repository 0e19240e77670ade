"""What the client notes of one request: times and counts only, never text."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from sweeper.load.level import LoadLevel


class RequestOutcome(StrEnum):
    """Successful, errored and incomplete requests are kept apart."""

    OK = "ok"
    ERROR = "error"
    TIMEOUT = "timeout"
    INCOMPLETE = "incomplete"
    """The stream ended without a finish or without `usage`."""


@dataclass(frozen=True, slots=True)
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
        input_tokens_asked: prompt length asked for, None where the workload does not know it.
        output_tokens_asked: output length asked for; without `ignore_eos` the most that may come.
        turn: 0, or the number of earlier turns of its conversation.
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
    input_tokens_asked: int | None = None
    output_tokens_asked: int | None = None
    turn: int = 0


@dataclass(frozen=True)
class Gauges:
    """The server's momentary state, once a second or so while a level runs.

    Attributes:
        at_s: seconds from the start of the level.
        values: gauge → value: `server_metrics.KV_USAGE`, `RUNNING`, `WAITING`; what the server
            does not tell is absent.
    """

    at_s: float
    values: dict[str, float]


@dataclass(frozen=True)
class WarmUp:
    """What went before the measured requests.

    Attributes:
        requests: sent and not recorded.
        rounds: passes of one request a stream.
        stable: True if the last two rounds took the same time within the tolerance; None if the
            plan did not ask.
    """

    requests: int = 0
    rounds: int = 0
    stable: bool | None = None


@dataclass(frozen=True)
class LevelRun:
    """One load level as it was driven.

    Attributes:
        level: what was asked.
        records: one a request, warm-up excluded.
        window_s: (start, end) of the steady state. Closed: from the moment all streams were in
            flight to the moment the first stream found nothing left to send. Scheduled: from one
            mean request after the first arrival to the last arrival.
        duration_s: from first send to last finish.
        client_cpu_s: processor seconds the client used meanwhile.
        server_before: the server's counters at the start (name → value), empty if it tells none.
        server_after: the same at the end.
        fixed_output: True if the server was told to write exactly the length asked for.
        exact_input: True if prompts were sent as token ids, so that their length is known.
        shares_prefix: True if the workload repeats prompts or beginnings of them on purpose.
        ended_early: why the level stopped before all requests were sent, None if it did not.
        hung: True if it did because the server lived and got on with nothing.
        warm_up: what went before.
        gauges: the server's state over time, empty if it tells none.
        loop_lag_p95_s: how late the client's event loop was in waking up, 95th percentile; None
            if it was not watched. What the loop is late by is added to every latency it reads.
        overhead_s: seconds the level took beside warm-up and requests.
        beam_width: 1, or that of beam search, whose tokens come all at once.
    """

    level: LoadLevel
    records: tuple[RequestRecord, ...]
    window_s: tuple[float, float]
    duration_s: float
    client_cpu_s: float
    server_before: dict[str, float]
    server_after: dict[str, float]
    fixed_output: bool = True
    exact_input: bool = True
    shares_prefix: bool = False
    ended_early: str | None = None
    hung: bool = False
    warm_up: WarmUp = field(default_factory=WarmUp)
    gauges: tuple[Gauges, ...] = ()
    loop_lag_p95_s: float | None = None
    overhead_s: float = 0.0
    beam_width: int = 1

    @property
    def concurrency(self) -> int | None:
        """Streams asked for, None where requests arrive by the clock."""
        return self.level.concurrency

    @property
    def requests_asked(self) -> int:
        return self.level.requests
