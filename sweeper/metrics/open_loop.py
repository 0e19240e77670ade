"""Load by the clock: what was offered, how punctual the client was, whether the server kept up.

Pure. A server that cannot keep up is a finding and no fault of the measurement, but its latencies
then say how long one measured: the queue grows for as long as requests are offered.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np

from sweeper.load.level import RAMP
from sweeper.load.records import LevelRun, RequestRecord
from sweeper.metrics.latencies import e2e_s
from sweeper.metrics.percentiles import Samples, percentile
from sweeper.metrics.window import Repeat, Window, in_flight, timed

MAX_BACKLOG_SHARE = 0.05
_BACKLOG_DEVIATIONS = 2.0
_RISING = 1.25
_MIN_HALF = 5


def offered_per_s(runs: Iterable[LevelRun]) -> float | None:
    """Mean rate of scheduled arrivals, later turns of a conversation apart; None if unknowable."""
    gaps, spans = 0, 0.0
    for run in runs:
        due = [record.scheduled_s for record in run.records if _counts(record)]
        if len(due) > 1:
            gaps += len(due) - 1
            spans += max(due) - min(due)
    return gaps / spans if spans > 0 else None


def send_lags_s(runs: Iterable[LevelRun]) -> Samples:
    """How late requests were sent, shape (n,): first turns only, for the others wait by nature."""
    lags = [
        max(0.0, record.sent_s - record.scheduled_s)
        for run in runs
        for record in run.records
        if _counts(record) and math.isfinite(record.sent_s)
    ]
    return np.array(lags, dtype=float)


def figures(runs: Sequence[LevelRun]) -> dict[str, float | None]:
    """Metrics that only a scheduled level has."""
    lags = send_lags_s(runs)
    return {
        "request_rate_offered_per_s": offered_per_s(runs),
        "send_lag_p95_ms": 1e3 * percentile(lags, 95) if len(lags) else None,
    }


def saturated(repeats: Sequence[Repeat]) -> bool | None:
    """True if requests came faster than they were served in any repeat.

    Completions must fall behind arrivals by more than 5 % in the window: that is, requests under
    way must grow by as much, which their averages in its first and last third tell better than
    two moments would, of which either may lie in a burst. They must also grow by more than two
    standard deviations of what a steady queue of that mean length does by chance (were its length
    Poisson). Simulated with Poisson arrivals of 600 requests, 60 levels each, servers that were
    busy to 90 % were never called saturated, and those that got 10 % too much in 92 % of cases;
    with a few hundred requests or bursts the two are harder to tell apart. A level so overrun that
    it has no window is told by E2E that rises from its earlier to its later arrivals.
    None for a ramp, whose queue is meant to grow, and for a level too short to tell.
    """
    seen = [_overrun(repeat) for repeat in repeats if repeat.run.level.kind != RAMP]
    told = [answer for answer in seen if answer is not None]
    return any(told) if told else None


def _overrun(repeat: Repeat) -> bool | None:
    if not repeat.window.steady:
        return _rising(repeat.ok)
    window, third_s = repeat.window, repeat.window.length_s / 3
    arrivals = sum(1 for r in repeat.run.records if window.start_s < r.scheduled_s <= window.end_s)
    records = timed(repeat.run.records)
    early = in_flight(records, Window(window.start_s, window.start_s + third_s, steady=True))
    late = in_flight(records, Window(window.end_s - third_s, window.end_s, steady=True))
    growth = 1.5 * (late - early)  # the middles of the thirds are two thirds of the window apart
    chance = _BACKLOG_DEVIATIONS * math.sqrt(2 * max(1.0, in_flight(records, window)))
    return growth > max(MAX_BACKLOG_SHARE * arrivals, chance)


def _rising(ok: Sequence[RequestRecord]) -> bool | None:
    """True if later arrivals took longer than earlier ones; None if there are too few."""
    took = [e2e_s(record) for record in sorted(ok, key=lambda record: record.scheduled_s)]
    half = len(took) // 2
    if half < _MIN_HALF:
        return None
    return bool(np.median(took[half:]) > _RISING * np.median(took[:half]))


def _counts(record: RequestRecord) -> bool:
    return record.turn == 0 and math.isfinite(record.scheduled_s)
