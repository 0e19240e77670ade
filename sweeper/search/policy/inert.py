"""Parameters that turn out to have no effect, which a search need not go on varying. Pure.

A parameter is inert if it was varied often enough, and if the model sees every figure of an outcome
move by next to nothing when it alone is changed. It may matter in a corner that nobody has seen:
what is held at its default is only passed over as long as there is anything else to try, and judged
anew at every decision.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sweeper.search.policy.features import Features, existing
from sweeper.search.policy.model import Model
from sweeper.search.policy.open import values_of
from sweeper.space.model import Space

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

LEAST_OUTCOMES, OUTCOMES_A_PARAMETER = 12, 2.0
"""Outcomes before anything is judged: a number, and one that grows with the parameters."""
LEAST_VARIED = 3
"""Outcomes in which a parameter had another value than it mostly had."""
MOSTLY = 0.9
"""Share of the outcomes in which a change may not matter."""
SMALL = 0.02
"""Of the spread of a figure over all outcomes: what moves it by less has no effect."""


def inert(
    model: Model, features: Features, space: Space, deployments: Sequence[Mapping[str, Any]]
) -> list[str]:
    """Names of the parameters without effect.

    Args:
        model: of the outcomes of these deployments.
        features: of the space.
        space: what is searched.
        deployments: those that gave figures, canonical.
    """
    if len(deployments) < max(LEAST_OUTCOMES, OUTCOMES_A_PARAMETER * len(space.parameters)):
        return []
    seen = [existing(space, deployment) for deployment in deployments]
    x = features.of(deployments)
    before, _ = model.predict(x)
    spread = before.std(axis=0)
    found = []
    for parameter in space.parameters:
        rows = [row for row, values in enumerate(seen) if parameter.name in values]
        counts = Counter(seen[row][parameter.name] for row in rows)
        if len(rows) - max(counts.values(), default=0) < LEAST_VARIED:
            continue
        changed = [features.with_value(x[rows], parameter.name, v) for v in values_of(parameter)]
        moved = _moved(model, changed, before[rows])
        if (moved <= SMALL * spread + 1e-12).all():
            found.append(parameter.name)
    return found


def _moved(model: Model, changed: Sequence[Floats], before: Floats) -> Floats:
    """How far each figure moves, in nearly all outcomes, when one parameter is changed alone.

    Args:
        model: predicts.
        changed: coordinates with each of its values.
        before: predicted figures without the change.
    """
    import numpy as np

    furthest = np.zeros(before.shape[1])
    for x in changed:
        after, _ = model.predict(x)
        furthest = np.maximum(furthest, np.quantile(np.abs(after - before), MOSTLY, axis=0))
    return furthest
