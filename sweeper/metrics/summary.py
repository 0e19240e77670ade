"""One load level in figures: metrics with units in their names, intervals, validity. Pure.

Throughput is taken from the steady-state window; latencies from all successful requests, the
first round and outliers included (warm-up has already been taken out). Repeats of a level are
pooled: latencies of all requests together, throughput as all tokens inside the windows by the
length of all windows. With nothing successful there are no metrics at all, and what an engine
does not tell is absent.

===================================  =============================================================
System throughput, in the window (a batch: by its whole duration)
--------------------------------------------------------------------------------------------------
output_tokens_per_s                  output tokens, see `sweeper.metrics.window`
output_tokens_per_s_per_gpu          the same by device (a CPU is one device)
output_tokens_per_s_per_user         the same by stream: what one user sees, waiting included;
                                     where requests arrive by the clock, by requests under way
total_tokens_per_s                   prompt and output tokens
requests_per_s                       requests served
output_tokens_per_s_repeat_cv        with repeats: standard deviation over mean of their
                                     throughputs; also ``_repeat_min`` and ``_repeat_max``
achieved_concurrency                 requests under way, averaged over the window
===================================  =============================================================

===================================  =============================================================
Single stream: only at concurrency 1, never system throughput
--------------------------------------------------------------------------------------------------
single_stream_tokens_per_s           output tokens by E2E
single_stream_prefill_tokens_per_s   prompt tokens by TTFT
single_stream_decode_tokens_per_s    1 / mean TPOT
===================================  =============================================================

===================================  =============================================================
Prefill and decode apart (prompt tokens include those found in the prefix cache)
--------------------------------------------------------------------------------------------------
prefill_tokens_per_s                 prompt tokens by the time in which at least one request
                                     waited for its first token; also ``_per_gpu``
prefill_tokens_per_s_per_user        prompt tokens by TTFT, queueing included
decode_tokens_per_s                  output tokens after the first by the time in which at least
                                     one request was past it; also ``_per_gpu``
decode_tokens_per_s_per_user         1 / mean TPOT
decode_batch_mean                    requests past their first token, averaged over the window
batch_mean                           requests the server ran at once by its own gauge, else those
                                     under way: the batch that TPOT belongs to
===================================  =============================================================

===================================  =============================================================
Latencies: mean, P50, P90, P95, P99
--------------------------------------------------------------------------------------------------
ttft_*_ms, e2e_*_ms                  from the moment a request was due
tpot_*_ms                            (E2E - TTFT) / (output tokens - 1); needs two tokens in two
                                     chunks. No ITL: see `sweeper.metrics.latencies`
===================================  =============================================================

===================================  =============================================================
Load by the clock
--------------------------------------------------------------------------------------------------
request_rate_offered_per_s           mean rate at which first turns were due
send_lag_p95_ms                      how late first turns were sent
===================================  =============================================================

===================================  =============================================================
Goodput, if limits are given
--------------------------------------------------------------------------------------------------
goodput_share                        of all requests, those that succeeded within every limit
goodput_requests_per_s,
goodput_tokens_per_s                 the same in the window; output tokens of good requests
===================================  =============================================================

===================================  =============================================================
Conditions, as far as they are told
--------------------------------------------------------------------------------------------------
success_share                        of requests sent
input_tokens_mean,
output_tokens_mean                   as the server counts them
client_cpu_share                     of one core
client_loop_lag_p95_ms               lateness of the client's event loop, of the worst repeat
level_overhead_s                     beside warm-up and requests, by repeat
preemptions                          of all repeats together
prefix_cache_hit_share               of prompt tokens looked up
spec_acceptance_share                accepted by drafted tokens of speculative decoding
spec_tokens_per_draft                tokens accepted a draft
server_output_tokens                 what the server counted meanwhile
kv_cache_usage_max_share,
kv_cache_usage_mean_share            in the window
queue_mean_requests,
queue_max_requests                   waiting at the server, in the window
running_mean_requests                running at the server, in the window
===================================  =============================================================

`load` begins with what was asked (`LoadLevel.asked`) and adds ``repeats``; ``window`` (steady |
whole | ramp | batch) and ``window_s``; ``warm_up``; and, where they apply, ``saturated`` (see
`sweeper.metrics.open_loop`), ``segments`` of a ramp, ``ttft_by_input``, ``by_turn``,
``tokens_per_chunk`` and ``beam_width``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from sweeper.load.level import BATCH, RAMP
from sweeper.load.records import LevelRun
from sweeper.metrics import breakdown, gates, open_loop
from sweeper.metrics.figures import THROUGHPUTS, figures
from sweeper.metrics.goodput import GoodputLimits, goodput
from sweeper.metrics.intervals import intervals
from sweeper.metrics.plausible import sort_out
from sweeper.metrics.window import Repeat, choose_window

MIN_SUCCESS_SHARE = 0.99
_LATENCY_PREFIXES = ("ttft_", "tpot_", "e2e_")


@dataclass(frozen=True)
class LevelSummary:
    """A load level as it is recorded. Fields as in `sweeper.trial.outcome.Point`."""

    load: dict[str, Any]
    metrics: dict[str, float]
    intervals: dict[str, list[float]]
    n: int
    valid: bool
    reasons: list[str] = field(default_factory=list)
    low_confidence: list[str] = field(default_factory=list)


def summarise(
    runs: Sequence[LevelRun],
    *,
    device_count: int,
    seed: int = 0,
    min_success_share: float = MIN_SUCCESS_SHARE,
    limits: GoodputLimits | None = None,
) -> LevelSummary:
    """Metrics, 95 % bootstrap intervals and validity of one load level.

    Args:
        runs: the repeats of the level, at least one.
        device_count: GPUs the server used; 1 for a CPU.
        seed: of the bootstrap.
        min_success_share: requests that must succeed for the level to be valid.
        limits: of a good request, for goodput.

    Returns:
        A summary; `n` is the number of successful requests behind it. Metrics whose percentile
        has too few samples, whose window is not steady, whose warm-up never settled, or that a
        saturated server makes a matter of time, are in `low_confidence`.

    Raises:
        ValueError: no runs, or runs of different levels.
    """
    if len({run.level.name for run in runs}) != 1:
        raise ValueError("a summary is of the repeats of one level")
    parts = [sort_out(run) for run in runs]
    repeats = [
        Repeat(run, part.believed, choose_window(run, part.believed))
        for run, part in zip(runs, parts, strict=True)
        if part.believed
    ]
    reasons = gates.reasons(runs, parts, repeats, min_success_share)
    load = _load(runs)
    if not repeats:
        return LevelSummary(load, {}, {}, 0, not reasons, reasons)
    load |= _achieved(repeats)
    metrics, low = figures(runs, repeats, device_count)
    bounds = intervals(repeats, metrics, seed)
    if limits is not None:
        requests = sum(len(run.records) for run in runs)
        told, shares = goodput(repeats, requests, limits)
        metrics, bounds = metrics | told, bounds | shares
    low += _doubtful(load, metrics)
    n = sum(len(repeat.ok) for repeat in repeats)
    return LevelSummary(load, metrics, bounds, n, not reasons, reasons, list(dict.fromkeys(low)))


def _load(runs: Sequence[LevelRun]) -> dict[str, Any]:
    """What was asked, and what went before."""
    stable = [run.warm_up.stable for run in runs if run.warm_up.stable is not None]
    warm_up = {
        "requests": sum(run.warm_up.requests for run in runs),
        "rounds": max(run.warm_up.rounds for run in runs),
        "stable": all(stable) if stable else None,
    }
    load = runs[0].level.asked() | {"repeats": len(runs), "warm_up": warm_up}
    return load | ({"beam_width": runs[0].beam_width} if runs[0].beam_width > 1 else {})


def _achieved(repeats: Sequence[Repeat]) -> dict[str, Any]:
    """What came of it beside the metrics; only what applies."""
    run = repeats[0].run
    ok = [record for repeat in repeats for record in repeat.ok]
    steady = {BATCH: "batch", RAMP: "ramp"}.get(run.level.kind, "steady")
    streamed = run.beam_width == 1
    told = {
        "window": steady if all(repeat.window.steady for repeat in repeats) else "whole",
        "window_s": sum(repeat.window.length_s for repeat in repeats),
        "saturated": open_loop.saturated(repeats) if run.level.scheduled else None,
        "segments": breakdown.segments(repeats) if run.level.kind == RAMP else None,
        "ttft_by_input": breakdown.ttft_by_input(ok) if streamed else None,
        "by_turn": breakdown.by_turn(ok) if streamed else None,
        "tokens_per_chunk": breakdown.tokens_per_chunk(ok) if streamed else None,
    }
    return {name: value for name, value in told.items() if value not in (None, [])}


def _doubtful(load: dict[str, Any], metrics: dict[str, float]) -> list[str]:
    """Metrics that depend on how long was measured: the queue grew, or warm-up never settled."""
    latencies = [name for name in metrics if name.startswith(_LATENCY_PREFIXES)]
    if load["warm_up"]["stable"] is False:
        return [*(name for name in THROUGHPUTS if name in metrics), *latencies]
    return latencies if load.get("saturated") else []
