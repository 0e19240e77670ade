"""Prior knowledge of a problem: what the same simulator says of another GPU, true or distorted."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.efficiency.known import Known
from sweeper.engine.replay.rows import Row, key_of
from sweeper.search.priors.prior import Deployment, PredictedPoint, Prediction

TRUE, NOISY, SHUFFLED = "other_gpu", "noisy", "shuffled"
NOISE_SD = 0.3
"""Of the natural logarithm of each metric, one draw a deployment: three deployments in ten are off
by more than 35 %."""


class TablePrior:
    """A table of another GPU as a prior.

    Args:
        other: the table that predicts.
        how: true, noisy, or shuffled: every deployment then gets another one's curve.
        seed: of noise and shuffling.
    """

    kind = "simulator"
    trust = 0.8

    def __init__(self, other: Known, how: str, seed: int) -> None:
        rows = [row for row in other.table.rows if row.levels]
        curves = list(rows)
        chance = random.Random(seed)
        if how == SHUFFLED:
            chance.shuffle(curves)
        spread = NOISE_SD if how == NOISY else 0.0
        self._known = {
            key_of(row.deployment): _prediction(curve, spread, chance)
            for row, curve in zip(rows, curves, strict=True)
        }
        self.notes: list[str] = []

    def predict(self, deployments: Sequence[Deployment]) -> list[Prediction | None]:
        """Each deployment's curve on the other GPU; None where it does not fit there."""
        return [self._known.get(key_of(one)) for one in deployments]

    def suggestions(self) -> list[dict[str, Any]]:
        return []


def _prediction(row: Row, spread: float, chance: random.Random) -> Prediction:
    names = sorted({name for level in row.levels for name in level.metrics})
    factors = {name: math.exp(chance.gauss(0.0, spread)) for name in names} if spread else {}
    return Prediction(
        tuple(
            PredictedPoint(
                {"kind": level.kind, "concurrency": level.concurrency},
                _distorted(level.metrics, factors),
            )
            for level in row.levels
        )
    )


def _distorted(metrics: Mapping[str, float], factors: Mapping[str, float]) -> dict[str, float]:
    return {name: value * factors.get(name, 1.0) for name, value in metrics.items()}
