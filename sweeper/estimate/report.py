"""What is known of a space before anything is launched: its infeasible part, memory, bounds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from sweeper.estimate import rules
from sweeper.estimate.corners import Corner, corners
from sweeper.estimate.facts import EngineFactsLike
from sweeper.estimate.memory import MemoryVerdict, verdict
from sweeper.estimate.rules_memory import MEMORY_RULES
from sweeper.estimate.sample import deployments_of, interval
from sweeper.estimate.speed import bounds
from sweeper.estimate.violation import Violation
from sweeper.estimate.weights import Serve, as_it_is
from sweeper.hardware.facts import HardwareFacts
from sweeper.models.facts import ModelFacts
from sweeper.space.canonical import canonical, size
from sweeper.space.model import Raw, Space

BATCHES = (1, 64)
"""Streams whose speed of light is told: one user, and a busy server."""


@dataclass(frozen=True)
class MemoryRow:
    """Memory and bounds of one precision at one tensor-parallel size; the rest at its default."""

    quantization: str
    tensor_parallel_size: int
    memory: MemoryVerdict
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
        corners: the default and the ends of the space in terms of memory; empty as above.
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
    corners: list[Corner] = field(default_factory=list)
    input_tokens: float = 0.0
    output_tokens: float = 0.0
    peaks_source: str = "datasheet"

    @property
    def infeasible_share(self) -> float:
        """Between 0 and 1."""
        return self.infeasible / self.examined if self.examined else 0.0

    @property
    def infeasible_interval(self) -> tuple[float, float]:
        """Between which the share lies, 95 %; both ends the same where all were examined."""
        if not self.sampled:
            return self.infeasible_share, self.infeasible_share
        return interval(self.infeasible, self.examined)


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
    looked_at = deployments_of(space, seed)

    def check(deployment: Raw) -> list[Violation]:
        served = serve(deployment)
        proven = rules.check(served.parameters, weights=served.weights, **facts)
        return [*served.violations, *proven]

    def weigh(deployment: Raw) -> MemoryVerdict | None:
        others = (each for each in check(deployment) if each.rule not in MEMORY_RULES)
        if model is None or next(others, None) is not None:
            return None
        return memory_of(deployment)

    def memory_of(deployment: Raw) -> MemoryVerdict:
        assert model is not None
        served = serve(deployment)
        return verdict(
            served.parameters,
            model,
            hardware,
            required_tokens,
            weights=served.weights,
            draft=draft,
            engine=engine,
        )

    by_rule, examples, infeasible = _count(looked_at.each, check)
    lengths = (input_tokens, output_tokens)
    return SpaceEstimate(
        size=size(space),
        examined=len(looked_at.each),
        sampled=not looked_at.are_all,
        infeasible=infeasible,
        by_rule=by_rule,
        examples=examples,
        baseline=[violation.cause for violation in check(canonical(space, {}))],
        memory=_rows(space, model, hardware, lengths, serve=serve, memory_of=memory_of)
        if model
        else [],
        corners=corners(space, weigh),
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


def _rows(
    space: Space,
    model: ModelFacts,
    hardware: HardwareFacts,
    lengths: tuple[float, float],
    *,
    serve: Serve,
    memory_of: Callable[[Raw], MemoryVerdict],
) -> list[MemoryRow]:
    rows = []
    for quantization in _values(space, "quantization", "none"):
        for tp in _values(space, "tensor_parallel_size", 1):
            asked = {"quantization": quantization, "tensor_parallel_size": tp}
            deployment = canonical(space, {k: v for k, v in asked.items() if k in space.names})
            served = serve(deployment)
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
            memory = memory_of(deployment)
            rows.append(MemoryRow(str(quantization), _degree(tp), memory, speed))
    return rows


def _values(space: Space, name: str, default: Any) -> tuple[Any, ...]:
    return (space[name].values or (default,)) if name in space.names else (default,)


def _degree(value: Any) -> int:
    return value if isinstance(value, int) else 1
