"""What is asked of a load level. Pure.

======  ==========================================================================================
closed  a fixed number of streams, each sending its next request when the last one has ended
open    requests arrive at a rate, whether or not earlier ones have been answered
ramp    as open, with a rate that grows evenly from the first arrival to the last
replay  requests arrive when a recorded trace says, on a time scale of one's own
batch   all requests are given to the engine at once, without a server
======  ==========================================================================================
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

CLOSED, OPEN, RAMP, REPLAY, BATCH = "closed", "open", "ramp", "replay", "batch"
KINDS = (CLOSED, OPEN, RAMP, REPLAY, BATCH)
SCHEDULED = frozenset({OPEN, RAMP, REPLAY})
"""Kinds whose requests are due at a time that does not depend on the server."""


@dataclass(frozen=True)
class LoadLevel:
    """One rung of the ladder.

    Attributes:
        kind: see above.
        requests: measured requests to send, warm-up excluded.
        concurrency: streams (closed) or requests given at once (batch), else None.
        rate_per_s: offered requests a second: open; at the end of a ramp. None otherwise.
        start_rate_per_s: of a ramp, else None.
        arrivals: constant | poisson | gamma, of open and ramp, else empty.
        burstiness: shape of the gamma distribution of the times between arrivals; 1 is Poisson,
            less comes in bursts, more is more even. Only with ``gamma``.
        time_scale: of a replay: 2 sends twice as fast as recorded.
    """

    kind: str
    requests: int
    concurrency: int | None = None
    rate_per_s: float | None = None
    start_rate_per_s: float | None = None
    arrivals: str = ""
    burstiness: float = 1.0
    time_scale: float = 1.0

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"{self.kind} is no kind of load")
        if self.requests < 1:
            raise ValueError("a level needs at least one request")
        if self.kind in {CLOSED, BATCH} and (self.concurrency is None or self.concurrency < 1):
            raise ValueError(f"a {self.kind} level needs at least one stream")
        if self.kind in {OPEN, RAMP} and not (self.rate_per_s or 0) > 0:
            raise ValueError(f"a {self.kind} level needs a request rate above 0")

    @property
    def scheduled(self) -> bool:
        """True if latencies count from a scheduled arrival."""
        return self.kind in SCHEDULED

    @property
    def name(self) -> str:
        return level_name(self.asked())

    def asked(self) -> dict[str, Any]:
        """The level as a point records it: what is set, and nothing else."""
        told: dict[str, Any] = {"kind": self.kind}
        if self.concurrency is not None:
            told["concurrency"] = self.concurrency
        if self.rate_per_s is not None:
            told["rate_per_s"] = self.rate_per_s
        if self.start_rate_per_s is not None:
            told["start_rate_per_s"] = self.start_rate_per_s
        if self.arrivals:
            told["arrivals"] = self.arrivals
        if self.arrivals == "gamma":
            told["burstiness"] = self.burstiness
        if self.kind == REPLAY:
            told["time_scale"] = self.time_scale
        return told


def level_name(load: Mapping[str, Any]) -> str:
    """How a level is called wherever it is shown. Two levels of one name are the same load.

    Args:
        load: `LoadLevel.asked`, or a point's `load`, which begins with it.
    """
    kind = load["kind"]
    if kind == CLOSED:
        return f"concurrency {load['concurrency']}"
    if kind == BATCH:
        return f"batch of {load['concurrency']}"
    if kind == REPLAY:
        return f"trace at {load.get('time_scale', 1.0):g}x speed"
    rate, arrivals = f"{load['rate_per_s']:g} requests/s", load.get("arrivals", "")
    if arrivals == "gamma":
        arrivals = f"gamma {load.get('burstiness', 1.0):g}"
    if kind == RAMP:
        return f"ramp {load.get('start_rate_per_s', 0):g} to {rate} ({arrivals})"
    return f"{rate} ({arrivals})"
