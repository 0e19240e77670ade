"""What a table knows of a deployment. Frozen data, no IO."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from sweeper.verdicts import Phase, Verdict

Deployment = Mapping[str, Any]
LevelKey = tuple[str, int | None, float | None]
"""Kind, streams, requests a second: what two levels must have in common to be the same one."""

CLOSED, OPEN, BATCH = "closed", "open", "batch"
"""Kinds of load whose levels are told apart by their streams or their rate alone."""

PARALLEL = ("tensor_parallel_size", "pipeline_parallel_size", "data_parallel_size")


@dataclass(frozen=True)
class Level:
    """A deployment at one load level.

    Attributes:
        kind: of the level, see `sweeper.load.level`.
        concurrency: streams, None where requests arrive by the clock.
        rate_per_s: requests a second, None in a closed loop.
        metrics: by this product's names, in their units; what was not measured is absent.
        n: requests behind them; 0 if the source does not say.
        virtual_s: what driving it took, None if the source does not say.
        reasons: why it is not valid; empty if it is.
    """

    kind: str
    concurrency: int | None
    rate_per_s: float | None
    metrics: Mapping[str, float]
    n: int = 0
    virtual_s: float | None = None
    reasons: tuple[str, ...] = ()

    @property
    def key(self) -> LevelKey:
        return self.kind, self.concurrency, self.rate_per_s


@dataclass(frozen=True)
class Row:
    """A deployment and what came of it.

    Attributes:
        deployment: canonical parameters.
        verdict, phase, cause, remedy, evidence, learnt: how its launch ended.
        levels: what was measured.
        total_s: what the whole launch took, None if the source does not say.
        quality: figures of its output, by the names of `sweeper.trial.outcome.QualityScore`; None
            if the source has none.
        launched: False if the source's own study refused it without a launch.
        devices: that it occupies, None if the source does not say.
        is_baseline: True for what its source began with.
    """

    deployment: Deployment
    levels: tuple[Level, ...] = ()
    verdict: Verdict = Verdict.OK
    phase: Phase = Phase.STOP
    cause: str = ""
    remedy: str = ""
    evidence: str = ""
    learnt: Mapping[str, Any] = field(default_factory=dict)
    total_s: float | None = None
    quality: Mapping[str, Any] | None = None
    launched: bool = True
    devices: int | None = None
    is_baseline: bool = False

    @cached_property
    def by_level(self) -> Mapping[LevelKey, Level]:
        """Its levels by what was asked."""
        return {level.key: level for level in self.levels}

    @property
    def virtual_s(self) -> float | None:
        """What the whole launch took, as far as the source says."""
        if self.total_s is not None:
            return self.total_s
        told = [level.virtual_s for level in self.levels if level.virtual_s is not None]
        return sum(told) if told else None

    @property
    def start_s(self) -> float | None:
        """What it took beside its levels, None if the source does not say."""
        if self.total_s is None:
            return None
        return max(0.0, self.total_s - sum(level.virtual_s or 0.0 for level in self.levels))

    @property
    def device_count(self) -> int:
        """Devices that it occupies: as the source says, or the product of its parallelism."""
        if self.devices is not None:
            return self.devices
        count = 1
        for name in PARALLEL:
            count *= int(self.deployment.get(name, 1))
        return count


def key_of(deployment: Deployment) -> frozenset[tuple[str, Any]]:
    """What makes two deployments the same, whatever the order of their parameters."""
    return frozenset(deployment.items())


def metrics_of(rows: Iterable[Row]) -> frozenset[str]:
    """Names of the metrics that any valid level has."""
    return frozenset(
        name for row in rows for level in row.levels if not level.reasons for name in level.metrics
    )
