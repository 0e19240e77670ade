"""Deployments launched block by block: what each gains over the control, with intervals. Pure.

A block is one launch of every deployment, so that a machine that drifts from hour to hour drifts
for all of them alike. With y the natural logarithm of a figure,

    y(block, treatment) = block + treatment + noise

is fitted by least squares. In a full design the effect of a treatment is the mean of its paired
differences from the control; where a launch is missing the others still count. The noise is pooled
over all treatments, which is what makes three repeats worth something.

The intervals hold for all treatments at once (Dunnett, JASA 50, 1955, for comparisons with one
control), so that whoever picks the best of them is not fooled by having picked.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sweeper.metrics.noise import CONFIDENCE

Floats = NDArray[np.float64]

MIN_PAIRS = 2
"""Blocks that a treatment must share with the control: from one nobody knows the noise."""
_STANDS_OUT = 0.01
"""Chance below which launches outside the blocks are not taken for repeats of those inside."""
_NODES = 64
"""Of a quadrature: four digits of the critical value."""
_EXACT = 1e-12
"""Residuals of logarithms below this are rounding, not noise."""


@dataclass(frozen=True)
class Effect:
    """What a treatment gains over the control.

    Attributes:
        log_ratio: natural logarithm of treatment / control.
        half_width: of its 95 % interval, which holds for all treatments together.
        pairs: blocks in which both were measured.
    """

    log_ratio: float
    half_width: float
    pairs: int

    @property
    def ratio(self) -> float:
        return math.exp(self.log_ratio)

    @property
    def low(self) -> float:
        """Lower end of the ratio's interval."""
        return math.exp(self.log_ratio - self.half_width)

    @property
    def high(self) -> float:
        """Upper end of the ratio's interval."""
        return math.exp(self.log_ratio + self.half_width)


@dataclass(frozen=True)
class BlockFit:
    """A fitted block design.

    Attributes:
        effects: one a treatment, the control left out; None where it shares fewer than
            `MIN_PAIRS` blocks with the control.
        sd_log: noise of a single launch, on the logarithm.
        dof: degrees of freedom behind it.
    """

    effects: tuple[Effect | None, ...]
    sd_log: float
    dof: int

    @property
    def exact(self) -> bool:
        """True if repeats agree to the last digit: they were not measured anew."""
        return self.sd_log <= _EXACT


def fit_blocks(figures: ArrayLike, loose: Sequence[float] = ()) -> BlockFit | None:
    """Compare every treatment with the control.

    Args:
        figures: shape (blocks, treatments), the control in column 0; positive, NaN where a launch
            gave none.
        loose: figures of launches of the control outside any block. They only help to know the
            noise, and not at all where they stand out: the machine was another one then.

    Returns:
        None if nothing is left to tell the noise from (no degree of freedom).
    """
    array = np.asarray(figures, dtype=np.float64)
    known = np.isfinite(array) & (array > 0)
    rows, columns = np.nonzero(known)
    design = _design(rows, columns, array.shape)
    dof = len(rows) - int(np.linalg.matrix_rank(design)) if len(rows) else 0
    if dof < 1:
        return None
    observed = np.log(array[rows, columns])
    inverse = np.linalg.pinv(design.T @ design)
    fitted = inverse @ design.T @ observed
    squares = float(np.sum((observed - design @ fitted) ** 2))
    squares, dof = _with_loose(squares, dof, observed[columns == 0], loose)
    sd_log = math.sqrt(squares / dof)
    blocks = array.shape[0]
    pairs = (known[:, :1] & known[:, 1:]).sum(axis=0)
    judged = np.flatnonzero(pairs >= MIN_PAIRS)
    covariance = np.asarray(inverse[blocks:, blocks:][np.ix_(judged, judged)], np.float64)
    critical = _critical(covariance, dof) if judged.size else 0.0
    effects: list[Effect | None] = [None] * len(pairs)
    for place, column in enumerate(judged):
        error = sd_log * math.sqrt(covariance[place, place])
        gained = float(fitted[blocks + column])
        effects[column] = Effect(gained, critical * error, int(pairs[column]))
    return BlockFit(tuple(effects), sd_log, dof)


def _design(rows: NDArray[np.intp], columns: NDArray[np.intp], shape: tuple[int, ...]) -> Floats:
    """A row a launch; a column a block, then a column a treatment but for the control."""
    blocks, treatments = shape
    design = np.zeros((len(rows), blocks + treatments - 1))
    design[np.arange(len(rows)), rows] = 1.0
    treated = np.flatnonzero(columns > 0)
    design[treated, blocks + columns[treated] - 1] = 1.0
    return design


def _with_loose(
    squares: float, dof: int, control: Floats, loose: Sequence[float]
) -> tuple[float, int]:
    """Sum of squares and degrees of freedom with the control's other launches, if they belong."""
    others = np.log([value for value in loose if value > 0])
    if not others.size or not control.size:
        return squares, dof
    together = np.concatenate([control, others])
    more = float(together.var() * together.size - control.var() * control.size)
    count = len(others)
    from scipy.special import fdtrc

    if squares <= 0 or fdtrc(count, dof, (more / count) / (squares / dof)) < _STANDS_OUT:
        return squares, dof
    return squares + more, dof + count


def half_width(sd_log: float, repeats: int, candidates: int) -> float:
    """Half of the interval that `repeats` full blocks would have, on the logarithm.

    For planning: by Bonferroni's value, which needs no integral and is a little wide.

    Raises:
        ValueError: the design leaves no degree of freedom.
    """
    from scipy.special import stdtrit

    dof = (repeats - 1) * candidates
    if dof < 1:
        raise ValueError("a design of one block, or of nothing but the control, has no interval")
    critical = float(stdtrit(dof, 1 - (1 - CONFIDENCE) / (2 * candidates)))
    return critical * sd_log * math.sqrt(2 / repeats)


def _critical(covariance: Floats, dof: int) -> float:
    """Standard errors that a simultaneous two-sided interval reaches to each side.

    Where launches are missing the correlations differ: the smallest asks for most.
    """
    scale = np.sqrt(np.diag(covariance))
    correlation = covariance / np.outer(scale, scale)
    upper = correlation[np.triu_indices(len(scale), 1)]
    shared = float(np.clip(upper.min(), 0.0, 0.99)) if upper.size else 0.0
    return _dunnett(round(shared, 6), len(scale), dof)


@lru_cache(maxsize=256)
def _dunnett(correlation: float, count: int, dof: int) -> float:
    """Two-sided critical value of the largest of `count` t statistics of equal correlation.

    What they share, the control and the estimate of the noise, is integrated out; given both they
    are independent. The value lies between that for one comparison and Bonferroni's.
    """
    from scipy.special import chdtri, ndtr, stdtrit

    alpha = 1 - CONFIDENCE
    single = float(stdtrit(dof, 1 - alpha / 2))
    if count == 1:
        return single
    control, control_weights = np.polynomial.hermite_e.hermegauss(_NODES)
    shares, noise_weights = np.polynomial.legendre.leggauss(2 * _NODES)
    noise = np.sqrt(chdtri(dof, (1 - shares) / 2) / dof)
    centre = math.sqrt(correlation) * control[:, None]

    def excess(value: float) -> float:
        ends = (centre + value * noise, centre - value * noise)
        high, low = (ndtr(end / math.sqrt(1 - correlation)) for end in ends)
        inside = control_weights @ (high - low) ** count @ noise_weights
        return float(inside / control_weights.sum() / 2) - CONFIDENCE

    from scipy.optimize import brentq

    return float(brentq(excess, single, 1.01 * float(stdtrit(dof, 1 - alpha / (2 * count)))))
