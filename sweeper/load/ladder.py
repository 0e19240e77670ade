"""Which load level comes next on a running server. Pure: from what was seen to the next rung.

given   the levels listed, in their order
found   doubling from the first level until throughput stops growing
slo     the highest request rate at which a share of the requests keeps its limits: doubled until
        it fails, then bisected (geometrically, as rates are compared by ratio), then driven once
        more to see whether it holds

A rate is judged by the requests of all its drives together. If none missed the limits it is
good; if even the upper end of the share's interval is too low it is bad; anything between is
driven again, up to `MAX_DRIVES` times, and then judged by the share itself. A good rate above a
bad one is luck: the answer is the highest good rate below every bad one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from sweeper.config.schema import LoadConfig
from sweeper.load.level import BATCH, CLOSED, OPEN, RAMP, REPLAY, LoadLevel

MAX_DRIVES = 3
MIN_RATE_SHARE = 1 / 64  # of the first rate; below that no rate is looked for
_WHOLE_TRACE = 1_000_000_000


@dataclass(frozen=True)
class Seen:
    """What a driven level showed.

    Attributes:
        level: what was asked.
        valid: whether its measurement passed the gates.
        output_tokens_per_s: system throughput, None if there was none.
        goodput_share: share of all its requests that kept the limits, None without limits.
        goodput_high: upper end of that share's 95 % interval.
        n: requests sent, failed ones included.
        drives: times the level has been driven; the other figures pool them.
    """

    level: LoadLevel
    valid: bool
    output_tokens_per_s: float | None = None
    goodput_share: float | None = None
    goodput_high: float | None = None
    n: int = 0
    drives: int = 1


@dataclass(frozen=True)
class SloResult:
    """What an SLO search found.

    Attributes:
        rate_per_s: highest rate that kept the limits, None if none did.
        lowest_bad_per_s: lowest rate that did not, None if none was found.
        confirmed: True if the rate held in a second drive.
    """

    rate_per_s: float | None
    lowest_bad_per_s: float | None
    confirmed: bool


def next_level(load: LoadConfig, seen: Sequence[Seen]) -> LoadLevel | None:
    """The next level to drive, None at the end of the ladder.

    Args:
        load: the configured ladder.
        seen: one entry a level in the order of first drive; a level that is asked for again
            replaces its entry, with more `drives`.
    """
    if load.levels == "given":
        levels = given_levels(load)
        return levels[len(seen)] if len(seen) < len(levels) else None
    if sum(item.drives for item in seen) >= load.max_levels:
        return None
    return _next_doubling(load, seen) if load.levels == "found" else _next_slo(load, seen)


def given_levels(load: LoadConfig) -> list[LoadLevel]:
    """The levels a configuration lists."""
    if load.kind in {CLOSED, BATCH}:
        return [_streams(load, count) for count in load.concurrency]
    if load.kind == REPLAY:
        return [LoadLevel(REPLAY, _WHOLE_TRACE, time_scale=scale) for scale in load.time_scale]
    return [_rate(load, rate) for rate in load.rate_per_s]


def top_level(load: LoadConfig) -> LoadLevel | None:
    """The hardest level that is known beforehand, None if it is still to be found."""
    return given_levels(load)[-1] if load.levels == "given" else None


def slo_result(load: LoadConfig, seen: Sequence[Seen]) -> SloResult:
    """The answer of an SLO search after what was seen."""
    good, lowest_bad = _bracket(load, seen)
    best = good[-1] if good else None
    return SloResult(
        None if best is None else best.level.rate_per_s,
        lowest_bad,
        best is not None and best.drives > 1,
    )


def _streams(load: LoadConfig, count: int) -> LoadLevel:
    requests = max(load.min_requests, load.requests_per_stream * count)
    return LoadLevel(load.kind, requests, concurrency=count)


def _rate(load: LoadConfig, rate_per_s: float) -> LoadLevel:
    rate_per_s = float(f"{rate_per_s:.4g}")  # nobody can tell more digits apart
    start = load.start_rate_per_s if load.kind == RAMP else None
    mean = rate_per_s if start is None else 0.5 * (start + rate_per_s)
    return LoadLevel(
        load.kind,
        max(load.min_requests, round(mean * load.duration_s)),
        rate_per_s=rate_per_s,
        start_rate_per_s=start,
        arrivals=load.arrivals,
        burstiness=load.burstiness,
    )


def _next_doubling(load: LoadConfig, seen: Sequence[Seen]) -> LoadLevel | None:
    if not seen:
        first = load.concurrency if load.kind == CLOSED else load.rate_per_s
        return _streams(load, int(first[0])) if load.kind == CLOSED else _rate(load, first[0])
    last = seen[-1]
    if not last.valid or last.output_tokens_per_s is None:
        return None
    if len(seen) > 1:
        before = seen[-2].output_tokens_per_s or 0.0
        if last.output_tokens_per_s < before * (1.0 + load.min_growth_share):
            return None
    if load.kind == CLOSED:
        return _streams(load, 2 * (last.level.concurrency or 1))
    return _rate(load, 2.0 * (last.level.rate_per_s or 1.0))


def _next_slo(load: LoadConfig, seen: Sequence[Seen]) -> LoadLevel | None:
    first = load.rate_per_s[0]
    undecided = [item for item in seen if _is_good(load, item) is None]
    if undecided:
        return undecided[0].level
    good, bad = _bracket(load, seen)
    best = None if not good else good[-1].level.rate_per_s
    if best is None:
        lower = first if bad is None else bad / 2.0
        return _rate(load, lower) if lower >= first * MIN_RATE_SHARE else None
    if bad is None:
        return _rate(load, 2.0 * best)
    if bad / best > 1.0 + load.rate_tolerance_share:
        return _rate(load, math.sqrt(best * bad))
    return good[-1].level if good[-1].drives == 1 else None


def _bracket(load: LoadConfig, seen: Sequence[Seen]) -> tuple[list[Seen], float | None]:
    """(good levels below every bad one, rising; the lowest bad rate)."""
    by_rate = sorted(
        (item for item in seen if item.level.kind == OPEN),
        key=lambda item: item.level.rate_per_s or 0.0,
    )
    good: list[Seen] = []
    for item in by_rate:
        verdict = _is_good(load, item)
        if verdict is False:
            return good, item.level.rate_per_s
        if verdict:
            good.append(item)
    return good, None


def _is_good(load: LoadConfig, item: Seen) -> bool | None:
    """Whether a rate keeps the limits; None while that is open and it may be driven again."""
    share, high, needed = item.goodput_share, item.goodput_high, load.goodput.share
    if not item.valid or share is None or high is None:
        return False  # failed requests, or a client that could not keep up: not to be promised
    if share >= 1.0:
        return True
    if high < needed:
        return False
    return None if item.drives < MAX_DRIVES else share >= needed
