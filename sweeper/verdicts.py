"""The words every room uses for how a trial ended. No IO, no imports from other rooms.

A trial passes through its phases in order and ends with exactly one verdict:

    plan → quantize → start → warmup → load ⇄ (next level) → quality → stop
      │        │        │        │       │                      │        │
      └────────┴────────┴────────┴───────┴──── a Diagnosis ─────┴────────┘
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class Verdict(StrEnum):
    """How a trial ended; what the sampler is told follows from it."""

    OK = "OK"
    INFEASIBLE_CONFIG = "INFEASIBLE_CONFIG"
    CAPACITY = "CAPACITY"
    CRASH_UNDER_LOAD = "CRASH_UNDER_LOAD"
    QUALITY_FAIL = "QUALITY_FAIL"
    MEASUREMENT_INVALID = "MEASUREMENT_INVALID"
    INFRA = "INFRA"
    STARTUP_TIMEOUT = "STARTUP_TIMEOUT"
    UNKNOWN = "UNKNOWN"

    @property
    def is_config_fault(self) -> bool:
        """True if the deployment itself is to blame: told as PRUNED with a positive constraint."""
        return self in {
            Verdict.INFEASIBLE_CONFIG,
            Verdict.CAPACITY,
            Verdict.CRASH_UNDER_LOAD,
            Verdict.QUALITY_FAIL,
        }

    @property
    def is_retryable(self) -> bool:
        """True if the same deployment deserves one more launch: told as FAIL."""
        return self in {
            Verdict.MEASUREMENT_INVALID,
            Verdict.INFRA,
            Verdict.STARTUP_TIMEOUT,
            Verdict.UNKNOWN,
        }


class Phase(StrEnum):
    """Where in its life a trial was when its verdict fell."""

    PLAN = "plan"
    QUANTIZE = "quantize"
    START = "start"
    WARMUP = "warmup"
    LOAD = "load"
    QUALITY = "quality"
    STOP = "stop"


@dataclass(frozen=True)
class Diagnosis:
    """Why a trial ended as it did.

    Attributes:
        verdict: the class of the end.
        phase: where it happened.
        cause: root cause, one line, wrappers stripped.
        remedy: what a user can change.
        evidence: the part of the engine's log (or the arithmetic) that shows it.
        learnt: bounds parsed from the evidence, named with units,
            for example ``{"estimated_max_model_len": 80592}``.
    """

    verdict: Verdict
    phase: Phase
    cause: str
    remedy: str
    evidence: str = ""
    learnt: Mapping[str, Any] = field(default_factory=dict)
