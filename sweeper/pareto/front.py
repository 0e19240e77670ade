"""Non-dominated set and knee. Pure functions on arrays; nothing else is known here.

Everywhere: `values` has the shape (n, m), a row an alternative and a column an objective; `signs`
has the shape (m,), +1 for an objective to be maximised, -1 for one to be minimised. A row with a
value that is NaN or infinite is never on a front and never a knee.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]


def non_dominated(values: ArrayLike, signs: Sequence[int]) -> Mask:
    """Which rows no other row dominates. Rows that are equal are kept together.

    A row dominates another if it is at least as good in every objective and better in one.
    In lexicographic order only an earlier row can dominate a later one, so that each row is
    compared with the front found so far: O(n log n + n·f·m) for a front of f rows.

    Returns:
        Mask of the shape (n,).
    """
    goods = _goods(values, signs)
    mask = np.zeros(len(goods), dtype=bool)
    usable = np.flatnonzero(np.isfinite(goods).all(axis=1))
    if usable.size == 0:
        return mask
    unique, inverse = np.unique(goods[usable], axis=0, return_inverse=True)
    keep = np.zeros(len(unique), dtype=bool)
    front = np.empty((0, goods.shape[1]))
    for index in range(len(unique) - 1, -1, -1):
        row = unique[index]
        if not (front >= row).all(axis=1).any():
            keep[index] = True
            front = np.vstack([front, row])
    mask[usable] = keep[np.ravel(inverse)]
    return mask


def tied_with(front: Mask, values: ArrayLike, signs: Sequence[int], margins: ArrayLike) -> Mask:
    """Which rows no row of the front beats beyond noise.

    A row of the front beats another if it is as good in every objective, and better by more than
    the noise of the two in one.

    Args:
        front: shape (n,), the non-dominated rows.
        values: shape (n, m); the noisy columns positive.
        signs: shape (m,).
        margins: shape (n, p) for the first p columns: the noise of each value, on the logarithm;
            that of a difference is the root of the sum of squares. The other columns have none.

    Returns:
        Mask of the shape (n,); it holds the front.
    """
    goods, noise = _goods(values, signs), np.asarray(margins, dtype=np.float64)
    noisy = noise.shape[1]
    with np.errstate(invalid="ignore", divide="ignore"):
        logs = np.log(np.abs(goods[:, :noisy])) * np.sign(goods[:, :noisy])
    kept = np.isfinite(goods).all(axis=1) & np.isfinite(logs).all(axis=1)
    for row in np.flatnonzero(front):
        as_good = (goods[row] >= goods).all(axis=1)
        ahead = logs[row] - logs > np.sqrt(noise[row] ** 2 + noise**2)
        beyond = ahead.any(axis=1) | (goods[row, noisy:] > goods[:, noisy:]).any(axis=1)
        kept &= ~(as_good & beyond)
    result: Mask = kept | front
    return result


def knee(
    values: ArrayLike,
    signs: Sequence[int],
    *,
    log_axes: Sequence[bool] | None = None,
    min_spans: Sequence[float] | None = None,
) -> int | None:
    """The row of the front that bends furthest away from the line between the front's ends.

    Each objective of the front is scaled to [0, 1], 1 the best, on a log scale where asked. The
    distance of a point to the chord between the ends (0, 1) and (1, 0) grows with the sum of its
    scaled objectives, and that sum serves in the same way for three objectives.

    Args:
        values: shape (n, m); positive where the axis is logarithmic.
        signs: shape (m,).
        log_axes: shape (m,), whether an axis is taken as its logarithm; None means all.
        min_spans: shape (m,), the smallest span an axis is scaled by (after the logarithm), so
            that a spread within the noise does not decide; None means none.

    Returns:
        Row number, or None if no row is usable. Of equal rows, the first.
    """
    array = np.atleast_2d(np.asarray(values, dtype=np.float64))
    mask = non_dominated(array, signs)
    logs = list(log_axes) if log_axes is not None else [True] * len(signs)
    scaled = array.copy()
    for axis, is_log in enumerate(logs):
        if is_log:
            mask &= array[:, axis] > 0
            scaled[:, axis] = np.log(np.where(array[:, axis] > 0, array[:, axis], 1.0))
    rows = np.flatnonzero(mask)
    if rows.size == 0:
        return None
    goods = _goods(scaled, signs)[rows]
    low = goods.min(axis=0)
    floor = np.asarray(min_spans if min_spans is not None else [0.0] * len(signs))
    span = np.maximum(goods.max(axis=0) - low, floor)
    total = ((goods - low) / np.where(span > 0, span, 1.0)).sum(axis=1)
    # Sums of scaled numbers differ in their last bits by order alone: such ties go by value.
    best = np.flatnonzero(total >= total.max() - 1e-9)
    first = max(best, key=lambda index: (tuple(goods[index]), -int(rows[index])))
    return int(rows[first])


def _goods(values: ArrayLike, signs: Sequence[int]) -> Floats:
    """Values turned so that more is better, shape (n, m)."""
    if any(sign not in (1, -1) for sign in signs):
        raise ValueError(f"signs must be +1 or -1, not {list(signs)}")
    array = np.asarray(values, dtype=np.float64).reshape(-1, len(signs))
    return array * np.asarray(signs, dtype=np.float64)
