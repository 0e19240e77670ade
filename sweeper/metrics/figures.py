"""The metrics of a level, see `sweeper.metrics.summary` for what each is. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from sweeper.load.level import BATCH
from sweeper.load.records import LevelRun, RequestOutcome, RequestRecord
from sweeper.metrics import open_loop, server_side
from sweeper.metrics.latencies import latencies
from sweeper.metrics.percentiles import Samples, describe_ms
from sweeper.metrics.window import (
    Rates,
    Repeat,
    pooled_in_flight,
    pooled_rates,
    rates,
    timed,
)

THROUGHPUTS = (
    "output_tokens_per_s",
    "output_tokens_per_s_per_gpu",
    "output_tokens_per_s_per_user",
    "total_tokens_per_s",
    "requests_per_s",
)


def figures(
    runs: Sequence[LevelRun], repeats: Sequence[Repeat], device_count: int
) -> tuple[dict[str, float], list[str]]:
    """All metrics, and the names of those with too few samples.

    Args:
        runs: all repeats of the level.
        repeats: those with requests to believe, at least one.
        device_count: GPUs, 1 for a CPU.
    """
    samples = pooled_latencies(repeats)
    metrics: dict[str, float | None] = {}
    low = [] if all(repeat.window.steady for repeat in repeats) else list(THROUGHPUTS)
    metrics |= _throughput(repeats, device_count)
    for name, seconds in samples.items():
        described, few = describe_ms(name, seconds)
        metrics |= described
        low += few
    ok = [record for repeat in repeats for record in repeat.ok]
    metrics |= _phases(repeats, samples, ok, device_count)
    metrics |= _repeat_spread(repeats)
    metrics |= server_side.counters(runs) | server_side.gauges(repeats) | _client(runs)
    if runs[0].level.scheduled:
        metrics |= open_loop.figures(runs)
    metrics["success_share"] = _ok_share(runs)
    metrics["batch_mean"] = metrics["running_mean_requests"] or metrics["achieved_concurrency"]
    known = {name: value for name, value in metrics.items() if value is not None}
    return {name: value for name, value in known.items() if math.isfinite(value)}, low


def pooled_latencies(repeats: Sequence[Repeat]) -> dict[str, Samples]:
    """Seconds by name over all repeats, each of shape (n,); outliers are kept."""
    found = [latencies_of(repeat) for repeat in repeats]
    return {name: np.concatenate([each[name] for each in found]) for name in found[0]}


def latencies_of(repeat: Repeat) -> dict[str, Samples]:
    """The same of one repeat."""
    return latencies(repeat.ok, streamed=repeat.run.beam_width == 1)


def _throughput(repeats: Sequence[Repeat], device_count: int) -> dict[str, float | None]:
    run = repeats[0].run
    rate = pooled_rates([(repeat.ok, repeat.window) for repeat in repeats])
    under_way = pooled_in_flight([(timed(each.run.records), each.window) for each in repeats])
    users = under_way if run.level.scheduled else float(run.concurrency or 1)
    return {
        "output_tokens_per_s": rate.output_tokens,
        "output_tokens_per_s_per_gpu": rate.output_tokens / device_count,
        "output_tokens_per_s_per_user": rate.output_tokens / users if users > 0 else None,
        "total_tokens_per_s": rate.output_tokens + rate.input_tokens,
        "requests_per_s": rate.requests,
        "achieved_concurrency": under_way,
        **_system_phases(rate, device_count, streamed=_streamed(run)),
    }


def _system_phases(rate: Rates, device_count: int, *, streamed: bool) -> dict[str, float | None]:
    prefill, decode = (rate.prefill_tokens, rate.decode_tokens) if streamed else (None, None)
    return {
        "prefill_tokens_per_s": prefill,
        "prefill_tokens_per_s_per_gpu": None if prefill is None else prefill / device_count,
        "decode_tokens_per_s": decode,
        "decode_tokens_per_s_per_gpu": None if decode is None else decode / device_count,
        "decode_batch_mean": rate.decoding if decode is not None else None,
    }


def _phases(
    repeats: Sequence[Repeat],
    samples: dict[str, Samples],
    ok: Sequence[RequestRecord],
    device_count: int,
) -> dict[str, float | None]:
    """Prefill and decode as one user sees them, and the speed of a single stream."""
    first = [record for record in ok if record.first_token_s is not None]
    inputs = math.fsum(record.prompt_tokens or 0 for record in first)
    outputs = math.fsum(record.output_tokens or 0 for record in ok)
    ttft, tpot = _sum(samples["ttft"]), _sum(samples["tpot"])
    prefill = inputs / ttft if ttft > 0 else None
    decode = len(samples["tpot"]) / tpot if tpot > 0 else None
    metrics: dict[str, float | None] = {
        "prefill_tokens_per_s_per_user": prefill,
        "decode_tokens_per_s_per_user": decode,
        "input_tokens_mean": math.fsum(record.prompt_tokens or 0 for record in ok) / len(ok),
        "output_tokens_mean": outputs / len(ok),
    }
    run = repeats[0].run
    if run.concurrency == 1 and not run.level.scheduled:
        metrics |= {
            "single_stream_tokens_per_s": outputs / _sum(samples["e2e"]),
            "single_stream_prefill_tokens_per_s": prefill,
            "single_stream_decode_tokens_per_s": decode,
        }
    return metrics


def _repeat_spread(repeats: Sequence[Repeat]) -> dict[str, float | None]:
    """How far repeats of the level lie apart in throughput; nothing of a single one."""
    if len(repeats) < 2:
        return {}
    each = np.sort([rates(repeat.ok, repeat.window).output_tokens for repeat in repeats])
    mean = float(each.mean())
    return {
        "output_tokens_per_s_repeat_cv": float(each.std(ddof=1)) / mean if mean > 0 else None,
        "output_tokens_per_s_repeat_min": float(each[0]),
        "output_tokens_per_s_repeat_max": float(each[-1]),
    }


def _client(runs: Sequence[LevelRun]) -> dict[str, float | None]:
    spent = math.fsum(run.duration_s for run in runs)
    lags = [run.loop_lag_p95_s for run in runs if run.loop_lag_p95_s is not None]
    return {
        "client_cpu_share": math.fsum(r.client_cpu_s for r in runs) / spent if spent > 0 else None,
        "client_loop_lag_p95_ms": 1e3 * max(lags) if lags else None,
        "level_overhead_s": math.fsum(run.overhead_s for run in runs) / len(runs),
    }


def _ok_share(runs: Sequence[LevelRun]) -> float:
    outcomes = [record.outcome for run in runs for record in run.records]
    return outcomes.count(RequestOutcome.OK) / len(outcomes)


def _streamed(run: LevelRun) -> bool:
    return run.level.kind != BATCH and run.beam_width == 1


def _sum(values: Samples) -> float:
    return math.fsum(values)
