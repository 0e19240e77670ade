"""How much volume a predicted outcome would add to what is dominated. Pure.

The volume that a set of points dominates above a reference is, up to a constant, the mean over
directions λ (uniform on the positive part of the unit sphere) of the best point's
``min_k (y_k / λ_k)`` to the power of m (Golovin and Zhang 2020, "Random Hypervolume
Scalarizations"). So one sum serves one goal (λ = 1, plain expected improvement), the plane of
throughput and latency, and quality as a third axis; and one outcome may be a whole load curve.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

DIRECTIONS = 16
"""Directions drawn for each sample of the posterior."""


def expected_gain(
    samples: Floats, front: Floats, reference: Floats, ideal: Floats, rng: np.random.Generator
) -> Floats:
    """Mean growth of the dominated volume, as a share of the box from `reference` to `ideal`.

    Args:
        samples: predicted points, shape (candidates, samples, points, axes); more is better.
        front: points that are reached already, shape (points, axes).
        reference: the corner that counts as nothing, shape (axes,).
        ideal: of each axis the best known, shape (axes,); only scales.
        rng: draws the directions; the same for all candidates.

    Returns:
        Shape (candidates,).
    """
    import numpy as np

    axes = len(reference)
    width = np.maximum(ideal - reference, 1e-12)
    total = np.zeros(len(samples))
    reached = np.maximum((front - reference) / width, 0.0)
    for index in range(samples.shape[1]):
        directions = _directions(axes, rng)
        best = _along(reached[None], directions)[0]
        there = _along(np.maximum((samples[:, index] - reference) / width, 0.0), directions)
        total += (np.maximum(there, best) ** axes - best**axes).mean(axis=1)
    gain: Floats = total / samples.shape[1]
    return gain


def _directions(axes: int, rng: np.random.Generator) -> Floats:
    import numpy as np

    if axes == 1:
        return np.ones((1, 1))
    drawn = np.abs(rng.standard_normal((DIRECTIONS, axes)))
    unit: Floats = np.maximum(drawn / np.linalg.norm(drawn, axis=1, keepdims=True), 1e-6)
    return unit


def _along(points: Floats, directions: Floats) -> Floats:
    """How far a set of points reaches along each direction.

    Args:
        points: shape (sets, points, axes), none below 0.
        directions: shape (directions, axes).

    Returns:
        Shape (sets, directions).
    """
    import numpy as np

    reach = points[:, :, None, 0] / directions[None, None, :, 0]
    for axis in range(1, points.shape[2]):
        np.minimum(reach, points[:, :, None, axis] / directions[None, None, :, axis], out=reach)
    furthest: Floats = reach.max(axis=1)
    return furthest
