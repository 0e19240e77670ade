"""A recipe with nothing left open: all that decides what a checkpoint's bytes will be."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

PER_CHANNEL = -1
"""Group size of one scale for a whole output channel."""


@dataclass(frozen=True)
class Recipe:
    """How one checkpoint is made.

    Attributes:
        name: value of `quantization` it stands for.
        tool: name in `sweeper.quantize.tools`.
        method: the tool's scheme or format, None if it has only one.
        bits: of a weight; None where the scheme says it.
        group_size: weights that share a scale, `PER_CHANNEL` for one a channel; None where the
            scheme has no groups.
        symmetric: no zero points; None where the scheme says it.
        act_order: columns in the order of their activations; None where the tool has no such.
        calibration: ``builtin``, or the path of a file of texts; None if none are needed.
        calibration_samples, calibration_tokens: how many texts, and their length in tokens.
    """

    name: str
    tool: str
    method: str | None = None
    bits: int | None = None
    group_size: int | None = None
    symmetric: bool | None = None
    act_order: bool | None = None
    calibration: str | None = None
    calibration_samples: int | None = None
    calibration_tokens: int | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain data; what has no meaning for the recipe is left out."""
        return {key: value for key, value in asdict(self).items() if value is not None}
