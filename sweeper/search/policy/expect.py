"""What prior knowledge expects, in the figures that are modelled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sweeper.search.objective import Objective
from sweeper.search.policy.chooser import Guide
from sweeper.search.policy.goals import Goal, Sight, figures, sight
from sweeper.search.policy.model import Expect
from sweeper.space.canonical import deployment_hash
from sweeper.trial.outcome import Point, TrialOutcome
from sweeper.verdicts import Phase, Verdict

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]


def expectation(objective: Objective, guide: Guide) -> Expect:
    """Figures by the guide's own points, taken as the objective takes measured ones."""

    def expect(deployments: Sequence[Mapping[str, Any]], goal: Goal) -> Floats:
        found = guide.expect([dict(one) for one in deployments])
        nothing = Sight(own=(float("nan"),) * goal.own)
        sights = [
            nothing if points is None else _sight(objective, one, points) or nothing
            for one, points in zip(deployments, found, strict=True)
        ]
        return figures(goal, sights)

    return expect


def _sight(
    objective: Objective, deployment: Mapping[str, Any], points: Sequence[Point]
) -> Sight | None:
    """As of an outcome that had measured these points."""
    imagined = TrialOutcome(
        number=-1,
        kind="search",
        deployment=dict(deployment),
        deployment_hash=deployment_hash(deployment),
        verdict=Verdict.OK,
        phase=Phase.STOP,
        points=list(points),
    )
    return sight(objective, imagined)
