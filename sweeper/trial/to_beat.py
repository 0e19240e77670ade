"""What a launch must beat to matter: plain data of its plan, made by the search.

A trial stays a function of its plan: what other trials showed reaches it here and nowhere else.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Axis:
    """A metric that is compared.

    Attributes:
        metric: name with unit.
        sign: +1 if more is better, -1 if less is.
    """

    metric: str
    sign: int


@dataclass(frozen=True)
class Rival:
    """What another deployment reached.

    Attributes:
        values: one an axis, above 0.
        quality: what its output is worth, None where quality is no objective.
    """

    values: tuple[float, ...]
    quality: float | None = None


Growth = Mapping[str, Mapping[str, Mapping[str, float]]]
"""From level → to level → metric → the most favourable change seen, as the log of a ratio."""


@dataclass(frozen=True)
class ToBeat:
    """The stake of a launch.

    Attributes:
        axes: what is compared, the objectives but for quality.
        rivals: the non-dominated ones so far.
        levels: names of the levels that matter to the objective.
        first: the level that is driven first: where the recommended deployment stands.
        growth: how the metrics of `axes` and `limits` change between levels, over all launches
            that were measured whole.
        margin: noise, as the log of a ratio: a smaller difference is none.
        quality: the most that this deployment's output may be worth; None where quality is no
            objective.
        limits: latency promises, metric → ms, that a level must keep to count at all.
        may_cut: False where only levels may be left out: too few launches were measured whole, or
            this deployment has a value that none of them had.
        may_skip: whether a harder level can add nothing where an easier one shows it.
        ceiling: values of the best trial so far, as the sampler was told them.
    """

    axes: tuple[Axis, ...]
    rivals: tuple[Rival, ...]
    levels: tuple[str, ...]
    first: str
    growth: Growth
    margin: float
    quality: float | None = None
    limits: Mapping[str, float] = field(default_factory=dict)
    may_cut: bool = False
    may_skip: bool = False
    ceiling: tuple[float, ...] = ()
