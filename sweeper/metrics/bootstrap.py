"""Percentile bootstrap with a seed: intervals that are the same every time. Pure.

Source: B. Efron, "Bootstrap methods: another look at the jackknife", Annals of Statistics 1979;
two stages: A. Davison and D. Hinkley, "Bootstrap Methods and their Application", 1997, section 3.8.

Samples come in groups, one a repeat of the level. With one group requests are resampled: the
interval tells how much a figure would move if other requests of the same run had been drawn, and
knows nothing of what another run would give. With more, repeats are resampled and then requests in
each, so that both kinds of variation count.

Three repeats resampled differ too little: their variance comes out (k - 1) / k of what it is, and
a normal quantile stands where Student's belongs. The deviations between repeats are therefore
stretched by both, after taking off what the requests in them explain already. On 150 simulated
levels of 3 repeats with 60 requests each, and repeats that differ four times as much as their
requests explain, nominal 95 % intervals of P50, P95 and mean held the truth in 75, 81 and 80 % of
cases as they were and in 88, 85 and 92 % stretched; where repeats do not differ, both hold it in
95 to 99 % and are about as wide.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from sweeper.metrics.percentiles import Samples

RESAMPLES = 1000
_CHUNK_CELLS = 4_000_000  # 32 MB of indices at a time
_WITHIN_RESAMPLES = 200
_NORMAL_975 = 1.959964
_STUDENT_975 = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228)

Statistic = Callable[[Samples], Samples]
"""Values of shape (rows, n, columns) in, one figure a row out, shape (rows,)."""


def percentile_interval(
    groups: Sequence[Samples], percent: float, *, seed: int, level: float = 0.95
) -> list[float]:
    """Interval of a percentile of all samples together, in their unit.

    Args:
        groups: one array of shape (n_i,) a repeat.
        percent: which percentile.
        seed: of the bootstrap.
        level: share of cases in which the truth should be inside.

    Raises:
        ValueError: a group is empty, or there is none.
    """

    def statistic(values: Samples) -> Samples:
        found: Samples = np.percentile(values[:, :, 0], percent, axis=1)
        return found

    # Sorted, because the order of requests must not matter.
    columns = [np.sort(group)[:, np.newaxis] for group in groups]
    return _interval(columns, statistic, seed=seed, level=level)


def ratio_interval(
    groups: Sequence[tuple[Samples, Samples]], *, seed: int, level: float = 0.95
) -> list[float]:
    """Interval of ``sum(numerators) / sum(denominators)``, pairs resampled together.

    Args:
        groups: numerators and denominators, each of shape (n_i,), one pair of arrays a repeat.
        seed, level: as in `percentile_interval`.

    Raises:
        ValueError: a group is empty, or there is none.
    """

    def statistic(values: Samples) -> Samples:
        found: Samples = values[:, :, 0].sum(axis=1) / values[:, :, 1].sum(axis=1)
        return found

    columns = [
        np.column_stack((above, below))[np.lexsort((below, above))] for above, below in groups
    ]
    return _interval(columns, statistic, seed=seed, level=level)


def student_975(degrees: int) -> float:
    """97.5 % quantile of Student's t; beyond ten degrees by its expansion about the normal one."""
    if degrees <= len(_STUDENT_975):
        return _STUDENT_975[degrees - 1]
    z = _NORMAL_975
    return z + (z**3 + z) / (4 * degrees) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * degrees**2)


def _interval(
    groups: Sequence[Samples], statistic: Statistic, *, seed: int, level: float
) -> list[float]:
    if not groups or any(len(group) == 0 for group in groups):
        raise ValueError("a bootstrap needs at least one sample")
    rng = np.random.default_rng(seed)
    tail = 50.0 * (1.0 - level)
    if len(groups) == 1:
        values = _resampled(groups[0], statistic, rng, RESAMPLES)
        low, high = np.percentile(values, [tail, 100.0 - tail])
        return [float(low), float(high)]
    ordered = sorted(groups, key=lambda group: group.tolist())  # nor must that of repeats
    low, high = np.percentile(_two_stages(ordered, statistic, rng), [tail, 100.0 - tail])
    estimate = _value(np.concatenate(ordered), statistic)
    return [max(0.0, min(float(low), estimate)), max(float(high), estimate)]


def _resampled(
    group: Samples, statistic: Statistic, rng: np.random.Generator, times: int
) -> Samples:
    n = len(group)
    rows = max(1, _CHUNK_CELLS // n)
    values = [
        statistic(group[rng.integers(0, n, size=(min(rows, times - done), n))])
        for done in range(0, times, rows)
    ]
    return np.concatenate(values)


def _two_stages(
    groups: Sequence[Samples], statistic: Statistic, rng: np.random.Generator
) -> Samples:
    """Figures of resampled repeats of resampled requests, shape (RESAMPLES,)."""
    chosen = np.sort(rng.integers(0, len(groups), size=(RESAMPLES, len(groups))), axis=1)
    sets, which = np.unique(chosen, axis=0, return_inverse=True)
    centres = np.array(
        [_value(np.concatenate([groups[i] for i in row]), statistic) for row in sets]
    )[which.reshape(-1)]
    estimate = _value(np.concatenate(groups), statistic)
    noise = _of_requests(groups, chosen, statistic, rng) - centres
    stretched: Samples = estimate + _stretch(groups, statistic, rng) * (centres - estimate) + noise
    return stretched


def _of_requests(
    groups: Sequence[Samples],
    chosen: npt.NDArray[np.intp],
    statistic: Statistic,
    rng: np.random.Generator,
) -> Samples:
    """Figures of the `chosen` repeats, shape (rows, k), with requests drawn anew in each.

    Each repeat gives as many requests as repeats have on average: they were asked for the same.
    """
    sizes = np.array([len(group) for group in groups])
    starts = np.cumsum(sizes) - sizes
    everything = np.concatenate(groups)
    draws = max(1, round(float(sizes.mean())))
    rows = max(1, _CHUNK_CELLS // (draws * len(groups)))
    values = []
    for done in range(0, len(chosen), rows):
        part = chosen[done : done + rows]
        place = rng.random((*part.shape, draws)) * sizes[part][:, :, np.newaxis]
        index = starts[part][:, :, np.newaxis] + place.astype(np.intp)
        values.append(statistic(everything[index.reshape(len(part), -1)]))
    return np.concatenate(values)


def _stretch(groups: Sequence[Samples], statistic: Statistic, rng: np.random.Generator) -> float:
    """Factor on deviations between repeats, see the head of this module; 0 if there are none."""
    k = len(groups)
    spread = float(np.var([_value(group, statistic) for group in groups], ddof=1))
    if spread == 0.0:
        return 0.0
    explained = np.mean(
        [np.var(_resampled(group, statistic, rng, _WITHIN_RESAMPLES)) for group in groups]
    )
    unexplained = max(0.0, 1.0 - float(explained) / spread)
    student = student_975(k - 1) / _NORMAL_975
    return float(student * np.sqrt(k / (k - 1) * unexplained))


def _value(group: Samples, statistic: Statistic) -> float:
    return float(statistic(group[np.newaxis])[0])
