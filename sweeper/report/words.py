"""How numbers, deployments and metrics are written, the same in terminal and report. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

DEFAULTS = "engine defaults"
QUALITY, _NAME, _SHOWN = "quality", "quality_name", "quality_shown"

METRIC_LABELS: dict[str, str] = {
    "output_tokens_per_s": "output tokens/s",
    "output_tokens_per_s_per_gpu": "output tokens/s per device",
    "output_tokens_per_s_per_user": "output tokens/s per user",
    "e2e_p95_ms": "E2E P95 ms",
    "e2e_mean_ms": "E2E mean ms",
    "e2e_p50_ms": "E2E P50 ms",
    "ttft_p95_ms": "TTFT P95 ms",
    "tpot_p95_ms": "TPOT P95 ms",
    "quality": "quality",
}
"""Of the quality, `metric_label` knows which."""

PREDICTED_LABELS: dict[str, str] = {
    "predicted.output_tokens_per_s_ceiling": "output tokens/s, at most",
    "predicted.output_tokens_per_s_of_ceiling_share": "output tokens/s, share of that reached",
    "predicted.ttft_floor_ms": "TTFT ms, at least",
    "predicted.ttft_over_floor": "mean TTFT, times that",
    "predicted.tpot_floor_ms": "TPOT ms, at least",
    "predicted.tpot_over_floor": "mean TPOT, times that",
    "predicted.bandwidth_utilization_share": "memory bandwidth in use, share (MBU)",
    "predicted.flops_utilization_share": "arithmetic in use, share (MFU)",
}
"""What the hardware allows, and how near a point came to it; see `sweeper.estimate.speed`."""


def metric_label(metric: str, rows: Iterable[Mapping[str, Any]]) -> str:
    """What a metric is called; the quality by the name that rows of `points_frame` give it."""
    if metric == QUALITY:
        return next((str(row[_NAME]) for row in rows if _NAME in row), METRIC_LABELS[metric])
    return METRIC_LABELS.get(metric, metric)


def metric_text(metric: str, row: Mapping[str, Any]) -> str:
    """A metric of a row; the quality as people write it, which is not always as it ranks."""
    if metric == QUALITY and _SHOWN in row:
        return str(row[_SHOWN])
    return number(row.get(metric))


def level_text(row: Mapping[str, Any]) -> str:
    """The load level of a row; marked where the server could not keep up with it."""
    return f"{row['level']}, saturated" if row.get("saturated") else str(row["level"])


def deployment_text(deployment: Mapping[str, Any]) -> str:
    """``max_num_seqs=64 quantization=fp8``, sorted; the engine's defaults by their name."""
    return " ".join(f"{name}={deployment[name]}" for name in sorted(deployment)) or DEFAULTS


def number(value: object) -> str:
    """Four significant digits without an exponent; a dash for what was not measured."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "-"
    if not isinstance(value, int | float):
        return str(value)
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.4g}"


def seconds(value: float) -> str:
    """``1 h 02 min``, ``3 min 05 s`` or ``12 s``."""
    whole = max(0, round(value))
    hours, rest = divmod(whole, 3600)
    minutes, secs = divmod(rest, 60)
    if hours:
        return f"{hours} h {minutes:02d} min"
    return f"{minutes} min {secs:02d} s" if minutes else f"{secs} s"
