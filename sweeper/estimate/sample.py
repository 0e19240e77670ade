"""Deployments of a space: all of them, or a fair sample. Pure, and the same for the same seed."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

from sweeper.space.canonical import canonical, enumerate_canonical, exists
from sweeper.space.model import Parameter, Raw, Space

EXACT_UP_TO = 5000
"""Deployments that are all looked at; of a larger space, a sample."""
SAMPLE = 2000
CONFIDENCE = 0.95
_TRIES_EACH = 200


@dataclass(frozen=True)
class Deployments:
    """Canonical deployments, and whether they are all there are."""

    each: list[Raw]
    are_all: bool


def deployments_of(space: Space, seed: int) -> Deployments:
    """All deployments of a small space; of a large one a sample in which each is equally likely."""
    everything = enumerate_canonical(space, EXACT_UP_TO)
    if everything is not None:
        return Deployments(everything, True)
    draw = random.Random(seed)
    found: list[Raw] = []
    for _ in range(SAMPLE * _TRIES_EACH):
        raw = {parameter.name: _draw(parameter, draw) for parameter in space.parameters}
        # Closed branches make many coordinates one deployment. Of these only one is taken, so that
        # a deployment with a closed branch is not drawn more often than others.
        if _is_its_own(space, raw):
            found.append(canonical(space, raw))
        if len(found) == SAMPLE:
            break
    return Deployments(found, False)


def _draw(parameter: Parameter, draw: random.Random) -> Any:
    if parameter.values is not None:
        return draw.choice(parameter.values)
    return draw.uniform(float(parameter.low or 0), float(parameter.high or 0))


def _is_its_own(space: Space, raw: Raw) -> bool:
    """Whether coordinates are the one way of a deployment that counts.

    With closed branches at their first value, and nothing that a recipe says by itself.
    """
    values: Raw = {}
    for parameter in space.parameters:  # parents stand first
        value = raw[parameter.name]
        if exists(space, parameter, values):
            values[parameter.name] = value
            if parameter.is_own(value, values.get("quantization")):
                return False
        elif parameter.values and value != parameter.values[0]:
            return False
    return True


def interval(part: int, whole: int) -> tuple[float, float]:
    """Between which shares the true one lies, 95 %, if `part` of a random `whole` were seen.

    Wilson 1927: stays between 0 and 1, and says something even where nothing or all was seen.
    """
    if whole == 0:
        return 0.0, 1.0
    z = NormalDist().inv_cdf(0.5 + CONFIDENCE / 2)
    share, spread = part / whole, z * z / whole
    middle = (share + spread / 2) / (1 + spread)
    half = z / (1 + spread) * math.sqrt(share * (1 - share) / whole + spread / (4 * whole))
    return max(0.0, middle - half), min(1.0, middle + half)
