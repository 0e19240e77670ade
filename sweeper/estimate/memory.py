"""Does a deployment fit into the memory of its device? Pure arithmetic, with its error stated.

    needed      weights + draft + activations + graphs + runtime + KV cache of one sequence
    available   memory that the engine sees * gpu_memory_utilization

Every part is an interval. `does_not` adds up what the parts take at least and holds it against the
most there can be: only that is a proof, and only a proof keeps a deployment from being launched.
`fits` adds up what they take at most. What lies between is `uncertain`. Launches of a study replace
parts by measured ones, see `memory_measured`; then little is left in between.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from sweeper.estimate.facts import Context, EngineFactsLike
from sweeper.estimate.memory_budget import Budget, budget_of, sizes_a_cache
from sweeper.estimate.memory_cache import sequence_length, sequence_part
from sweeper.estimate.memory_launch import Calibration, Launch, kind_of
from sweeper.estimate.memory_measured import (
    context_like,
    with_beside,
    with_sequence,
    with_surplus,
    with_weights,
)
from sweeper.estimate.memory_part import GIVEN_CACHE, GRAPHS, SEQUENCE, Part
from sweeper.estimate.memory_sizes import Span
from sweeper.estimate.memory_weights import draft_part, weights_part
from sweeper.estimate.memory_work import (
    CONTEXT_GIB,
    activations_part,
    batch_limits,
    graphs_are_counted,
    graphs_part,
    runtime_part,
)
from sweeper.estimate.weights import QuantizedWeights
from sweeper.hardware.facts import REMOTE, HardwareFacts
from sweeper.models.facts import ModelFacts

FITS, UNCERTAIN, DOES_NOT = "fits", "uncertain", "does_not"

NO_CALIBRATION = Calibration()


@dataclass(frozen=True)
class MemoryVerdict:
    """Memory of one device under a deployment; all of it predicted but for parts that say measured.

    Attributes:
        verdict: `FITS`, `UNCERTAIN` or `DOES_NOT` (proven).
        parts: what is needed, the cache of one sequence last.
        budget: what is available; None where the device's memory is not known.
        length_tokens: longest sequence, as expected.
        kept_gib: what proofs must exceed, and what must be left over to fit: (doubt, worry).
        has_cache: False for an engine that does not set memory aside for a cache beforehand.
    """

    verdict: str
    parts: tuple[Part, ...]
    budget: Budget | None
    length_tokens: int
    kept_gib: tuple[float, float] = (0.0, 0.0)
    has_cache: bool = True

    @property
    def needed_gib(self) -> float:
        """The best guess."""
        return sum(part.expected_gib for part in self._counted)

    @property
    def available_gib(self) -> float | None:
        """The best guess; None where the device's memory is not known."""
        return None if self.budget is None else self.budget.gib.expected

    @property
    def margin_gib(self) -> float | None:
        """What is left over, negative if it is missing.

        In a proof that is the best case, of what fits the worst, else what is expected.
        """
        if self.budget is None:
            return None
        most = self.most_needed_gib
        if self.verdict == DOES_NOT:
            return -self.missing_gib
        if self.verdict == FITS and most is not None and most <= self.budget.gib.least:
            return self.budget.gib.least - most
        return self.budget.gib.expected - self.needed_gib

    @property
    def missing_gib(self) -> float:
        """What is missing for certain, 0 if nothing is."""
        if self.budget is None or self.budget.is_open:
            return 0.0
        missing = self.least_needed_gib - self.budget.gib.most
        if self.budget.cache_gib is not None:
            short = self.sequence.least_gib - self.kept_gib[0] - self.budget.cache_gib
            missing = max(missing, short)
        return max(0.0, missing)

    @property
    def least_needed_gib(self) -> float:
        """What proofs rest on."""
        return sum(part.least_gib for part in self._counted) - self.kept_gib[0]

    @property
    def most_needed_gib(self) -> float | None:
        """What "fits" rests on; None if a part is not bounded."""
        each = [part.most_gib for part in self._counted]
        return None if None in each else sum(most or 0.0 for most in each) + self.kept_gib[1]

    @property
    def sequence(self) -> Part:
        """KV cache of one sequence."""
        return self.parts[-1]

    @property
    def cache_gib(self) -> Span | None:
        """Left for the KV cache: (in the worst case, expected, in the best), never below 0."""
        if self.budget is None or self.budget.is_open:
            return None
        if self.budget.cache_gib is not None:
            return Span(*[self.budget.cache_gib] * 3)
        beside, most = self.parts[:-1], self.most_needed_gib
        worst = (
            0.0 if most is None else self.budget.gib.least - most + (self.sequence.most_gib or 0)
        )
        expected = self.budget.gib.expected - sum(part.expected_gib for part in beside)
        best = self.budget.gib.most - sum(part.least_gib for part in beside) + self.kept_gib[0]
        return Span(max(0.0, worst), max(0.0, expected), max(0.0, best))

    @property
    def sequences(self) -> Span | None:
        """Sequences of full length that the cache holds at once."""
        room = self.cache_gib
        if room is None or not self.sequence.expected_gib or not self.has_cache:
            return None
        least = 0.0 if not self.sequence.most_gib else room.least / self.sequence.most_gib
        expected = room.expected / self.sequence.expected_gib
        # The least size may be that of a shorter sequence: only what is certain is divided by it.
        by = self.sequence.least_gib if self.sequence.measured else self.sequence.expected_gib
        return Span(min(least, expected), expected, max(expected, room.most / by if by else 0.0))

    @property
    def kv_tokens(self) -> Span | None:
        """Tokens of full-length sequences that the cache holds."""
        found = self.sequences
        by = self.length_tokens
        return (
            None if found is None else Span(found.least * by, found.expected * by, found.most * by)
        )

    @property
    def _counted(self) -> tuple[Part, ...]:
        """A cache of a given size is counted instead of a sequence of it."""
        if self.budget is None or self.budget.cache_gib is None:
            return self.parts
        size = self.budget.cache_gib
        return (*self.parts[:-1], Part(GIVEN_CACHE, size, size, size))


def verdict(
    parameters: Mapping[str, Any],
    model: ModelFacts,
    hardware: HardwareFacts,
    required_tokens: int = 0,
    calibration: Calibration | None = None,
    *,
    weights: QuantizedWeights | None = None,
    draft: ModelFacts | None = None,
    engine: EngineFactsLike | None = None,
) -> MemoryVerdict:
    """Predict the memory of one device under a deployment. No IO.

    Args:
        parameters: canonical deployment.
        model: shape of the model; `parameters` 0 (unknown) is taken from the shape.
        hardware: memory of one device.
        required_tokens: longest request of the workload, which no sequence may be shorter than.
        calibration: what launches of the study told, None for arithmetic alone.
        weights: of the checkpoint that is served, None where the deployment's words must do.
        draft: facts of the draft model, None if unknown.
        engine: name and version, None for a current vLLM.
    """
    context = Context(
        parameters, model, hardware, engine, draft, required_tokens, frozenset(), weights
    )
    return verdict_of(context, model, hardware, calibration)


def verdict_of(
    context: Context,
    model: ModelFacts,
    hardware: HardwareFacts,
    calibration: Calibration | None = None,
) -> MemoryVerdict:
    """`verdict` of a deployment in its context."""
    told = calibration or NO_CALIBRATION
    parts, outside = _parts(context, model)
    limits = batch_limits(context)
    sequence = sequence_part(context, model, limits.tokens.expected)
    length = sequence_length(context, model).expected
    if hardware.kind == REMOTE or hardware.memory_gib <= 0:
        return MemoryVerdict(UNCERTAIN, (*parts, sequence), None, length)
    budget = budget_of(context, hardware)
    parts = with_weights(context, told, parts)
    sequence = with_sequence(context, model, told, sequence)
    has_cache = sizes_a_cache(context)
    if has_cache:

        def predict(launch: Launch) -> float:
            other = context_like(context, launch)
            of_launch = with_weights(other, told, _parts(other, model)[0])
            return sum(part.expected_gib for part in of_launch)

        found_beside, budget = with_beside(context, told, budget, parts, predict)
        is_arithmetic = found_beside is parts
        parts = with_surplus(context, told, parts) if is_arithmetic else found_beside
    else:
        # What such an engine holds beside the weights is its own affair.
        parts = [replace(parts[0], most_gib=None)]
        sequence = replace(sequence, least_gib=0.0, most_gib=None)
    kept = (told.doubt_gib, told.worry_gib)
    found = MemoryVerdict(UNCERTAIN, (*parts, sequence), budget, length, kept, has_cache)
    return replace(found, verdict=_judge(found, hardware, outside, _worked(context, told)))


def _parts(context: Context, model: ModelFacts) -> tuple[list[Part], float | None]:
    """All parts but the cache, and GiB that lie outside the share, at most."""
    limits = batch_limits(context)
    graphs = graphs_part(context, model, limits)
    outside: float | None = 0.0 if context.device == "cpu" else CONTEXT_GIB.most
    if not graphs_are_counted(context):
        outside = None if graphs.most_gib is None or outside is None else outside + graphs.most_gib
        graphs = Part(GRAPHS, 0.0, 0.0, 0.0)
    draft = draft_part(context, model)
    return [
        weights_part(context, model),
        *([] if draft is None else [draft]),
        activations_part(context, model, limits),
        graphs,
        runtime_part(context),
    ], outside


def _worked(context: Context, calibration: Calibration) -> bool:
    """Whether this very deployment went into service."""
    kind = kind_of(context.parameters, context.weights)
    return any(
        each.started and dict(each.parameters) == dict(context.parameters)
        for each in calibration.of_kind(kind)
    )


def _judge(
    found: MemoryVerdict, hardware: HardwareFacts, outside_gib: float | None, worked: bool
) -> str:
    budget = found.budget
    if worked:
        return FITS
    if budget is None or budget.is_open:
        return UNCERTAIN
    if found.missing_gib > 0:
        return DOES_NOT
    cache, sequence = budget.cache_gib, found.sequence
    most = found.most_needed_gib
    if most is None or outside_gib is None or sequence.most_gib is None:
        return UNCERTAIN
    room_outside = hardware.memory_gib * (1.0 - budget.share) - outside_gib
    if cache is not None:
        room_outside = budget.gib.least - most - outside_gib
    holds_one = cache is None or sequence.most_gib <= cache
    return FITS if most <= budget.gib.least and room_outside >= 0 and holds_one else UNCERTAIN


__all__ = [
    "DOES_NOT",
    "FITS",
    "SEQUENCE",
    "UNCERTAIN",
    "MemoryVerdict",
    "verdict",
    "verdict_of",
]
