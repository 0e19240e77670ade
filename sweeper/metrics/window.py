"""Rates inside the steady-state window. Pure.

The server tells when the first token came and how many there were in all, not when each came
(chunks are no tokens). So a request's first output token is placed at its first content and the
others evenly between that moment and its end. Its prompt tokens are spread evenly between
sending and first content, and the request itself evenly between sending and end: a request that
is half inside the window counts as half a request. Cutting at whole completions would lose up to
one round of requests, because the streams of a closed loop tend to move in step. Where the engine
tells no first token (a batch), all its tokens are spread evenly between sending and end.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sweeper.load.level import BATCH
from sweeper.load.records import LevelRun, RequestRecord
from sweeper.metrics.percentiles import Samples


@dataclass(frozen=True)
class Window:
    """Seconds on the level's clock.

    Attributes:
        start_s, end_s: bounds.
        steady: True if all streams were busy throughout; False if the level was too short for
            that and the window spans it whole, ramp-down included (rates are then too low,
            never too high). A batch is whole by nature, and steady.
    """

    start_s: float
    end_s: float
    steady: bool

    @property
    def length_s(self) -> float:
        return self.end_s - self.start_s


@dataclass(frozen=True)
class Repeat:
    """One run of a level: what can be believed of it, and the window its rates are taken from."""

    run: LevelRun
    ok: tuple[RequestRecord, ...]
    window: Window


@dataclass(frozen=True)
class Rates:
    """Per second, inside windows.

    Attributes:
        output_tokens, input_tokens, requests: system throughput.
        in_flight: time average of requests under way.
        prefill_tokens: prompt tokens by the time in which at least one request waited for its
            first token; None if there was no such time.
        decode_tokens: output tokens after the first by the time in which at least one request
            was past it; None if there was no such time.
        decoding: time average of requests past their first token.
    """

    output_tokens: float
    input_tokens: float
    requests: float
    in_flight: float
    prefill_tokens: float | None
    decode_tokens: float | None
    decoding: float


@dataclass(frozen=True)
class _Amounts:
    """Inside one window: tokens, requests, and seconds."""

    output_tokens: float
    input_tokens: float
    requests: float
    request_s: float
    prefill_s: float
    decode_tokens: float
    decode_s: float
    decoding_request_s: float


def choose_window(run: LevelRun, completed: Sequence[RequestRecord]) -> Window:
    """The steady state, if one whole round of `completed` requests ended in it; else everything.

    In a closed loop a round is as many requests as there are streams: with at least twice as many
    requests as streams the steady state is always found, unless requests fail. Where requests
    arrive by the clock it is as many as were under way on average.
    """
    first = min((record.sent_s for record in completed), default=0.0)
    last = max((record.finished_s for record in completed), default=0.0)
    if run.level.kind == BATCH:
        told = first + run.duration_s if math.isfinite(run.duration_s) else last
        return Window(first, max(last, told), steady=True)
    start_s, end_s = run.window_s
    if end_s > start_s:
        window = Window(start_s, end_s, steady=True)
        ended_inside = sum(1 for record in completed if start_s < record.finished_s <= end_s)
        if ended_inside >= max(1.0, run.concurrency or in_flight(completed, window)):
            return window
    return Window(first, last, steady=False)


def rates(completed: Sequence[RequestRecord], window: Window) -> Rates:
    """Rates of successful requests, each with its counts.

    Raises:
        ValueError: the window is empty.
    """
    return pooled_rates([(completed, window)])


def pooled_rates(parts: Sequence[tuple[Sequence[RequestRecord], Window]]) -> Rates:
    """The same over several windows: what is inside them all by the length of them all.

    Raises:
        ValueError: a window is empty.
    """
    if not parts or any(not window.length_s > 0 for _, window in parts):
        raise ValueError("the window is empty")
    inside = [_amounts(records, window) for records, window in parts]
    length = math.fsum(window.length_s for _, window in parts)
    total = _Amounts(*(math.fsum(getattr(a, name) for a in inside) for name in _AMOUNTS))
    return Rates(
        output_tokens=total.output_tokens / length,
        input_tokens=total.input_tokens / length,
        requests=total.requests / length,
        in_flight=total.request_s / length,
        prefill_tokens=total.input_tokens / total.prefill_s if total.prefill_s > 0 else None,
        decode_tokens=total.decode_tokens / total.decode_s if total.decode_s > 0 else None,
        decoding=total.decoding_request_s / length,
    )


def output_tokens_inside(completed: Sequence[RequestRecord], window: Window) -> Samples:
    """Output tokens of each request that fall into the window, shape (n,)."""
    sent, first, end = _times(completed)
    outputs = np.array([record.output_tokens for record in completed], dtype=float)
    told = np.isfinite(first)
    placed = np.where(told, first, sent)
    at_first = (placed > window.start_s) & (placed <= window.end_s)
    after = (outputs - 1) * _share(placed, end, window)
    inside: Samples = np.where(told, at_first + after, outputs * _share(sent, end, window))
    return inside


def timed(records: Sequence[RequestRecord]) -> list[RequestRecord]:
    """Those whose sending and end are possible, whatever became of them."""
    return [r for r in records if -math.inf < r.sent_s <= r.finished_s < math.inf]


def in_flight(records: Sequence[RequestRecord], window: Window) -> float:
    """Time average of requests under way."""
    return _request_s(records, window) / window.length_s


def pooled_in_flight(parts: Sequence[tuple[Sequence[RequestRecord], Window]]) -> float:
    """The same over several windows."""
    spent = math.fsum(_request_s(records, window) for records, window in parts)
    return spent / math.fsum(window.length_s for _, window in parts)


_AMOUNTS = tuple(_Amounts.__dataclass_fields__)


def _amounts(completed: Sequence[RequestRecord], window: Window) -> _Amounts:
    sent, first, end = _times(completed)
    inputs = np.array([record.prompt_tokens for record in completed], dtype=float)
    outputs = np.array([record.output_tokens for record in completed], dtype=float)
    chunks = np.array([record.chunks for record in completed])
    told = np.isfinite(first)
    until = np.where(told, first, end)
    life = _share(sent, end, window)
    # An output that came in one piece has no time in which it was written.
    flowing = told & (chunks >= 2) & (outputs >= 2) & (end > until)
    written = _share(until[flowing], end[flowing], window)
    return _Amounts(
        output_tokens=_total(output_tokens_inside(completed, window)),
        input_tokens=_total(inputs * _share(sent, until, window)),
        requests=_total(life),
        request_s=_total(life * (end - sent)),
        prefill_s=_busy_s(sent[told], first[told], window),
        decode_tokens=_total((outputs[flowing] - 1) * written),
        decode_s=_busy_s(until[flowing], end[flowing], window),
        decoding_request_s=_total(written * (end - until)[flowing]),
    )


def _request_s(records: Sequence[RequestRecord], window: Window) -> float:
    sent = np.array([record.sent_s for record in records], dtype=float)
    end = np.array([record.finished_s for record in records], dtype=float)
    return _total(_share(sent, end, window) * (end - sent))


def _busy_s(start: Samples, end: Samples, window: Window) -> float:
    """Length of the union of intervals, shapes (n,), inside the window."""
    if len(start) == 0:
        return 0.0
    order = np.lexsort((end, start))
    begin = np.clip(start[order], window.start_s, window.end_s)
    stop = np.clip(end[order], window.start_s, window.end_s)
    covered = np.maximum.accumulate(stop)
    before = np.concatenate(([window.start_s], covered[:-1]))
    return float(np.clip(stop - np.maximum(begin, before), 0.0, None).sum())


def _times(records: Sequence[RequestRecord]) -> tuple[Samples, Samples, Samples]:
    """Sent, first token (NaN where the engine tells none) and end, each of shape (n,)."""
    sent = np.array([record.sent_s for record in records], dtype=float)
    first = np.array([record.first_token_s for record in records], dtype=float)
    end = np.array([record.finished_s for record in records], dtype=float)
    return sent, first, end


def _share(start: Samples, end: Samples, window: Window) -> Samples:
    """Share of each interval, shape (n,), that lies in the window; an instant is in or out."""
    inside = np.minimum(end, window.end_s) - np.maximum(start, window.start_s)
    length = end - start
    instant = (end > window.start_s) & (end <= window.end_s)
    shares: Samples = np.where(
        length > 0, np.clip(inside, 0.0, None) / np.where(length > 0, length, 1.0), instant
    )
    return shares


def _total(values: Samples) -> float:
    return float(np.sort(values).sum())  # sorted: the same to the last bit in any order
