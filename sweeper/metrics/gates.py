"""Validity gates: what makes a level's figures worth believing. Pure.

Each gate answers with one line that names what was seen and what was needed, or with None.
A level that fails a gate is recorded but never selected.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from itertools import chain
from typing import TypeVar

import numpy as np

from sweeper.load import server_metrics
from sweeper.load.level import CLOSED
from sweeper.load.records import LevelRun, RequestOutcome, RequestRecord
from sweeper.metrics import open_loop
from sweeper.metrics.latencies import latencies
from sweeper.metrics.percentiles import percentile
from sweeper.metrics.plausible import Sorted, faults_reason
from sweeper.metrics.server_side import delta, prefix_hit_share
from sweeper.metrics.window import Repeat, in_flight, timed

MIN_LENGTHS_HONOURED = 0.99
MAX_TOKEN_COUNT_GAP = 0.05
MAX_CLIENT_CPU_SHARE = 0.9
MAX_PREFIX_HIT_SHARE = 0.2
MIN_ACHIEVED_LOAD = 0.9
MAX_LOOP_LAG_S, MAX_LOOP_LAG_SHARE = 0.020, 0.10
MAX_SEND_LAG_S, MAX_SEND_LAG_SHARE = 0.020, 0.05

_T = TypeVar("_T")


def reasons(
    runs: Sequence[LevelRun], parts: Sequence[Sorted], repeats: Sequence[Repeat], min_share: float
) -> list[str]:
    """Every gate that fails, one line each. What is of one repeat of several names it.

    Args:
        runs: the repeats as they were driven.
        parts: their successful requests, sorted out; same order.
        repeats: those that have any to believe.
        min_share: of requests that must succeed.
    """
    believed = [record for part in parts for record in part.believed]
    seen = {id(repeat.run): repeat for repeat in repeats}
    said = [
        *_of_each(runs, ended_early),
        successes(runs, min_share),
        faults_reason(parts),
        *lengths_honoured(runs, parts),
        *_of_each(runs, client_had_headroom),
        *_of_each(runs, lambda run: client_was_punctual(run, believed)),
        *_of_each(runs, lambda run: requests_went_out_in_time(run, believed)),
        *_of_each(runs, prompts_were_new),
        *_of_each(runs, token_counts_agree),
        *_of_each(runs, lambda run: load_was_kept(seen.get(id(run)))),
    ]
    return [reason for reason in said if reason is not None]


def successes(runs: Sequence[LevelRun], min_share: float) -> str | None:
    records = list(chain.from_iterable(run.records for run in runs))
    if not records:
        return "no request was sent"
    ok = sum(1 for record in records if record.outcome is RequestOutcome.OK)
    if ok / len(records) >= min_share:
        return None
    failures = Counter(
        record.error or str(record.outcome)
        for record in records
        if record.outcome is not RequestOutcome.OK
    )
    (commonest, _), *_ = sorted(failures.items(), key=lambda item: (-item[1], item[0]))
    return (
        f"only {ok} of {len(records)} requests succeeded, {min_share:.0%} needed; "
        f"most often: {commonest}"
    )


def ended_early(run: LevelRun) -> str | None:
    if run.ended_early is None:
        return None
    return f"ended after {len(run.records)} of {run.requests_asked} requests: {run.ended_early}"


def lengths_honoured(runs: Sequence[LevelRun], parts: Sequence[Sorted]) -> list[str]:
    """Each request must have had the length asked of it, to the token; unknown is not checked."""
    outputs = [
        (record.output_tokens, record.output_tokens_asked, run.beam_width)
        for run, part in zip(runs, parts, strict=True)
        if run.fixed_output
        for record in part.believed
    ]
    inputs = [
        (record.prompt_tokens, record.input_tokens_asked, 1)
        for run, part in zip(runs, parts, strict=True)
        if run.exact_input
        for record in part.believed
    ]
    said = (_kept("output", outputs), _kept("input", inputs))
    return [reason for reason in said if reason is not None]


def _kept(word: str, lengths: Sequence[tuple[int | None, int | None, int]]) -> str | None:
    """`lengths` are (told, asked, beams): a server may count all beams of a request or the best."""
    known = [(told, asked, beams) for told, asked, beams in lengths if asked is not None]
    wrong = sorted(
        (asked, told or 0) for told, asked, beams in known if told not in {asked, asked * beams}
    )
    if len(known) - len(wrong) >= MIN_LENGTHS_HONOURED * len(known):
        return None
    asked, told = wrong[-1]
    how = "" if word == "output" else " (cut off)" if told < asked else " (more than was sent)"
    return (
        f"{word} length kept by only {len(known) - len(wrong)} of {len(known)} requests; "
        f"for one, {asked} tokens were asked and {told} counted by the server{how}"
    )


def token_counts_agree(run: LevelRun) -> str | None:
    """Client and server must have counted the same output tokens, warm-up excluded by both.

    Not where a level was broken off, nor under beam search, where the server counts every beam.
    """
    served = delta(run, server_metrics.GENERATION_TOKENS)
    if served is None or run.ended_early or run.beam_width > 1:
        return None
    counted = sum(record.output_tokens or 0 for record in run.records)
    if abs(served - counted) <= MAX_TOKEN_COUNT_GAP * max(served, counted):
        return None
    return (
        f"the client counted {counted} output tokens and the server {served:.0f}; "
        "is somebody else using the server?"
    )


def client_had_headroom(run: LevelRun) -> str | None:
    if not run.duration_s > 0:
        return None
    share = run.client_cpu_s / run.duration_s
    if share < MAX_CLIENT_CPU_SHARE:
        return None
    return f"the client was the bottleneck: {share:.0%} of a processor core"


def client_was_punctual(run: LevelRun, believed: Sequence[RequestRecord]) -> str | None:
    """The event loop's lateness is added to each time it reads; TTFT has it whole, TPOT spread.

    P95, the highest percentile that anything is selected by: a machine that once in a hundred
    times does something else is in one latency of a hundred.
    """
    lag = run.loop_lag_p95_s
    if lag is None:
        return None
    limit = max(MAX_LOOP_LAG_S, MAX_LOOP_LAG_SHARE * _median("ttft", believed))
    if lag <= limit:
        return None
    return (
        f"the client was the bottleneck: its event loop woke up {1e3 * lag:.0f} ms late (P95), "
        f"at most {1e3 * limit:.0f} ms allowed"
    )


def requests_went_out_in_time(run: LevelRun, believed: Sequence[RequestRecord]) -> str | None:
    """By the clock: what the client sends late, the server did not get when it was due."""
    if not run.level.scheduled or not len(lags := open_loop.send_lags_s([run])):
        return None
    lag = percentile(lags, 95)
    limit = max(MAX_SEND_LAG_S, MAX_SEND_LAG_SHARE * _median("e2e", believed))
    if lag <= limit:
        return None
    return (
        f"the client was the bottleneck: requests went out {1e3 * lag:.0f} ms late (P95), "
        f"at most {1e3 * limit:.0f} ms allowed"
    )


def prompts_were_new(run: LevelRun) -> str | None:
    share = prefix_hit_share([run])
    if run.shares_prefix or share is None or share <= MAX_PREFIX_HIT_SHARE:
        return None
    return f"{share:.0%} of prompt tokens came from the prefix cache, though no prompt repeats"


def load_was_kept(repeat: Repeat | None) -> str | None:
    """All streams of a closed loop must have been busy.

    Not in conversations, whose users think between turns; by the clock, see
    `requests_went_out_in_time`; a batch ends with its longest request, by nature.
    """
    if repeat is None or repeat.run.level.kind != CLOSED:
        return None
    streams = repeat.run.concurrency or 1
    if any(record.turn for record in repeat.run.records):
        return None
    achieved = in_flight(timed(repeat.run.records), repeat.window)
    if achieved >= MIN_ACHIEVED_LOAD * streams:
        return None
    return (
        f"only {achieved:.1f} of {streams} streams were busy on average; "
        "send more requests a stream"
    )


def _of_each(items: Sequence[_T], gate: Callable[[_T], str | None]) -> list[str]:
    said = [(number, gate(item)) for number, item in enumerate(items, 1)]
    several = len(items) > 1
    return [
        f"repeat {number}: {reason}" if several else reason
        for number, reason in said
        if reason is not None
    ]


def _median(name: str, records: Sequence[RequestRecord]) -> float:
    samples = latencies(records)[name]
    return float(np.median(samples)) if len(samples) else 0.0
