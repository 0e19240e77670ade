"""Percentile bootstrap with a seed: intervals that are the same every time. Pure.

Source: B. Efron, "Bootstrap methods: another look at the jackknife", Annals of Statistics 1979.
An interval tells how much a figure would move if other requests of the same run had been drawn;
it does not know how much another launch would differ, which is what confirmation repeats are for.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from sweeper.metrics.percentiles import Samples

RESAMPLES = 1000
_CHUNK_CELLS = 4_000_000  # 32 MB of indices at a time


def percentile_interval(
    samples: Samples, percent: float, *, seed: int, level: float = 0.95
) -> list[float]:
    """Interval of a percentile of `samples`, shape (n,), in the samples' unit."""
    ordered = np.sort(samples)  # the order of requests must not matter

    def statistic(indices: npt.NDArray[np.intp]) -> npt.NDArray[np.float64]:
        values: npt.NDArray[np.float64] = np.percentile(ordered[indices], percent, axis=1)
        return values

    return _interval(len(ordered), statistic, seed=seed, level=level)


def ratio_interval(
    numerators: Samples, denominators: Samples, *, seed: int, level: float = 0.95
) -> list[float]:
    """Interval of ``sum(numerators) / sum(denominators)``, pairs resampled together, shape (n,)."""
    order = np.lexsort((denominators, numerators))
    above, below = numerators[order], denominators[order]

    def statistic(indices: npt.NDArray[np.intp]) -> npt.NDArray[np.float64]:
        values: npt.NDArray[np.float64] = above[indices].sum(axis=1) / below[indices].sum(axis=1)
        return values

    return _interval(len(above), statistic, seed=seed, level=level)


def _interval(
    n: int,
    statistic: Callable[[npt.NDArray[np.intp]], npt.NDArray[np.float64]],
    *,
    seed: int,
    level: float,
) -> list[float]:
    if n == 0:
        raise ValueError("a bootstrap needs at least one sample")
    rng = np.random.default_rng(seed)
    rows = max(1, _CHUNK_CELLS // n)
    values = [
        statistic(rng.integers(0, n, size=(min(rows, RESAMPLES - done), n)))
        for done in range(0, RESAMPLES, rows)
    ]
    tail = 50.0 * (1.0 - level)
    low, high = np.percentile(np.concatenate(values), [tail, 100.0 - tail])
    return [float(low), float(high)]
