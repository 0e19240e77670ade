"""Cross-flag rules: what arithmetic or config.json proves, before anything is launched.

A rule answers with a Violation only if the engine would certainly refuse; what merely looks
doubtful is left to the engine, because a wrong refusal hides a deployment for ever. `RULES` is the
table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sweeper.estimate.facts import Context, EngineFactsLike
from sweeper.estimate.memory_launch import Calibration
from sweeper.estimate.rules_checkpoint import CHECKPOINT_RULES
from sweeper.estimate.rules_memory import MEMORY_RULES
from sweeper.estimate.rules_model import MODEL_RULES
from sweeper.estimate.rules_platform import PLATFORM_RULES
from sweeper.estimate.rules_schedule import SCHEDULE_RULES
from sweeper.estimate.violation import Finding, Violation
from sweeper.estimate.weights import QuantizedWeights
from sweeper.hardware.facts import HardwareFacts
from sweeper.models.facts import ModelFacts

__all__ = ["RULES", "Rule", "Violation", "check"]


@dataclass(frozen=True)
class Rule:
    """A named rule. `find` returns None, or (cause, remedy, parameters involved)."""

    name: str
    find: Callable[[Context], Finding | None]


def _table() -> Iterator[Rule]:
    for table in (MODEL_RULES, SCHEDULE_RULES, PLATFORM_RULES, CHECKPOINT_RULES, MEMORY_RULES):
        for name, find in table.items():
            yield Rule(name, find)


RULES: tuple[Rule, ...] = tuple(_table())


def check(
    parameters: Mapping[str, Any],
    *,
    model: ModelFacts | None,
    hardware: HardwareFacts | None,
    engine: EngineFactsLike | None,
    draft: ModelFacts | None,
    required_tokens: int,
    missing: frozenset[str] = frozenset(),
    weights: QuantizedWeights | None = None,
    calibration: Calibration | None = None,
) -> list[Violation]:
    """All rules that a deployment breaks, in the table's order; empty if none is proven.

    Args:
        parameters: canonical deployment (absent means the engine's default).
        model: facts of the served model, None if unknown.
        hardware: the machine, None if unknown.
        engine: name, version and device, None if unknown.
        draft: facts of the draft model, None if unknown.
        required_tokens: input plus output tokens of the longest request.
        missing: methods without a model or checkpoint, see `sweeper.estimate.facts.missing_models`.
        weights: of the quantized checkpoint that is served, None if nothing is known of one.
        calibration: what launches of the study told of memory, None if there is nothing.
    """
    context = Context(
        parameters, model, hardware, engine, draft, required_tokens, missing, weights, calibration
    )
    found = ((rule.name, rule.find(context)) for rule in RULES)
    return [Violation(name, *finding) for name, finding in found if finding is not None]
