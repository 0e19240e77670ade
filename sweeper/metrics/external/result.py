"""What a result file of another client says, in this project's names and units. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sweeper.metrics.bootstrap import percentile_interval, ratio_interval
from sweeper.metrics.percentiles import PERCENTS, is_low_confidence, percentile

MIN_SUCCESS_SHARE = 0.99
INTERVAL_PERCENTS = (50, 95)
WHOLE_RUN = "whole run, start and end included"
_SEED = 0


@dataclass(frozen=True)
class ForeignLevel:
    """One load level as another client measured it.

    Attributes:
        name: of the level; the same as `sweeper.load.level.level_name` where it is the same load.
        load: what was asked, as far as the file tells.
        metrics: name with unit → value; what the file lacks is absent.
        intervals: metric → [low, high], 95 %.
        n: successful requests.
        reasons: why the figures are not to be trusted, one line each.
        low_confidence: metrics with too few samples for their percentile.
    """

    name: str
    load: dict[str, Any]
    metrics: dict[str, float]
    n: int | None
    intervals: dict[str, list[float]] = field(default_factory=dict)
    reasons: tuple[str, ...] = ()
    low_confidence: tuple[str, ...] = ()


@dataclass(frozen=True)
class ForeignRun:
    """A result file.

    Attributes:
        client: whose format it is.
        conditions: what the file tells of the run, by the names of the comparison's checklist
            (``model``, ``tokenizer``, ``workload``, …).
        levels: at least one.
        notes: what a reader of the figures has to know, one sentence each.
    """

    client: str
    conditions: dict[str, Any]
    levels: tuple[ForeignLevel, ...]
    notes: tuple[str, ...] = ()


def number(value: Any) -> float | None:
    """A finite number, None for anything else (text, null, NaN, a truth value)."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if math.isfinite(value) else None


def positive(value: Any) -> float | None:
    """A number above 0. Clients write 0 for what they have not measured."""
    found = number(value)
    return found if found is not None and found > 0 else None


def present(values: Mapping[str, Any]) -> dict[str, Any]:
    """Without what is None, empty text or no finite number."""
    return {name: value for name, value in values.items() if not _is_nothing(value)}


def _is_nothing(value: Any) -> bool:
    is_odd = isinstance(value, float) and not math.isfinite(value)
    return value is None or value == "" or is_odd


def samples_ms(
    name: str, seconds: Sequence[float]
) -> tuple[dict[str, float], dict[str, list[float]], list[str]]:
    """Percentiles of single requests: exact, and with intervals.

    Args:
        name: ``ttft``, ``tpot`` or ``e2e``.
        seconds: one a request.

    Returns:
        (metrics in milliseconds, 95 % intervals of P50 and P95, names with too few samples).
    """
    values = np.array(seconds, dtype=float)
    metrics = {f"{name}_mean_ms": 1e3 * float(np.mean(values))}
    metrics |= {f"{name}_p{p}_ms": 1e3 * percentile(values, p) for p in PERCENTS}
    intervals = {
        f"{name}_p{percent}_ms": [
            1e3 * bound for bound in percentile_interval([values], percent, seed=_SEED)
        ]
        for percent in INTERVAL_PERCENTS
        if len(values) > 1
    }
    return metrics, intervals, too_few(metrics, len(values))


def throughput_interval(
    rate: float, tokens: Sequence[float], seconds: Sequence[float]
) -> list[float] | None:
    """95 % interval of a throughput in a closed loop, from single requests.

    There throughput is streams times tokens by latency (Little's law), so the relative spread of
    ``sum(tokens) / sum(seconds)`` over resampled requests is that of the throughput.

    Args:
        rate: the throughput, in tokens/s.
        tokens, seconds: output tokens and E2E of every successful request.
    """
    if len(tokens) < 2 or len(tokens) != len(seconds) or min(seconds) <= 0 or sum(tokens) <= 0:
        return None
    above, below = np.array(tokens, dtype=float), np.array(seconds, dtype=float)
    spread = ratio_interval([(above, below)], seed=_SEED)
    middle = float(above.sum() / below.sum())
    return [rate * bound / middle for bound in spread]


def single_stream(load: Mapping[str, Any], metrics: Mapping[str, float]) -> dict[str, float]:
    """Speeds of one request at a time, from the means over all requests; empty at other loads."""
    if load.get("kind") != "closed" or load.get("concurrency") != 1:
        return {}
    found = {}
    e2e, ttft = metrics.get("e2e_mean_ms"), metrics.get("ttft_mean_ms")
    tpot, outputs = metrics.get("tpot_mean_ms"), metrics.get("output_tokens_mean")
    inputs = metrics.get("input_tokens_mean")
    if e2e and outputs:
        found["single_stream_tokens_per_s"] = 1e3 * outputs / e2e
    if ttft and inputs:
        found["single_stream_prefill_tokens_per_s"] = 1e3 * inputs / ttft
    if tpot:
        found["single_stream_decode_tokens_per_s"] = 1e3 / tpot
    return found


def too_few(metrics: Iterable[str], n: int | None) -> list[str]:
    """Those of the metrics whose percentile `n` samples cannot carry; all if `n` is not known."""
    found = []
    for name in metrics:
        percent = name.removesuffix("_ms").rpartition("_p")[2]
        if percent.isdigit() and (n is None or is_low_confidence(n, int(percent))):
            found.append(name)
    return found


def success_fault(completed: float | None, total: float | None) -> str | None:
    """Says so if too few requests succeeded; None if enough did, or nothing is known."""
    if completed is None or not total:
        return None
    share = completed / total
    if share >= MIN_SUCCESS_SHARE:
        return None
    return (
        f"{completed:g} of {total:g} requests succeeded ({share:.1%}); below "
        f"{MIN_SUCCESS_SHARE:.0%} the rest says little"
    )


def time_faults(metrics: Mapping[str, float]) -> list[str]:
    """Latencies that cannot be: a first token after the end of the request."""
    faults = []
    for percent in (50, 95):
        first, whole = metrics.get(f"ttft_p{percent}_ms"), metrics.get(f"e2e_p{percent}_ms")
        if first is not None and whole is not None and first > whole:
            faults.append(f"TTFT P{percent} ({first:g} ms) is above E2E P{percent} ({whole:g} ms)")
    return faults
