"""Rates inside the steady-state window. Pure.

The server tells when the first token came and how many there were in all, not when each came
(chunks are no tokens). So a request's first output token is placed at its first content and the
others evenly between that moment and its end. Its prompt tokens are spread evenly between
sending and first content, and the request itself evenly between sending and end: a request that
is half inside the window counts as half a request. Cutting at whole completions would lose up to
one round of requests, because the streams of a closed loop tend to move in step.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sweeper.load.records import LevelRun, RequestRecord
from sweeper.metrics.percentiles import Samples


@dataclass(frozen=True)
class Window:
    """Seconds on the level's clock.

    Attributes:
        start_s, end_s: bounds.
        steady: True if all streams were busy throughout; False if the level was too short for
            that and the window spans it whole, ramp-down included (rates are then too low,
            never too high).
    """

    start_s: float
    end_s: float
    steady: bool

    @property
    def length_s(self) -> float:
        return self.end_s - self.start_s


@dataclass(frozen=True)
class Rates:
    """Per second, inside a window; `in_flight` is the time average of requests under way."""

    output_tokens: float
    input_tokens: float
    requests: float
    in_flight: float


def choose_window(run: LevelRun, completed: Sequence[RequestRecord]) -> Window:
    """The steady state, if one whole round of `completed` requests ended in it; else everything.

    With at least twice as many requests as streams the steady state is always found, unless
    requests fail.
    """
    start_s, end_s = run.window_s
    ended_inside = sum(1 for record in completed if start_s < record.finished_s <= end_s)
    if end_s > start_s and ended_inside >= run.concurrency:
        return Window(start_s, end_s, steady=True)
    first = min((record.sent_s for record in completed), default=0.0)
    last = max((record.finished_s for record in completed), default=0.0)
    return Window(first, last, steady=False)


def rates(completed: Sequence[RequestRecord], window: Window) -> Rates:
    """Rates of successful requests (each has a first token and counts).

    Raises:
        ValueError: the window is empty.
    """
    if window.length_s <= 0:
        raise ValueError("the window is empty")
    sent, first, end = _times(completed)
    outputs = np.array([record.output_tokens for record in completed], dtype=float)
    inputs = np.array([record.prompt_tokens for record in completed], dtype=float)
    first_inside = (first > window.start_s) & (first <= window.end_s)
    output = first_inside + (outputs - 1) * _share(first, end, window)
    life = _share(sent, end, window)
    return Rates(
        output_tokens=_total(output) / window.length_s,
        input_tokens=_total(inputs * _share(sent, first, window)) / window.length_s,
        requests=_total(life) / window.length_s,
        in_flight=_total(life * (end - sent)) / window.length_s,
    )


def in_flight(records: Sequence[RequestRecord], window: Window) -> float:
    """Time average of requests under way, failed ones included."""
    sent = np.array([record.sent_s for record in records], dtype=float)
    end = np.array([record.finished_s for record in records], dtype=float)
    return _total(_share(sent, end, window) * (end - sent)) / window.length_s


def _times(records: Sequence[RequestRecord]) -> tuple[Samples, Samples, Samples]:
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
