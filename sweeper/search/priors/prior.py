"""What a prior says of deployments. Variants stand in `sweeper.search.priors.registry`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

Say = Callable[[str], None]
"""Shows a line to the user."""

FEW = 32
"""Deployments of one call of `Prior.predict` that are never inferred."""

Deployment = Mapping[str, Any]
"""Canonical form."""


@dataclass(frozen=True)
class PredictedPoint:
    """A load level as it is predicted.

    Attributes:
        load: what would be asked of it, as `LoadLevel.asked` has it.
        metrics: by this product's names and in their units; what is not known is absent.
    """

    load: Mapping[str, Any]
    metrics: Mapping[str, float]


@dataclass(frozen=True)
class Prediction:
    """A load curve that nobody measured.

    Attributes:
        points: one a level.
        inferred: True if the source was asked of near deployments only, not of this one.
    """

    points: tuple[PredictedPoint, ...]
    inferred: bool = False


class Prior(Protocol):
    """One source of knowledge.

    Attributes:
        kind: its name in `prior.kinds`.
        trust: weight before anything was measured, 0 to 1.
        notes: what it cannot tell, one line each; complete once `predict` was called.
    """

    kind: str
    trust: float
    notes: list[str]

    def predict(self, deployments: Sequence[Deployment]) -> list[Prediction | None]:
        """The load curve of each deployment, None where it has nothing to say.

        Same asked, same answered, so that a study that is taken up again is led the same way. A
        source that takes time may infer the curves of many from some of them; of few
        (`FEW`) it is asked one by one.
        """
        ...

    def suggestions(self) -> list[dict[str, Any]]:
        """Deployments that it recommends outright, partial raw coordinates, the best first."""
        ...
