"""What is known of a space before anything is launched: its infeasible part, memory, bounds."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from sweeper.estimate import rules
from sweeper.estimate.facts import EngineFactsLike
from sweeper.estimate.memory import MemoryEstimate, memory_estimate
from sweeper.estimate.speed import bounds
from sweeper.estimate.violation import Violation
from sweeper.estimate.weights import Serve, as_it_is
from sweeper.hardware.facts import HardwareFacts
from sweeper.models.facts import ModelFacts
from sweeper.space.canonical import canonical, enumerate_canonical, size
from sweeper.space.model import Parameter, Raw, Space

SAMPLE = 2000
"""Deployments looked at if the space is larger than this."""

BATCHES = (1, 64)
"""Streams whose speed of light is told: one user, and a busy server."""


@dataclass(frozen=True)
class MemoryRow:
    """Memory and bounds of one precision at one tensor-parallel size; the rest at its default."""

    quantization: str
    tensor_parallel_size: int
    memory: MemoryEstimate
    speed: dict[int, dict[str, float]]
    """Streams in flight → `sweeper.estimate.speed.bounds`."""


@dataclass(frozen=True)
class SpaceEstimate:
    """Everything predicted of a space.

    Attributes:
        size: distinct deployments, None if a dimension is continuous.
        examined: how many were checked.
        sampled: True if these were drawn at random, False if they are all.
        infeasible: how many of them break at least one rule.
        by_rule: rule → how many break it (one deployment can break several).
        examples: rule → cause and remedy of one of them.
        baseline: causes why the engine's own defaults cannot run; then nothing can be compared.
        memory: one row a quantization and tensor-parallel size; empty without model facts.
        input_tokens, output_tokens: lengths of the requests that the speed of light is told for.
        peaks_source: where the hardware's peaks come from, ``datasheet`` or ``measured``.
    """

    size: int | None
    examined: int
    sampled: bool
    infeasible: int
    by_rule: dict[str, int]
    examples: dict[str, tuple[str, str]]
    baseline: list[str]
    memory: list[MemoryRow] = field(default_factory=list)
    input_tokens: float = 0.0
    output_tokens: float = 0.0
    peaks_source: str = "datasheet"

    @property
    def infeasible_share(self) -> float:
        """Between 0 and 1."""
        return self.infeasible / self.examined if self.examined else 0.0


def estimate_space(
    space: Space,
    model: ModelFacts | None,
    hardware: HardwareFacts,
    *,
    engine: EngineFactsLike | None = None,
    draft: ModelFacts | None = None,
    required_tokens: int = 0,
    missing: frozenset[str] = frozenset(),
    seed: int = 1,
    input_tokens: float = 1024,
    output_tokens: float = 256,
    serve: Serve = as_it_is,
) -> SpaceEstimate:
    """Check the whole space, or a random sample of a large one, against the rules. No IO."""
    facts: dict[str, Any] = {
        "model": model,
        "hardware": hardware,
        "engine": engine,
        "draft": draft,
        "required_tokens": required_tokens,
        "missing": missing,
    }
    everything = enumerate_canonical(space, SAMPLE)
    deployments = everything if everything is not None else _sample(space, seed)

    def check(deployment: Raw) -> list[Violation]:
        served = serve(deployment)
        proven = rules.check(served.parameters, weights=served.weights, **facts)
        return [*served.violations, *proven]

    by_rule, examples, infeasible = _count(deployments, check)
    return SpaceEstimate(
        size=size(space),
        examined=len(deployments),
        sampled=everything is None,
        infeasible=infeasible,
        by_rule=by_rule,
        examples=examples,
        baseline=[violation.cause for violation in check(canonical(space, {}))],
        memory=_memory(space, model, hardware, (input_tokens, output_tokens), serve)
        if model
        else [],
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        peaks_source=hardware.peaks_source,
    )


def _count(
    deployments: list[Raw], check: Callable[[Raw], list[Violation]]
) -> tuple[dict[str, int], dict[str, tuple[str, str]], int]:
    counts: Counter[str] = Counter()
    examples: dict[str, tuple[str, str]] = {}
    infeasible = 0
    for deployment in deployments:
        violations = check(deployment)
        infeasible += bool(violations)
        for violation in violations:
            counts[violation.rule] += 1
            examples.setdefault(violation.rule, (violation.cause, violation.remedy))
    return dict(counts.most_common()), examples, infeasible


def _sample(space: Space, seed: int) -> list[Raw]:
    draw = random.Random(seed)
    return [
        canonical(space, {p.name: _draw(p, draw) for p in space.parameters}) for _ in range(SAMPLE)
    ]


def _draw(parameter: Parameter, draw: random.Random) -> Any:
    if parameter.values is not None:
        return draw.choice(parameter.values)
    return draw.uniform(float(parameter.low or 0), float(parameter.high or 0))


def _memory(
    space: Space,
    model: ModelFacts,
    hardware: HardwareFacts,
    lengths: tuple[float, float],
    serve: Serve,
) -> list[MemoryRow]:
    rows = []
    for quantization in _values(space, "quantization", "none"):
        for tp in _values(space, "tensor_parallel_size", 1):
            asked = {"quantization": quantization, "tensor_parallel_size": tp}
            deployment = canonical(space, {k: v for k, v in asked.items() if k in space.names})
            served = serve(deployment)
            estimate = memory_estimate(served.parameters, model, hardware, served.weights)
            speed = {
                batch: bounds(
                    served.parameters,
                    model,
                    hardware,
                    batch=batch,
                    input_tokens=lengths[0],
                    output_tokens=lengths[1],
                    weights=served.weights,
                )
                for batch in BATCHES
            }
            rows.append(MemoryRow(str(quantization), _degree(tp), estimate, speed))
    return rows


def _values(space: Space, name: str, default: Any) -> tuple[Any, ...]:
    return (space[name].values or (default,)) if name in space.names else (default,)


def _degree(value: Any) -> int:
    return value if isinstance(value, int) else 1
