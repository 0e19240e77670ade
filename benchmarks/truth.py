"""What a client should have reported, from what the stub noted. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Truth:
    """One run of one client, as the stub saw it. Warm-up is in `all_tokens` alone.

    Attributes:
        requests, tokens: measured, emitted in full or in part.
        all_tokens: emitted since the reset, warm-up included: all that the client took in.
        whole_tokens_per_s: from the first arrival to the last token.
        steady_tokens_per_s: while all streams were in flight: from the arrival of the last
            stream's first request to the first end after the last arrival; None if no such time.
        ttft_ms: mean, from arrival to first token.
        tpot_ms: mean over requests of the time from first to last token by tokens less one.
        load_s: from the first arrival to the last token, warm-up included.
        late_p99_ms: how late after its beat the stub emitted, 99th percentile; None without a beat.
        ended: True if every measured request got its last token.
    """

    requests: int
    tokens: int
    all_tokens: int
    whole_tokens_per_s: float
    steady_tokens_per_s: float | None
    ttft_ms: float
    tpot_ms: float
    load_s: float
    late_p99_ms: float | None
    ended: bool


def truth_of(noted: dict[str, Any], requests: int, concurrency: int) -> Truth:
    """The truth of the last `requests` requests to arrive; what came before them was warm-up.

    Args:
        noted: answer of the stub's ``GET /truth``.
        requests: measured by the client.
        concurrency: streams.

    Raises:
        ValueError: fewer requests came than the client says it measured.
    """
    everything = sorted(noted["requests"], key=lambda request: request["arrival_s"])
    measured = everything[-requests:]
    if len(measured) < requests:
        raise ValueError(f"the client measured {requests} requests, {len(everything)} came")
    arrivals = [request["arrival_s"] for request in measured]
    emitted = sorted(at for request in measured for at in request["emitted_s"])
    spans = [request["emitted_s"] for request in measured if len(request["emitted_s"]) > 1]
    before = [at for request in everything for at in request["emitted_s"]]
    return Truth(
        requests=len(measured),
        tokens=len(emitted),
        all_tokens=len(before),
        whole_tokens_per_s=len(emitted) / (emitted[-1] - arrivals[0]),
        steady_tokens_per_s=_steady(measured, emitted, concurrency),
        ttft_ms=1e3
        * mean([r["emitted_s"][0] - r["arrival_s"] for r in measured if r["emitted_s"]]),
        tpot_ms=1e3 * mean([(span[-1] - span[0]) / (len(span) - 1) for span in spans]),
        load_s=max(before) - everything[0]["arrival_s"],
        late_p99_ms=_lateness_ms(measured, noted["token_s"]),
        ended=all(request["ended"] for request in measured),
    )


def _steady(
    measured: Sequence[dict[str, Any]], emitted: Sequence[float], concurrency: int
) -> float | None:
    if len(measured) <= concurrency:
        return None
    start_s, last_arrival_s = (measured[at]["arrival_s"] for at in (concurrency - 1, -1))
    ends = [request["emitted_s"][-1] for request in measured if request["emitted_s"]]
    end_s = min((end for end in ends if end > last_arrival_s), default=last_arrival_s)
    if end_s <= start_s:
        return None
    inside = sum(1 for at in emitted if start_s < at <= end_s)
    return inside / float(end_s - start_s)


def _lateness_ms(measured: Sequence[dict[str, Any]], token_s: float) -> float | None:
    if not token_s:
        return None
    late = sorted(
        at - (request["due_s"] + position * token_s)
        for request in measured
        for position, at in enumerate(request["emitted_s"])
    )
    return 1e3 * float(late[min(len(late) - 1, int(0.99 * len(late)))])


def mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def median(values: Sequence[float]) -> float:
    """The middle value, or the mean of the two in the middle."""
    ordered = sorted(values)
    half = len(ordered) // 2
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2


def error_percent(reported: float, true: float) -> float:
    return 100.0 * (reported / true - 1.0)
