"""How numbers, deployments and metrics are written, the same in terminal and report. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

DEFAULTS = "engine defaults"

METRIC_LABELS: dict[str, str] = {
    "output_tokens_per_s": "output tokens/s",
    "output_tokens_per_s_per_gpu": "output tokens/s per device",
    "e2e_p95_ms": "E2E P95 ms",
    "ttft_p95_ms": "TTFT P95 ms",
    "tpot_p95_ms": "TPOT P95 ms",
    "quality": "agreement",
}


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
