"""Which load levels a prior predicts: those that the study will drive, as far as they are known."""

from __future__ import annotations

from sweeper.config.schema import LoadConfig
from sweeper.load.ladder import given_levels
from sweeper.load.level import BATCH, CLOSED, OPEN, LoadLevel

PREDICTED_KINDS = frozenset({CLOSED, OPEN, BATCH})
"""Of a ramp or a recorded trace there is no steady state to predict."""
DOUBLINGS = 6
"""Levels of a ladder that is found by doubling."""


def predicted_levels(load: LoadConfig) -> list[LoadLevel]:
    """The levels in rising order; empty for a kind that cannot be predicted.

    A ladder that is found while it is climbed is taken to double from its first level.
    """
    if load.kind not in PREDICTED_KINDS:
        return []
    levels = given_levels(load)
    if load.levels == "given" or not levels:
        return levels
    first = levels[0]
    return [_times(first, 2**step) for step in range(DOUBLINGS)]


def _times(level: LoadLevel, factor: int) -> LoadLevel:
    if level.concurrency is not None:
        return LoadLevel(
            level.kind, level.requests * factor, concurrency=level.concurrency * factor
        )
    return LoadLevel(
        level.kind,
        level.requests * factor,
        rate_per_s=(level.rate_per_s or 0.0) * factor,
        arrivals=level.arrivals,
        burstiness=level.burstiness,
    )
