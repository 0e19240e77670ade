"""What launches told of memory, and what a study makes of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from sweeper.estimate.weights import QuantizedWeights

NOT_IN_KIND = frozenset(
    {
        "gpu_memory_utilization",
        "max_model_len",
        "max_num_seqs",
        "max_num_batched_tokens",
        "block_size",
        "enable_prefix_caching",
        "prompt_lookup_max",
    }
)
"""Parameters that leave all but the cache alone; batch limits are compared by size instead."""

Kind = tuple[Any, ...]


def kind_of(parameters: Mapping[str, Any], weights: QuantizedWeights | None) -> Kind:
    """Deployments of one kind hold the same beside the cache, but for what batch limits add."""
    named = sorted(
        (name, repr(value)) for name, value in parameters.items() if name not in NOT_IN_KIND
    )
    return (*named, weights)


@dataclass(frozen=True)
class Launch:
    """Figures of one launch, of one device; None where it did not tell.

    Attributes:
        trial: its number.
        parameters: the deployment in the engine's words.
        in_effect: values of parameters that the deployment leaves open, as far as the server told.
        weights: of the quantized checkpoint it served.
        model_gib: the loaded model.
        cache_gib: memory that was left for the KV cache; negative if the rest alone was too large.
        request_gib: KV cache that one sequence of `request_tokens` needs.
        request_tokens: the `max_model_len` in effect.
        started: whether it went into service.
        short: whether it failed for want of KV cache.
    """

    trial: int
    parameters: Mapping[str, Any]
    in_effect: Mapping[str, float] = field(default_factory=dict)
    weights: QuantizedWeights | None = None
    model_gib: float | None = None
    cache_gib: float | None = None
    request_gib: float | None = None
    request_tokens: int | None = None
    started: bool = True
    short: bool = False

    @cached_property
    def kind(self) -> Kind:
        return kind_of(self.parameters, self.weights)

    def value(self, name: str) -> float | None:
        """A number in effect, whoever chose it; None if it is not known."""
        found = self.parameters.get(name, self.in_effect.get(name))
        is_number = isinstance(found, int | float) and not isinstance(found, bool)
        return float(found) if is_number and found is not None else None


@dataclass(frozen=True)
class Calibration:
    """What a study's launches say of the model of memory.

    Attributes:
        launches: those that told something, by trial.
        weights_scale: the factor on every least size of weights; below 1 after a smaller one was
            seen.
        cache_scale: the same for the cache of a sequence.
        doubt_gib: what a proof must exceed, because a deployment worked that should not have.
        worry_gib: what must be left over to call something fitting, because one did not.
        surplus_gib: (tensor, pipeline parallelism) → what launches held beyond the best guess, in
            the middle; it moves the guess for deployments of other kinds, and none of their bounds.
        notes: contradictions in words, each once.
    """

    launches: tuple[Launch, ...] = ()
    weights_scale: float = 1.0
    cache_scale: float = 1.0
    doubt_gib: float = 0.0
    worry_gib: float = 0.0
    surplus_gib: Mapping[tuple[int, int], float] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def of_kind(self, kind: Kind) -> tuple[Launch, ...]:
        """Launches of the same kind that told how much was left for the cache."""
        return self._by_kind.get(kind, ())

    @cached_property
    def _by_kind(self) -> dict[Kind, tuple[Launch, ...]]:
        found: dict[Kind, list[Launch]] = {}
        for launch in self.launches:
            found.setdefault(launch.kind, []).append(launch)
        return {kind: tuple(launches) for kind, launches in found.items()}
