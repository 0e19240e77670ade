"""The ends of a space in terms of memory: its default, and those with most and with least room.

Found one parameter after the other, each at the value that leaves most (or least) room given those
before it, and only by values that break no other rule. That is the true end of the space where no
parameter changes the direction of another, as it is with memory.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sweeper.estimate.memory import MemoryVerdict
from sweeper.space.canonical import baseline, canonical
from sweeper.space.model import Raw, Space

DEFAULT, MOST_ROOM, LEAST_ROOM = "default", "most room", "least room"

HOLDS_MEMORY = (
    "tensor_parallel_size",
    "pipeline_parallel_size",
    "data_parallel_size",
    "quantization",
    "dtype",
    "speculative",
    "kv_cache_dtype",
    "max_model_len",
    "max_num_batched_tokens",
    "max_num_seqs",
    "enforce_eager",
    "gpu_memory_utilization",
)
"""Parameters that move memory, those first that others depend on."""

Weigh = Callable[[Raw], MemoryVerdict | None]
"""A canonical deployment → its memory, None if a rule that is not about memory refuses it."""


@dataclass(frozen=True)
class Corner:
    """One end of the space.

    Attributes:
        name: `DEFAULT`, `MOST_ROOM` or `LEAST_ROOM`.
        deployment: canonical.
        memory: of one device.
    """

    name: str
    deployment: Raw
    memory: MemoryVerdict


def corners(space: Space, weigh: Weigh) -> list[Corner]:
    """The default first, then the ends that differ from it; empty if nothing has a verdict."""
    base = baseline(space)
    found = [
        (DEFAULT, base),
        (MOST_ROOM, _end(space, base, weigh, 1.0)),
        (LEAST_ROOM, _end(space, base, weigh, -1.0)),
    ]
    told: list[Corner] = []
    for name, raw in found:
        deployment = canonical(space, raw)
        memory = weigh(deployment)
        if memory is not None and all(each.deployment != deployment for each in told):
            told.append(Corner(name, deployment, memory))
    return told


def _end(space: Space, base: Raw, weigh: Weigh, sign: float) -> Raw:
    raw = dict(base)
    for name in HOLDS_MEMORY:
        if name not in space.names:
            continue
        parameter = space[name]
        ends = (parameter.low, parameter.high)
        values = parameter.values if parameter.values is not None else ends
        best, most = raw[name], sign * _room(space, raw, weigh, sign)
        for value in values:
            room = sign * _room(space, {**raw, name: value}, weigh, sign)
            if room > most:
                best, most = value, room
        raw[name] = best
    return raw


def _room(space: Space, raw: Raw, weigh: Weigh, sign: float) -> float:
    """What is expected to be left over; without a verdict the value is never taken."""
    memory = weigh(canonical(space, raw))
    if memory is None or memory.available_gib is None:
        return -sign * float("inf")
    return memory.available_gib - memory.needed_gib


def in_words(deployment: Raw) -> str:
    """``max_num_seqs=64 quantization=awq``, or what says that nothing is set."""
    return " ".join(f"{name}={_plain(value)}" for name, value in deployment.items()) or "as it is"


def _plain(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
