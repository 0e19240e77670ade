"""`sampler=gp`: launch what is expected to add most to what the study has reached.

    outcomes ──► figures (goals) ──► a process each ──► sampled figures of every open deployment
                                                              │ points of a curve (goals)
    launch ◄── cheapest of the best ◄── by the chance to run ◄── expected gain

Everything is a function of the journal, the space and the seed: a study that was interrupted goes
on as it would have.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from sweeper.search.objective import Objective
from sweeper.search.policy.features import Features
from sweeper.search.policy.gain import expected_gain
from sweeper.search.policy.goals import Goal, Sight, figures, goal, sight
from sweeper.search.policy.process import Kernel, Process
from sweeper.trial.outcome import TrialOutcome

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

Expect = Callable[[Sequence[Mapping[str, Any]], Goal], "Floats"]
"""Deployments and goal → expected figures, shape (deployments, figures), NaN where nothing is."""

SAMPLES = 32
SHARED = 0.5
"""Share of a deviation from the prediction that all levels of a launch have in common."""
SCORED = 600
"""Candidates that are scored in full; the others are sorted out by an optimistic guess."""
DOUBT = 0.25
"""Least spread of the belief that a deployment runs: a few failures in a branch, which may all have
had another cause, must not close it for good (2 % are left)."""
HOPELESS = 1e-9


@dataclass(frozen=True)
class Learnt:
    """What a model was fitted to.

    Attributes:
        deployments: of the outcomes that gave figures, n of them.
        x: their coordinates, shape (n, columns).
        y: their figures, shape (n, figures); NaN where there is none.
        expected: what was expected of them, likewise, or None.
        goal: what the figures mean.
        tried: coordinates of all that ran or failed by its own fault, shape (m, columns).
        ran: 1.0 or 0.0 for each, shape (m,).
    """

    deployments: Sequence[Mapping[str, Any]]
    x: Floats
    y: Floats
    expected: Floats | None
    goal: Goal
    tried: Floats
    ran: Floats


class Model:
    """Predicts figures and failures of deployments from outcomes.

    Args:
        learnt: what is known.
        groups: parameter of each column of the coordinates.
        kernels: one a figure, to spare the fits.
    """

    def __init__(
        self, learnt: Learnt, groups: Sequence[int], kernels: Sequence[Kernel] = ()
    ) -> None:

        self._learnt = learnt
        self._groups = groups
        self._shift: list[tuple[float, float]] = []
        self.processes = [
            self._process(k, kernels[k] if kernels else None) for k in range(learnt.y.shape[1])
        ]
        self._fit_to_run: Process | None = None
        if 0.0 < learnt.ran.mean() < 1.0:
            self._fit_to_run = Process(learnt.tried, learnt.ran, groups)
        points = learnt.goal.points(self._smoothed())
        self.reached = points.reshape(-1, points.shape[-1])

    def believing(self, x: Floats, expected: Floats | None) -> Model:
        """A model that takes what it predicts at x for observed ("kriging believer").

        So that launches chosen one after another, before the first has ended, differ.
        """
        import numpy as np

        learnt = self._learnt
        mean, _ = self.predict(x, expected)
        both = None
        if learnt.expected is not None and expected is not None:
            both = np.concatenate([learnt.expected, expected])
        believed = replace(
            learnt,
            x=np.concatenate([learnt.x, x]),
            y=np.concatenate([learnt.y, mean]),
            expected=both,
        )
        return Model(believed, self._groups, [one.kernel for one in self.processes])

    def _process(self, k: int, kernel: Kernel | None) -> Process:
        import numpy as np

        learnt = self._learnt
        seen = np.isfinite(learnt.y[:, k])
        expected = None
        if learnt.expected is not None:
            own = learnt.expected[seen, k]
            known = own[np.isfinite(own)]
            centre = float(known.mean()) if len(known) else 0.0
            spread = (float(known.std()) if len(known) else 0.0) or 1.0
            self._shift.append((centre, spread))
            expected = np.nan_to_num((own - centre) / spread)
        return Process(learnt.x[seen], learnt.y[seen, k], self._groups, expected, kernel)

    def predict(self, x: Floats, expected: Floats | None = None) -> tuple[Floats, Floats]:
        """Means and standard deviations of all figures, each of shape (len(x), figures)."""
        import numpy as np

        columns = []
        for k, process in enumerate(self.processes):
            own = None
            if expected is not None and self._learnt.expected is not None:
                centre, spread = self._shift[k]
                own = np.nan_to_num((expected[:, k] - centre) / spread)
            columns.append(process.predict(x, own))
        mean = np.stack([column[0] for column in columns], axis=1)
        return mean, np.stack([column[1] for column in columns], axis=1)

    def chance(self, x: Floats) -> Floats:
        """Probability that a deployment runs at all, shape (len(x),)."""
        import numpy as np
        from scipy.stats import norm

        if self._fit_to_run is None:
            return np.ones(len(x)) if self._learnt.ran.all() else np.full(len(x), 0.5)
        mean, spread = self._fit_to_run.predict(x)
        chance: Floats = norm.cdf((mean - 0.5) / np.maximum(spread, DOUBT))
        return chance

    def gain(self, x: Floats, expected: Floats | None, rng: np.random.Generator) -> Floats:
        """Expected gain of each deployment, failures counted as none, shape (len(x),)."""
        import numpy as np

        mean, spread = self.predict(x, expected)
        corner, ideal = self._learnt.goal.box(self.reached)
        optimistic = self._learnt.goal.points((mean + spread)[:, None])
        chance = self.chance(x)
        rough = chance * expected_gain(optimistic, self.reached, corner, ideal, rng)
        best = np.argsort(-rough, kind="stable")[:SCORED]
        drawn = self._deviations(rng, mean.shape[1])
        points = self._learnt.goal.points(mean[best, None] + spread[best, None] * drawn[None])
        gain = chance[best] * expected_gain(points, self.reached, corner, ideal, rng)
        if gain.max(initial=0.0) <= HOPELESS:
            # Nothing promises anything: what is known least of.
            return rough if rough.max(initial=0.0) > 0.0 else chance * spread.sum(axis=1)
        # What was not scored keeps its order behind what was.
        whole: Floats = HOPELESS * HOPELESS * rough
        whole[best] += gain
        return whole

    def _deviations(self, rng: np.random.Generator, count: int) -> Floats:
        """Standard normal, shape (samples, figures); those of one kind go together in part."""
        import numpy as np

        width = max(self._learnt.goal.width, 1)
        own = rng.standard_normal((SAMPLES, count))
        common = rng.standard_normal((SAMPLES, width))[:, np.arange(count) % width]
        drawn: Floats = np.sqrt(SHARED) * common + np.sqrt(1 - SHARED) * own
        return drawn

    def _smoothed(self) -> Floats:
        """The figures as the model sees them, without their noise; NaN stays."""
        import numpy as np

        mean, _ = self.predict(self._learnt.x, self._learnt.expected)
        smoothed: Floats = np.where(np.isfinite(self._learnt.y), mean, np.nan)
        return smoothed


def learn(
    objective: Objective,
    features: Features,
    outcomes: Sequence[TrialOutcome],
    expect: Expect | None = None,
) -> Learnt | None:
    """What outcomes teach a model; None as long as none of them gave figures.

    Args:
        objective: of the study.
        features: of its space.
        outcomes: the journal, or a part of it.
        expect: figures that were expected of deployments before anything was launched.
    """
    import numpy as np

    seen: list[tuple[TrialOutcome, Sight]] = []
    for outcome in outcomes:
        found = sight(objective, outcome)
        if found is not None:
            seen.append((outcome, found))
    if not seen:
        return None
    failed = [one for one in outcomes if one.verdict.is_config_fault and one.launched]
    sights = [found for _, found in seen]
    chosen = goal(objective, sights)
    deployments = [outcome.deployment for outcome, _ in seen]
    x = features.of(deployments)
    tried = np.concatenate([x, features.of([one.deployment for one in failed])])
    ran = np.array([1.0] * len(seen) + [0.0] * len(failed))
    expected = expect(deployments, chosen) if expect else None
    return Learnt(deployments, x, figures(chosen, sights), expected, chosen, tried, ran)
