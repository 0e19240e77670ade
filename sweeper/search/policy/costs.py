"""What a launch costs, from what it changes and from how long such launches took. Pure.

relaunch         a checkpoint that was served before in this study
new checkpoint   one that lies ready but was not served yet: it must be loaded cold, or fetched
to be quantized  one that must be made first
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import IntEnum
from statistics import median
from typing import Any

from sweeper.space.catalogue import RECIPE_PREFIX
from sweeper.trial.outcome import TrialOutcome
from sweeper.verdicts import Phase, Verdict


class Step(IntEnum):
    """What a launch needs, cheapest first."""

    RELAUNCH = 0
    NEW_CHECKPOINT = 1
    QUANTIZE = 2


ASSUMED = {Step.RELAUNCH: 1.0, Step.NEW_CHECKPOINT: 1.3, Step.QUANTIZE: 5.0}
"""Cost over that of a relaunch, until launches of the kind have told it."""

Key = tuple[tuple[str, Any], ...]
MustMake = Callable[[Mapping[str, Any]], bool]


class Costs:
    """Costs of launches.

    Args:
        must_make: whether a deployment's checkpoint is made by this product, cached or not.
    """

    def __init__(self, must_make: MustMake = lambda _: False) -> None:
        self._must_make = must_make
        self._keys: dict[str, Key] = {}

    def after(self, outcomes: Sequence[TrialOutcome]) -> Callable[[Mapping[str, Any]], Step]:
        """What a launch needs after these outcomes, as a function of its deployment."""
        steps = {self._key(one): Step.RELAUNCH for one in outcomes if one.launched}

        def step(deployment: Mapping[str, Any]) -> Step:
            own = checkpoint_key(deployment)
            if own not in steps:
                is_made = self._must_make(deployment)
                steps[own] = Step.QUANTIZE if is_made else Step.NEW_CHECKPOINT
            return steps[own]

        return step

    def _key(self, outcome: TrialOutcome) -> Key:
        """Kept, because the same outcomes come again at every decision of a long study."""
        digest = outcome.deployment_hash
        if digest not in self._keys:
            self._keys[digest] = checkpoint_key(outcome.deployment)
        return self._keys[digest]

    def relative(self, outcomes: Sequence[TrialOutcome]) -> dict[Step, float]:
        """Cost of each step over that of a relaunch; never less than that of a cheaper step."""
        took: dict[Step, list[float]] = {step: [] for step in Step}
        before: set[Key] = set()
        for outcome in outcomes:
            total = outcome.timings_s.get("total")
            if not outcome.launched or outcome.verdict is not Verdict.OK or not total:
                continue
            key = self._key(outcome)
            is_made = outcome.timings_s.get(Phase.QUANTIZE, 0.0) > 0
            step = Step.QUANTIZE if is_made else Step(key not in before)
            before.add(key)
            took[step].append(total)
        unit = median(took[Step.RELAUNCH]) if took[Step.RELAUNCH] else None
        costs: dict[Step, float] = {}
        for step in Step:
            seen = took[step] if unit else []
            cost = median(seen) / unit if seen and unit else ASSUMED[step]
            costs[step] = max([cost, *costs.values()])
        return costs


def checkpoint_key(deployment: Mapping[str, Any]) -> Key:
    """What decides which weights are served."""
    return tuple(
        (name, value)
        for name, value in sorted(deployment.items())
        if name == "quantization" or name.startswith(RECIPE_PREFIX)
    )
