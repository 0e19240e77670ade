"""The conditions that decide whether two numbers may be compared, one row each. Pure.

The order is the one in which a reader asks: which model, which work, which load, which engine, on
what, decoded how, measured how. `Weight` says what a difference means:

======  ==========================================================================================
MEANT   part of the deployment, which is what two trials are compared for
BREAKS  the numbers then do not tell the deployments apart
NOTED   worth knowing; the numbers stand
======  ==========================================================================================
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

MEMORY_TOLERANCE_SHARE = 0.02


class Weight(StrEnum):
    """What a difference means, see the head of this module."""

    MEANT = "meant"
    BREAKS = "breaks"
    NOTED = "noted"


class Status(StrEnum):
    SAME = "same"
    DIFFERS = "differs"
    UNKNOWN_A = "a does not tell"
    UNKNOWN_B = "b does not tell"
    UNKNOWN = "neither tells"


@dataclass(frozen=True)
class Condition:
    """One row of the checklist.

    Attributes:
        key: its name.
        label: how it is called.
        weight: what a difference means.
        rank: of those that break the comparison, the lowest is worst.
        essential: True if the comparison is not known to be fair without it.
        same: whether two values count as the same; equality if None.
    """

    key: str
    label: str
    weight: Weight
    rank: int = 99
    essential: bool = False
    same: Callable[[Any, Any], bool] | None = None


@dataclass(frozen=True)
class Row:
    """A condition on both sides; a value is None where a side does not tell it."""

    condition: Condition
    a: Any
    b: Any
    status: Status


def _near(a: Any, b: Any) -> bool:
    if not isinstance(a, int | float) or not isinstance(b, int | float):
        return bool(a == b)
    return abs(a - b) <= MEMORY_TOLERANCE_SHARE * max(abs(a), abs(b))


def _alike(a: Any, b: Any) -> bool:
    """Versions, names and counts by their text: one client writes 4, another "4"."""
    return str(a).strip().lower() == str(b).strip().lower()


HEAD = (
    Condition("numbers", "measured or predicted", Weight.BREAKS, 0, essential=True),
    Condition("model", "model", Weight.BREAKS, 1, essential=True, same=_alike),
    Condition("revision", "model revision", Weight.BREAKS, 2, same=_alike),
    Condition("digest", "model digest", Weight.BREAKS, 2),
    Condition("tokenizer", "tokenizer", Weight.BREAKS, 10, same=_alike),
    Condition("input_tokens_asked", "input tokens asked", Weight.BREAKS, 6, same=_near),
    Condition("output_tokens_asked", "output tokens asked", Weight.BREAKS, 6, same=_near),
)
ACHIEVED_LENGTHS = {
    "input_tokens_mean": Condition(
        "input_tokens", "input tokens, mean", Weight.BREAKS, 6, essential=True
    ),
    "output_tokens_mean": Condition(
        "output_tokens", "output tokens, mean", Weight.BREAKS, 6, essential=True
    ),
}
WORK = (
    Condition("workload", "workload", Weight.BREAKS, 5, essential=True),
    Condition("workload_hash", "workload hash", Weight.BREAKS, 5),
    Condition("load_kind", "kind of load", Weight.NOTED),
)
LEVELS = Condition("levels", "load levels", Weight.NOTED)
ACHIEVED_LOAD = {
    "achieved_concurrency": Condition(
        "achieved_concurrency", "requests under way, achieved", Weight.BREAKS, 12
    ),
    "requests_per_s": Condition("achieved_rate", "requests/s, achieved", Weight.BREAKS, 12),
}
ENGINE = (
    Condition("engine", "engine", Weight.MEANT, essential=True, same=_alike),
    Condition("engine_version", "engine version", Weight.BREAKS, 8, essential=True, same=_alike),
    Condition("engine_build", "engine build", Weight.NOTED, same=_alike),
    Condition("libraries", "engine's libraries", Weight.NOTED),
)
CHECKPOINT = Condition("checkpoint", "checkpoint", Weight.MEANT)
MADE = (
    Condition("checkpoint_digest", "checkpoint digest", Weight.MEANT),
    Condition("recipe", "quantization recipe", Weight.MEANT),
    Condition("calibration", "calibration", Weight.MEANT),
    Condition("tool_versions", "versions of its tool", Weight.NOTED),
)
"""Of a checkpoint that was made here."""
MACHINE = (
    Condition("gpu", "device model", Weight.BREAKS, 3, essential=True, same=_alike),
    Condition("devices_used", "devices in use", Weight.MEANT, same=_alike),
    Condition("gpu_count", "devices of the machine", Weight.NOTED, same=_alike),
    Condition("cpu_cores", "CPU cores", Weight.BREAKS, 4, same=_alike),
    Condition("driver", "driver", Weight.BREAKS, 13, same=_alike),
    Condition("cuda", "CUDA", Weight.BREAKS, 13, same=_alike),
    Condition("memory_gib", "memory of a device, GiB", Weight.BREAKS, 4, same=_near),
    Condition("precision", "precision", Weight.MEANT, same=_alike),
    Condition("quantization", "quantization", Weight.MEANT, same=_alike),
    Condition("decoding", "decoding", Weight.BREAKS, 7, essential=True),
    Condition("warm_up", "warm-up", Weight.BREAKS, 14),
    Condition("goodput_limits", "limits of goodput", Weight.NOTED),
    Condition("repeats", "repeats of a level", Weight.NOTED),
)
REQUESTS = Condition("requests", "requests a level", Weight.NOTED)
CLIENT = (
    Condition("throughput_window", "throughput counted over", Weight.NOTED),
    Condition("client", "client", Weight.NOTED),
    Condition("client_version", "client version", Weight.NOTED),
    Condition("time", "time", Weight.NOTED),
)


def compared(condition: Condition, a: Any, b: Any) -> Row:
    """A row from two values, None being not told."""
    if a is None or b is None:
        status = {
            (True, True): Status.UNKNOWN,
            (True, False): Status.UNKNOWN_A,
            (False, True): Status.UNKNOWN_B,
        }[a is None, b is None]
    else:
        is_same = condition.same(a, b) if condition.same else a == b
        status = Status.SAME if is_same else Status.DIFFERS
    return Row(condition, a, b, status)
