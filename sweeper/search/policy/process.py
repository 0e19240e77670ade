"""An exact Gaussian process for few, costly observations. Pure; numpy and scipy alone.

Matérn 5/2 kernel with one length scale a parameter, a constant mean and a noise of its own. What
was expected beforehand (a simulator's prediction, say) enters as a straight line whose slope is
unknown: an expectation that ranks well explains the observations and is followed, one that does not
gets a slope of nothing, and the data decide which.

The kernel's parameters maximise the marginal likelihood times a prior. Length scales are log-normal
around a value that grows with the root of the number of parameters (Hvarfner et al. 2024, "Vanilla
Bayesian Optimization Performs Great in High Dimensions"), which keeps a study of ten launches from
believing in one parameter alone. The fit always starts at the prior's centre: it is a function of
the data.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

LENGTH_CENTRE, LENGTH_SPREAD = 0.6, 1.2
"""Prior of a length scale: log-normal, the centre times the root of the number of parameters."""
NOISE_CENTRE, NOISE_SPREAD = 1e-3, 1.5
"""Prior of the noise's variance, as a share of the signal's."""
TREND_CENTRE, TREND_SPREAD = 1.0, 2.0
"""Prior of the variance of the slope on what was expected, as a share of the signal's."""
SIGNAL_WEIGHT = 2.0
"""Observations' worth of belief that standardised values have a variance of 1."""
LOWEST_NOISE = 1e-5
FIT_ROUNDS = 60
ROOT_5 = math.sqrt(5.0)


@dataclass(frozen=True)
class Kernel:
    """What was fitted.

    Attributes:
        lengths: length scale of each parameter, shape (groups,).
        noise: variance of the noise, as a share of the signal's.
        trend: variance of the slope on the expectation, likewise; 0 without one.
    """

    lengths: Floats
    noise: float
    trend: float = 0.0


class Process:
    """A Gaussian process that knows some observations.

    Args:
        x: coordinates, shape (n, columns).
        y: values, shape (n,).
        groups: parameter (group) of each column.
        expected: what was expected of each, shape (n,), centred and of unit spread; or None.
        kernel: fitted before, to spare the fit.
    """

    def __init__(
        self,
        x: Floats,
        y: Floats,
        groups: Sequence[int],
        expected: Floats | None = None,
        kernel: Kernel | None = None,
    ) -> None:
        import numpy as np
        from scipy.linalg import cho_factor, cho_solve

        self._groups = np.asarray(groups, dtype=int)
        self._centre = float(y.mean())
        self._scale = float(y.std()) or 1.0
        z = (y - self._centre) / self._scale
        self.kernel = kernel or fit(x, z, groups, expected)
        self._near = x / self.kernel.lengths[self._groups]
        self._expected = expected
        covariance = self._covariance(self._near, expected)
        covariance[np.diag_indices_from(covariance)] += self.kernel.noise
        self._factor = cho_factor(covariance, lower=True)
        self._weights = cho_solve(self._factor, z)
        self._signal = self._scale * math.sqrt(_signal(float(z @ self._weights), len(z)))

    def predict(self, x: Floats, expected: Floats | None = None) -> tuple[Floats, Floats]:
        """Mean and standard deviation (of the value without noise) at x, each of shape (len(x),).

        Args:
            x: coordinates, shape (m, columns).
            expected: shape (m,), where the observations had one.
        """
        import numpy as np
        from scipy.linalg import solve_triangular

        across = self._covariance(x / self.kernel.lengths[self._groups], expected)
        mean = across @ self._weights
        half = solve_triangular(self._factor[0], across.T, lower=True)
        alone = 1.0 if expected is None else 1.0 + self.kernel.trend * expected**2
        variance = np.maximum(alone - np.einsum("ij,ij->j", half, half), 1e-12)
        return self._centre + self._scale * mean, self._signal * np.sqrt(variance)

    def _covariance(self, near: Floats, expected: Floats | None) -> Floats:
        import numpy as np

        covariance = _matern(_squares(near, self._near))
        if expected is not None and self._expected is not None:
            covariance += self.kernel.trend * np.outer(expected, self._expected)
        return covariance


def fit(x: Floats, z: Floats, groups: Sequence[int], expected: Floats | None = None) -> Kernel:
    """The kernel of highest posterior density for standardised values z."""
    import numpy as np
    from scipy.optimize import minimize

    index = np.asarray(groups, dtype=int)
    count = int(index.max()) + 1
    apart = np.stack([_squares(x[:, index == g], x[:, index == g]) for g in range(count)])
    line = None if expected is None else expected[:, None] * expected[None, :]
    centre = np.array([
        *[math.log(LENGTH_CENTRE * math.sqrt(count))] * count,
        math.log(NOISE_CENTRE),
        *([] if line is None else [math.log(TREND_CENTRE)]),
    ])  # fmt: skip
    spread = np.array([LENGTH_SPREAD] * count + [NOISE_SPREAD, TREND_SPREAD])[: len(centre)]
    bounds = [(math.log(0.02), math.log(100.0))] * count + [
        (math.log(LOWEST_NOISE), 0.0),
        (math.log(1e-6), math.log(100.0)),
    ]
    found = minimize(
        lambda theta: _loss(theta, apart, line, z, prior=(centre, spread)),
        centre,
        jac=True,
        method="L-BFGS-B",
        bounds=bounds[: len(centre)],
        options={"maxiter": FIT_ROUNDS},
    )
    values = np.exp(found.x)
    trend = 0.0 if line is None else float(values[-1])
    return Kernel(values[:count], float(values[count]), trend)


def _loss(
    theta: Floats,
    apart: Floats,
    line: Floats | None,
    z: Floats,
    *,
    prior: tuple[Floats, Floats],
) -> tuple[float, Floats]:
    """Negative log posterior of the kernel's logarithms, and its gradient.

    The signal's variance is not searched: for a given shape it has a closed form (profile
    likelihood), see `_signal`.

    Args:
        theta: logarithms of length scales, noise and, where there is a line, trend.
        apart: squared distances by parameter, shape (groups, n, n).
        line: outer product of the expectations, or None.
        z: standardised values, shape (n,).
        prior: centres and spreads of the logarithms, each of theta's shape.
    """
    import numpy as np
    from scipy.linalg import cho_factor, cho_solve

    n, count = len(z), len(apart)
    parts = apart * np.exp(-2.0 * theta[:count])[:, None, None]
    distance = ROOT_5 * np.sqrt(parts.sum(axis=0))
    decay = np.exp(-distance)
    noise = math.exp(theta[count])
    covariance = (1.0 + distance + distance**2 / 3.0) * decay
    if line is not None:
        covariance += math.exp(theta[-1]) * line
    covariance[np.diag_indices_from(covariance)] += noise + 1e-9
    factor = cho_factor(covariance, lower=True)
    inverse = cho_solve(factor, np.eye(n))
    weights = inverse @ z
    signal = _signal(float(z @ weights), n)
    outer = inverse - np.outer(weights, weights) / signal
    slope = (5.0 / 3.0) * (1.0 + distance) * decay
    centre, spread = prior
    off = (theta - centre) / spread
    loss = 0.5 * (n + SIGNAL_WEIGHT) * math.log(signal) + float(np.log(np.diag(factor[0])).sum())
    gradient = off / spread
    gradient[:count] += 0.5 * np.einsum("ij,gij->g", outer * slope, parts)
    gradient[count] += 0.5 * noise * float(np.trace(outer))
    if line is not None:
        gradient[-1] += 0.5 * math.exp(theta[-1]) * float((outer * line).sum())
    return loss + 0.5 * float(off @ off), gradient


def _signal(explained: float, n: int) -> float:
    """Variance of the signal, from z' K^-1 z of n observations, drawn towards 1."""
    return (explained + SIGNAL_WEIGHT) / (n + SIGNAL_WEIGHT)


def _squares(a: Floats, b: Floats) -> Floats:
    """Squared distances, shape (len(a), len(b))."""
    import numpy as np

    squares = (a * a).sum(1)[:, None] + (b * b).sum(1)[None, :] - 2.0 * (a @ b.T)
    clipped: Floats = np.maximum(squares, 0.0)
    return clipped


def _matern(squares: Floats) -> Floats:
    import numpy as np

    distance = ROOT_5 * np.sqrt(squares)
    values: Floats = (1.0 + distance + distance**2 / 3.0) * np.exp(-distance)
    return values
