"""Figures of a simulated load level, taken from its requests as those of a measured one are.

The simulator's own throughput divides by the whole run, ramp-up and drain included; a measured one
is taken from the steady window. So the window is cut here too: in a closed loop from the start,
when all streams send at once, to the first end after the last request was sent; with arrivals by
the clock to the last arrival.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

PERCENTS = (50, 90, 95, 99)
GIB = 1 << 30


def answer(
    summary: Mapping[str, Any], native: Mapping[str, Any], *, devices: int, closed: bool
) -> dict[str, Any]:
    """What is told of one prediction: ``metrics``, ``n``, ``duration_s``, ``learnt``, ``tables``.

    ``refused`` instead, if no request was served.
    """
    requests = [one for one in native["per_request"] if one["terminal_status"] == "completed"]
    if not requests:
        return {"refused": f"{summary.get('stop_reason')}: {summary.get('diagnostic')}"}
    metrics = figures(requests, devices=devices, closed=closed)
    share = summary.get("prefix_cache_reused_ratio")
    if share:
        metrics["prefix_cache_hit_share"] = float(share)
    provenance = summary.get("prediction_provenance", {}).get("aggregated", {})
    return {
        "metrics": metrics,
        "n": len(requests),
        "duration_s": float(summary["duration_ms"]) / 1e3,
        "learnt": learnt(native.get("memory_diagnostics", {}).get("aggregated", {})),
        "tables": provenance.get("data_version"),
    }


def figures(
    requests: Sequence[Mapping[str, Any]], *, devices: int, closed: bool
) -> dict[str, float]:
    """Metrics by sweeper's names and in its units, of requests that were all served.

    Args:
        requests: one record each, times in milliseconds.
        devices: GPUs of the deployment.
        closed: True for a closed loop, False for arrivals by the clock.
    """
    sent, first, end = (
        np.array([float(one[name]) for one in requests]) / 1e3
        for name in ("arrival_time_ms", "first_token_ms", "last_token_ms")
    )
    read = np.array([float(one["input_length"]) for one in requests])
    written = np.array([float(one["output_length"]) for one in requests])
    many = written > 1
    latencies = {
        "ttft": first - sent,
        "tpot": (end - first)[many] / (written - 1)[many],
        "e2e": end - sent,
    }
    metrics = {"input_tokens_mean": read.mean(), "output_tokens_mean": written.mean()}
    for name, seconds in latencies.items():
        if len(seconds):
            metrics[f"{name}_mean_ms"] = 1e3 * seconds.mean()
            for percent in PERCENTS:
                metrics[f"{name}_p{percent}_ms"] = 1e3 * np.percentile(seconds, percent)
    window = _window(sent, end, closed=closed)
    metrics |= _rates(sent, first, end, read, written, devices=devices, window=window)
    if closed and metrics["achieved_concurrency"] <= 1.0 + 1e-6:
        metrics["single_stream_tokens_per_s"] = written.sum() / (end - sent).sum()
    return {name: float(value) for name, value in metrics.items() if math.isfinite(value)}


def _rates(
    sent: Any,
    first: Any,
    end: Any,
    read: Any,
    written: Any,
    *,
    devices: int,
    window: tuple[float, float],
) -> dict[str, float]:
    """Shapes (n,). The first token is written at once, the others evenly until the end."""
    start_s, end_s = window
    length = end_s - start_s
    at_first = (first > start_s) & (first <= end_s)
    output = (at_first + (written - 1) * _share(first, end, start_s, end_s)).sum() / length
    life = _share(sent, end, start_s, end_s)
    streams = (life * (end - sent)).sum() / length
    return {
        "output_tokens_per_s": output,
        "output_tokens_per_s_per_gpu": output / devices,
        "output_tokens_per_s_per_user": output / streams,
        "total_tokens_per_s": output + (read * _share(sent, first, start_s, end_s)).sum() / length,
        "requests_per_s": life.sum() / length,
        "achieved_concurrency": streams,
    }


def _window(sent: Any, end: Any, *, closed: bool) -> tuple[float, float]:
    """Steady state, or everything if too little happened in it."""
    stop = end[end > sent.max()].min() if closed else sent.max()
    steady = (float(sent.min()), float(stop))
    return steady if steady[1] > steady[0] else (steady[0], float(end.max()))


def _share(start: Any, end: Any, from_s: float, to_s: float) -> Any:
    """Share of each interval, shape (n,), that lies in the window; an instant is in or out."""
    length = end - start
    inside = np.clip(np.minimum(end, to_s) - np.maximum(start, from_s), 0.0, None)
    instant = (end > from_s) & (end <= to_s)
    return np.where(length > 0, inside / np.where(length > 0, length, 1.0), instant)


def learnt(memory: Mapping[str, Any]) -> dict[str, float]:
    """Memory of one device as a real start would log it."""
    parts = memory.get("memory_breakdown") or {}
    told = {
        "kv_cache_tokens": memory.get("total_kv_size_tokens"),
        "kv_cache_memory_gib": _gib(memory.get("total_kv_size_bytes")),
        "model_memory_gib": _gib(parts.get("weights_bytes")),
    }
    return {name: value for name, value in told.items() if value is not None}


def _gib(size: float | None) -> float | None:
    return None if size is None else round(size / GIB, 3)
