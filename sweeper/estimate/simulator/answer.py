"""What the simulator says of a deployment: figures, or why there are none. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sweeper.verdicts import Diagnosis, Phase, Verdict


@dataclass(frozen=True)
class SimulatorAnswer:
    """A predicted load level.

    Attributes:
        metrics: by this product's names and in its units; what is not predicted is absent.
        n: requests that were simulated to their end.
        duration_s: of the level on the simulated clock.
        learnt: memory of one device, as a real start would log it: ``kv_cache_tokens``,
            ``kv_cache_memory_gib``, ``model_memory_gib``.
        tables: version of the engine whose operators were timed.
    """

    metrics: Mapping[str, float]
    n: int
    duration_s: float
    learnt: Mapping[str, float] = field(default_factory=dict)
    tables: str | None = None


@dataclass(frozen=True)
class _Pattern:
    """Words of the simulator, and what they come to."""

    words: re.Pattern[str]
    verdict: Verdict
    cause: str
    remedy: str
    rule: str


def _pattern(words: str, verdict: Verdict, cause: str, remedy: str, rule: str) -> _Pattern:
    return _Pattern(re.compile(words, re.IGNORECASE | re.DOTALL), verdict, cause, remedy, rule)


# First match wins. `cause` may quote the groups of its expression.
_PATTERNS = (
    _pattern(
        r"no KV budget: non-KV memory \((\d+) bytes\).*capacity=(\d+) bytes",
        Verdict.CAPACITY,
        "weights and buffers leave no memory for the KV cache",
        "raise gpu_memory_utilization or tensor_parallel_size, or quantize the weights",
        "simulated_memory",
    ),
    _pattern(
        r"no_completed_requests|fixed KV capacity must fit",
        Verdict.CAPACITY,
        "the KV cache is too small for a single request",
        "raise gpu_memory_utilization or tensor_parallel_size, or quantize the weights",
        "simulated_memory",
    ),
    _pattern(
        r"(num_heads \d+ should be divisible by tp_size \d+)",
        Verdict.INFEASIBLE_CONFIG,
        "{0}",
        "choose a tensor_parallel_size that divides the attention heads",
        "simulated_heads",
    ),
    _pattern(
        r"AssertionError: ([^.]*(?:divisible|multiple)[^.]*)",
        Verdict.INFEASIBLE_CONFIG,
        "{0}",
        "choose sizes that divide the model's shape",
        "simulated_shape",
    ),
    _pattern(
        r"effect-free zero-duration pass",
        Verdict.CAPACITY,
        "no request can be scheduled: a prompt does not fit into the KV cache or the batch",
        "raise max_num_batched_tokens or gpu_memory_utilization",
        "simulated_stall",
    ),
    _pattern(
        r"(GEMM|attention|moe|communication)?[^:]*perf data missing|PerfDataNotAvailable"
        r"|MissingSystemFlops|quant mode '[^']*' needs",
        Verdict.UNKNOWN,
        "an operator of this deployment was never timed on this GPU",
        "leave it out, or take estimates for what was not timed: engine.options.tables=with_gaps",
        "simulated_gap",
    ),
    _pattern(
        r"no timing data for|unsupported (?:model|architecture)|No model class",
        Verdict.UNKNOWN,
        "the simulator has no timing of this model on this GPU",
        "take a model of a family that it knows, or another GPU",
        "simulated_model",
    ),
)
MAX_CAUSE_CHARS = 200


def refusal(said: str) -> Diagnosis:
    """The verdict in the simulator's own words of a deployment that it does not predict.

    `Verdict.UNKNOWN` where it is the simulator that lacks something, not the deployment.
    """
    text = " ".join(said.split())
    for pattern in _PATTERNS:
        found = pattern.words.search(text)
        if found is not None:
            cause = pattern.cause.format(*found.groups())
            learnt = {"rule": pattern.rule}
            return Diagnosis(pattern.verdict, Phase.START, cause, pattern.remedy, text, learnt)
    cause = f"the simulator failed: {text[:MAX_CAUSE_CHARS]}"
    remedy = "leave this combination out; its own words are the evidence"
    return Diagnosis(Verdict.UNKNOWN, Phase.START, cause, remedy, text, {"rule": "simulated_fault"})


def read_answer(told: Mapping[str, Any]) -> SimulatorAnswer | Diagnosis:
    """An entry of the worker's answer."""
    if "refused" in told:
        return refusal(str(told["refused"]))
    return SimulatorAnswer(
        metrics={name: float(value) for name, value in told["metrics"].items()},
        n=int(told["n"]),
        duration_s=float(told["duration_s"]),
        learnt=dict(told.get("learnt") or {}),
        tables=told.get("tables"),
    )
