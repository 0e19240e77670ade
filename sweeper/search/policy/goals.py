"""What is modelled of an outcome, and which points a modelled outcome stands for. Pure.

    frontier   at each load level log throughput and minus log latency; a point a level
    slo        at each load level log throughput and the log room left under the limits; one point,
               the highest throughput that keeps them
    anything   the told values themselves, one point

Levels are modelled one by one because they answer to different parameters: at one stream the batch
limits mean nothing, at 256 they mean everything. The front that counts is that of all launches
together, so the model keeps the whole curve and not only the area below it. Where ladders differ
from trial to trial (`found`, `slo`) levels do not compare, and the told values are modelled; where
each stands at one load of its own, that load's figures are.

Quality is a figure of the deployment, not of a level; where it is measured it is one more axis.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sweeper.search.objective import Objective
from sweeper.trial.outcome import TrialOutcome

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

MIN_SHARE_OF_TRIALS = 0.3
"""A level that fewer trials were driven at is not modelled."""


@dataclass(frozen=True)
class Sight:
    """What a model sees of one outcome; larger is better in every figure.

    Attributes:
        levels: load level → its figures.
        own: figures of the deployment as a whole, beside those of levels.
        told: what the sampler is told, which is modelled where levels do not compare; empty where
            there is none.
    """

    levels: dict[str, tuple[float, ...]] = field(default_factory=dict)
    own: tuple[float, ...] = ()
    told: tuple[float, ...] = ()


@dataclass(frozen=True)
class Goal:
    """How figures become points.

    Attributes:
        kind: frontier | slo | values.
        levels: names of those that are modelled, in order.
        width: figures of a level.
        own: figures of the deployment; all there are in kind `values`.
        corner: the point that counts as nothing, as far as it is fixed.
    """

    kind: str
    levels: tuple[str, ...]
    width: int
    own: int
    corner: tuple[float, ...] = ()

    def points(self, figures: Floats) -> Floats:
        """Figures → points.

        Args:
            figures: shape (..., levels * width + own); NaN where nothing is known.

        Returns:
            Shape (..., points, axes); minus infinity where nothing is known.
        """
        import numpy as np

        cut = len(self.levels) * self.width
        own = figures[..., None, cut:]
        if self.kind == "values":
            points = own
        else:
            shape = (*figures.shape[:-1], len(self.levels), self.width)
            levels = figures[..., :cut].reshape(shape)
            if self.kind == "slo":
                kept = np.where(levels[..., 1:] >= 0, levels[..., :1], -np.inf)
                levels = kept.max(axis=-2, keepdims=True)
            wide = np.broadcast_to(own, (*levels.shape[:-1], own.shape[-1]))
            points = np.concatenate([levels, wide], axis=-1)
        known: Floats = np.where(np.isnan(points), -np.inf, points)
        return known

    def box(self, reached: Floats) -> tuple[Floats, Floats]:
        """The corner that counts as nothing, and the best of each axis, from the points reached.

        Args:
            reached: shape (points, axes).
        """
        import numpy as np

        axes = reached.shape[1]
        corner, ideal = np.zeros(axes), np.ones(axes)
        for axis in range(axes):
            known = reached[np.isfinite(reached[:, axis]), axis]
            if not len(known):
                continue
            ideal[axis] = known.max()
            spread = float(known.max() - known.min())
            # Nothing of an axis in which all are equal may be lost, nor may it be all that counts.
            corner[axis] = known.min() - (0.1 * spread if spread > 1e-9 else 1.0)
            if axis < len(self.corner):
                corner[axis] = self.corner[axis]
        return corner, ideal


def sight(objective: Objective, outcome: TrialOutcome) -> Sight | None:
    """What a model sees of an outcome, None if it says nothing of the deployment's worth."""
    levels, told = objective.levels(outcome), objective.tell(outcome).values
    if not levels and told is None:
        return None
    quality = objective.quality(outcome)
    unknown = (math.nan,) if objective.with_quality else ()
    return Sight(
        levels,
        unknown if quality is None else (quality,),
        () if told is None else _upward(objective, told),
    )


def goal(objective: Objective, sights: Sequence[Sight]) -> Goal:
    """The goal that fits what was seen so far."""
    counts: dict[str, int] = {}
    for one in sights:
        for level in one.levels:
            counts[level] = counts.get(level, 0) + 1
    enough = MIN_SHARE_OF_TRIALS * len(sights)
    levels = tuple(level for level, count in counts.items() if count >= enough)
    if not levels or not all(one.levels for one in sights):
        return Goal("values", (), 0, max(len(one.told) for one in sights))
    is_known = any(math.isfinite(value) for one in sights for value in one.own)
    own = len(sights[0].own) if is_known else 0
    corner = objective.corner
    fixed = () if corner is None else (math.log(corner.throughput), -math.log(corner.latency_ms))
    return Goal(objective.kind, levels, 2, own, fixed if objective.kind == "frontier" else ())


def figures(goal_: Goal, sights: Sequence[Sight]) -> Floats:
    """Figures of outcomes, shape (outcomes, levels * width + own); NaN where there is none."""
    import numpy as np

    gap, unknown = (math.nan,) * goal_.width, (math.nan,) * goal_.own
    if goal_.kind == "values":
        return np.array([one.told or unknown for one in sights], dtype=float)
    rows = [
        [*(v for level in goal_.levels for v in one.levels.get(level, gap)), *one.own[: goal_.own]]
        for one in sights
    ]
    return np.array(rows, dtype=float)


def _upward(objective: Objective, told: tuple[float, ...]) -> tuple[float, ...]:
    """Told values with larger as better; rates and times by their logarithm."""
    upward = []
    for name, direction, value in zip(objective.names, objective.directions, told, strict=True):
        is_ratio = name.endswith(("_ms", "_per_s", "_per_gpu", "_slo")) and value > 0
        scaled = math.log(value) if is_ratio else value
        upward.append(scaled if direction == "maximize" else -scaled)
    return tuple(upward)
