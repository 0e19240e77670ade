"""What arithmetic is told of a deployment that serves a quantized checkpoint."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from sweeper.estimate.violation import Violation

INT8, FP8 = "int8", "fp8"
SCALE_BYTES = 2.0


@dataclass(frozen=True)
class QuantizedWeights:
    """The weights of a checkpoint's quantized layers.

    Attributes:
        name: the deployment's word for it, a recipe's or a checkpoint's name.
        bits: of a weight.
        group_size: weights that share a scale; None for one scale a channel.
        symmetric: without zero points.
        act_order: columns in the order of their activations.
        activations: precision they are multiplied in, `INT8` or `FP8`; None for 16 bits.
        made: by a recipe, here; else it was published.
        searched: parameters of the deployment that changed the recipe, ``quantize.group_size``.
    """

    name: str
    bits: int
    group_size: int | None = None
    symmetric: bool = True
    act_order: bool = False
    activations: str | None = None
    made: bool = True
    searched: tuple[str, ...] = ()

    @property
    def bytes_per_weight(self) -> float:
        """With its part of scale and zero point; those of whole channels are next to nothing."""
        plain = self.bits / 8
        if self.group_size is None:
            return plain
        zero_point = 0.0 if self.symmetric else plain
        return plain + (SCALE_BYTES + zero_point) / self.group_size

    def involved(self, *fields: str) -> tuple[str, ...]:
        """Parameters of the deployment behind some fields.

        Always `quantization`; of the fields those that the deployment itself sets.
        """
        names = [f"quantize.{field}" for field in fields]
        return ("quantization", *(name for name in names if name in self.searched))


@dataclass(frozen=True)
class Served:
    """A deployment in the engine's own words.

    Attributes:
        parameters: `quantization` is the engine's word for a format or method, a recipe's fields
            are gone.
        weights: of the checkpoint that is served, None where nothing is known of one.
        violations: what speaks against the deployment before any rule is asked.
    """

    parameters: Mapping[str, Any]
    weights: QuantizedWeights | None = None
    violations: tuple[Violation, ...] = field(default=())


Serve = Callable[[Mapping[str, Any]], Served]
"""A canonical deployment → what is served for it."""


def as_it_is(deployment: Mapping[str, Any]) -> Served:
    """For studies without recipes and checkpoints."""
    return Served(deployment)
