"""One part of a device's memory."""

from __future__ import annotations

from dataclasses import dataclass, replace

WEIGHTS = "weights"
DRAFT = "draft"
ACTIVATIONS = "activations"
GRAPHS = "graphs"
RUNTIME = "runtime"
BESIDE = "beside weights"
SEQUENCE = "one sequence"
GIVEN_CACHE = "given KV cache"


@dataclass(frozen=True)
class Part:
    """Memory that one thing takes on one device, with its error.

    Attributes:
        name: `WEIGHTS` and so on.
        least_gib: it never takes less; 0 where nothing is certain. What proofs add up.
        expected_gib: the best guess.
        most_gib: it never takes more, None where that is not known. What "fits" adds up.
        measured: from a launch of this study, and not from arithmetic alone.
    """

    name: str
    least_gib: float
    expected_gib: float
    most_gib: float | None
    measured: bool = False

    def scaled(self, least_by: float) -> Part:
        """The part with a factor on its least size."""
        return self if least_by == 1.0 else replace(self, least_gib=self.least_gib * least_by)
