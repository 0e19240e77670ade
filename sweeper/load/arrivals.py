"""When requests arrive. Pure: the same name of a stream gives the same times.

Times between arrivals of a process with rate 1 are drawn first (constant: always 1; Poisson:
exponential; gamma: shape k, mean 1) and then stretched to the rate that is asked for. A ramp
stretches by the inverse of its cumulative rate (the time-rescaling theorem for point processes):
with r(t) = r0 + (r1 - r0) t / T the expected number of arrivals until t is
L(t) = r0 t + (r1 - r0) t^2 / (2 T), and an arrival of the unit process at s happens at L^-1(s).
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator
from itertools import islice

from sweeper.load.level import RAMP, LoadLevel

_INTERVALS: dict[str, Callable[[random.Random, float], float]] = {
    "constant": lambda _, __: 1.0,
    "poisson": lambda rng, _: rng.expovariate(1.0),
    "gamma": lambda rng, shape: rng.gammavariate(shape, 1.0 / shape),
}
KINDS = tuple(_INTERVALS)


def arrival_times(level: LoadLevel, stream: str) -> list[float]:
    """Seconds from the start of an open or ramp level, shape (level.requests,), rising; first 0.

    Args:
        level: of kind ``open`` or ``ramp``.
        stream: seeds the draw; two streams of different names arrive at different times.
    """
    rng = random.Random(f"{stream}/arrivals")  # str seeds are the same in every process
    units = list(islice(_unit_arrivals(rng, level), level.requests))
    if level.rate_per_s is None:
        raise ValueError(f"a {level.kind} level has no rate to arrive at")
    if level.kind == RAMP:
        start = level.start_rate_per_s or 0.0
        length_s = ramp_length_s(level.requests, start, level.rate_per_s)
        return [_ramp_time(unit, start, level.rate_per_s, length_s) for unit in units]
    return [unit / level.rate_per_s for unit in units]


def ramp_length_s(requests: int, start_rate_per_s: float, end_rate_per_s: float) -> float:
    """Seconds in which that many requests are expected to arrive."""
    return 2.0 * requests / (start_rate_per_s + end_rate_per_s)


def _unit_arrivals(rng: random.Random, level: LoadLevel) -> Iterator[float]:
    interval = _INTERVALS[level.arrivals]
    at = 0.0
    while True:
        yield at
        at += interval(rng, level.burstiness)


def _ramp_time(unit: float, start: float, end: float, length_s: float) -> float:
    """The positive root of L(t) = unit, in the form that does not cancel; beyond the ramp the
    last arrivals of a random process come at the end's rate."""
    expected = 0.5 * (start + end) * length_s
    if unit > expected:
        return length_s + (unit - expected) / end
    slope = (end - start) / length_s
    return 2.0 * unit / (start + math.sqrt(start * start + 2.0 * slope * unit)) if unit else 0.0
