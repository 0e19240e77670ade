"""One load level in figures: metrics with units in their names, intervals, validity. Pure.

Throughput is taken from the steady-state window; latencies from all successful requests, the
first round included (warm-up has already been taken out). With nothing successful there are no
metrics at all.

==============================  ==================================================================
output_tokens_per_s             system throughput in the window, see `sweeper.metrics.window`
output_tokens_per_s_per_gpu     the same by device (a CPU is one device)
output_tokens_per_s_per_user    the same by stream: what one user sees, waiting included
single_stream_tokens_per_s      only at concurrency 1: output tokens by E2E; never system throughput
single_stream_prefill_tokens_per_s, single_stream_decode_tokens_per_s
                                only at concurrency 1: prompt tokens by TTFT; 1 / mean TPOT
total_tokens_per_s              prompt and output tokens in the window
ttft_*_ms, e2e_*_ms             from the moment a request was due
tpot_*_ms                       (E2E - TTFT) / (output tokens - 1); needs two tokens in two chunks
achieved_concurrency            requests under way, averaged over the window
client_cpu_share                of one core
spec_acceptance_share           accepted by drafted tokens of speculative decoding
spec_tokens_per_draft           tokens accepted a draft
server_output_tokens            what the server counted meanwhile
==============================  ==================================================================
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sweeper.load import server_metrics
from sweeper.load.records import LevelRun, RequestOutcome, RequestRecord
from sweeper.metrics import gates
from sweeper.metrics.bootstrap import percentile_interval, ratio_interval
from sweeper.metrics.percentiles import Samples, describe_ms
from sweeper.metrics.window import Window, choose_window, in_flight, rates

MIN_SUCCESS_SHARE = 0.99
_THROUGHPUTS = (
    "output_tokens_per_s",
    "output_tokens_per_s_per_gpu",
    "output_tokens_per_s_per_user",
    "total_tokens_per_s",
    "requests_per_s",
)


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
    run: LevelRun,
    *,
    device_count: int,
    seed: int = 0,
    min_success_share: float = MIN_SUCCESS_SHARE,
) -> LevelSummary:
    """Metrics, 95 % bootstrap intervals and validity of one load level.

    Args:
        run: the level.
        device_count: GPUs the server used; 1 for a CPU.
        seed: of the bootstrap.
        min_success_share: requests that must succeed for the level to be valid.

    Returns:
        A summary; `n` is the number of successful requests behind it.
    """
    ok = [record for record in run.records if record.outcome is RequestOutcome.OK]
    sane = [record for record in ok if gates.plausible_times([record]) is None]
    reasons = [
        gates.ended_early(run),
        gates.successes(run, min_success_share),
        gates.plausible_times(ok),
        gates.lengths_honoured(run, ok),
        gates.client_had_headroom(run),
        gates.prompts_were_new(run),
        None if run.ended_early else gates.token_counts_agree(run),
    ]
    load: dict[str, Any] = {"kind": run.kind, "concurrency": run.concurrency}
    metrics: dict[str, float] = {}
    intervals: dict[str, list[float]] = {}
    low: list[str] = []
    if sane:
        window = choose_window(run, sane)
        load["window"] = "steady" if window.steady else "whole"
        load["window_s"] = window.length_s
        metrics, low = _metrics(run, sane, window, device_count)
        intervals = _intervals(sane, metrics, seed)
        reasons.append(gates.load_was_kept(run, metrics["achieved_concurrency"]))
    said = [reason for reason in reasons if reason is not None]
    return LevelSummary(load, metrics, intervals, len(sane), not said, said, low)


def _metrics(
    run: LevelRun, ok: Sequence[RequestRecord], window: Window, device_count: int
) -> tuple[dict[str, float], list[str]]:
    metrics = _throughput(run, ok, window, device_count)
    low = [] if window.steady else list(_THROUGHPUTS)
    for name, samples in _latencies(ok).items():
        described, few = describe_ms(name, samples)
        metrics |= described
        low += few
    metrics["input_tokens_mean"] = _mean([record.prompt_tokens for record in ok])
    metrics["output_tokens_mean"] = _mean([record.output_tokens for record in ok])
    metrics["success_share"] = _ok_share(run)
    if run.concurrency == 1:
        metrics |= _single_stream(ok)
    optional = _server_side(run) | {"client_cpu_share": gates.client_cpu_share(run)}
    metrics |= {name: value for name, value in optional.items() if value is not None}
    return {name: value for name, value in metrics.items() if math.isfinite(value)}, low


def _throughput(
    run: LevelRun, ok: Sequence[RequestRecord], window: Window, device_count: int
) -> dict[str, float]:
    rate = rates(ok, window)
    return {
        "output_tokens_per_s": rate.output_tokens,
        "output_tokens_per_s_per_gpu": rate.output_tokens / device_count,
        "output_tokens_per_s_per_user": rate.output_tokens / run.concurrency,
        "total_tokens_per_s": rate.output_tokens + rate.input_tokens,
        "requests_per_s": rate.requests,
        "achieved_concurrency": in_flight(run.records, window),
    }


def _latencies(ok: Sequence[RequestRecord]) -> dict[str, Samples]:
    """Seconds by name, each of shape (n,).

    TPOT only where two tokens came in two chunks: a whole output in one chunk has no measurable
    time a token, and must not be read as zero.
    """
    ttft = np.array([_first(record) - record.scheduled_s for record in ok])
    e2e = np.array([record.finished_s - record.scheduled_s for record in ok])
    tokens = np.array([record.output_tokens or 0 for record in ok])
    several = (tokens >= 2) & np.array([record.chunks >= 2 for record in ok])
    tpot = (e2e - ttft)[several] / (tokens[several] - 1)
    return {"ttft": ttft, "tpot": tpot, "e2e": e2e}


def _single_stream(ok: Sequence[RequestRecord]) -> dict[str, float]:
    latencies = _latencies(ok)
    outputs = sum(record.output_tokens or 0 for record in ok)
    inputs = sum(record.prompt_tokens or 0 for record in ok)
    speeds = {
        "single_stream_tokens_per_s": outputs / float(latencies["e2e"].sum()),
        "single_stream_prefill_tokens_per_s": inputs / float(latencies["ttft"].sum()),
    }
    tpot = latencies["tpot"]
    if len(tpot) and tpot.mean() > 0:
        speeds["single_stream_decode_tokens_per_s"] = 1.0 / float(tpot.mean())
    return speeds


def _server_side(run: LevelRun) -> dict[str, float | None]:
    """From the server's counters; None where it tells nothing."""
    drafts = gates.delta(run, server_metrics.SPEC_DRAFTS)
    drafted = gates.delta(run, server_metrics.SPEC_DRAFT_TOKENS)
    accepted = gates.delta(run, server_metrics.SPEC_ACCEPTED)
    return {
        "preemptions": gates.delta(run, server_metrics.PREEMPTIONS),
        "prefix_cache_hit_share": gates.prefix_hit_share(run),
        "server_output_tokens": gates.delta(run, server_metrics.GENERATION_TOKENS),
        "spec_acceptance_share": accepted / drafted if accepted is not None and drafted else None,
        "spec_tokens_per_draft": accepted / drafts if accepted is not None and drafts else None,
    }


def _intervals(
    ok: Sequence[RequestRecord], metrics: dict[str, float], seed: int
) -> dict[str, list[float]]:
    """95 % intervals, requests being what is resampled.

    In a closed loop throughput is concurrency times tokens by latency (Little's law), so the
    relative spread of ``sum(tokens) / sum(E2E)`` over resampled requests is that of the throughput.
    """
    latencies = _latencies(ok)
    intervals = {
        f"{name}_p{percent}_ms": [
            1e3 * bound for bound in percentile_interval(samples, percent, seed=seed)
        ]
        for name, samples in latencies.items()
        if len(samples) > 1
        for percent in (50, 95)
    }
    if len(ok) < 2:
        return intervals
    tokens = np.array([record.output_tokens or 0 for record in ok], dtype=float)
    ratio = float(np.sort(tokens).sum() / np.sort(latencies["e2e"]).sum())
    spread = ratio_interval(tokens, latencies["e2e"], seed=seed)
    for name in _THROUGHPUTS[:3]:
        intervals[name] = [metrics[name] * bound / ratio for bound in spread]
    return intervals


def _ok_share(run: LevelRun) -> float:
    ok = sum(1 for record in run.records if record.outcome is RequestOutcome.OK)
    return ok / len(run.records)


def _first(record: RequestRecord) -> float:
    if record.first_token_s is None:
        raise ValueError(f"request {record.index} counts as successful without a first token")
    return record.first_token_s


def _mean(values: Sequence[int | None]) -> float:
    return float(np.mean([value for value in values if value is not None]))
