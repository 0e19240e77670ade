"""The order of load levels: which of two drives a server harder. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sweeper.load.level import REPLAY
from sweeper.trial.outcome import Point


def pressure(load: Mapping[str, Any]) -> float:
    """How hard a level drives a server; comparable only among levels of one kind.

    Args:
        load: of a point, see `sweeper.load.level.LoadLevel.asked`.

    Returns:
        Requests a second where they arrive by the clock, a replay's speed over the recorded one,
        streams otherwise.
    """
    if load["kind"] == REPLAY:
        return float(load.get("time_scale", 1.0))
    rate = load.get("rate_per_s")
    return float(load["concurrency"] if rate is None else rate)


def rungs(points: Sequence[Point]) -> list[int]:
    """Place of each point in the ladder of its trial, 0 the easiest, whatever came first.

    A search for the highest rate drives its levels in no order of their own. Points of one
    pressure share a place.

    Returns:
        One number a point, in the order given.
    """
    ladder = sorted({pressure(point.load) for point in points})
    return [ladder.index(pressure(point.load)) for point in points]
