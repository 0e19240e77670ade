"""Percentiles, and how many samples they need. Pure."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Samples = npt.NDArray[np.float64]

PERCENTS = (50, 90, 95, 99)
_TAIL_SAMPLES = 10


def percentile(samples: Samples, percent: float) -> float:
    """`percent`-th percentile of `samples`, shape (n,), linear between neighbours.

    Raises:
        ValueError: there are no samples; a percentile of nothing is not a number.
    """
    if len(samples) == 0:
        raise ValueError("a percentile needs at least one sample")
    return float(np.percentile(samples, percent))


def is_low_confidence(n: int, percent: int) -> bool:
    """True if fewer than ten of `n` samples lie beyond the percentile.

    P95 therefore needs 200 samples and P99 a thousand: the P99 of 20 requests is their maximum.
    """
    return n * (100 - percent) < 100 * _TAIL_SAMPLES


def describe_ms(name: str, seconds: Samples) -> tuple[dict[str, float], list[str]]:
    """Mean and percentiles of one latency.

    Args:
        name: ``ttft``, ``tpot`` or ``e2e``.
        seconds: samples, shape (n,).

    Returns:
        metrics such as ``ttft_p95_ms`` in milliseconds (none at all if n is 0), and the names of
        those with too few samples.
    """
    if len(seconds) == 0:
        return {}, []
    metrics = {f"{name}_mean_ms": 1e3 * float(np.mean(np.sort(seconds)))}
    metrics |= {f"{name}_p{p}_ms": 1e3 * percentile(seconds, p) for p in PERCENTS}
    few = [f"{name}_p{p}_ms" for p in PERCENTS if is_low_confidence(len(seconds), p)]
    return metrics, few
