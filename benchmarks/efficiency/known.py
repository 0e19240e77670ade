"""A problem whose answer is known: a table of every deployment, and what the best of it is."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from sweeper.config.schema import LoadConfig, ObjectiveConfig, SloConfig, SpaceConfig
from sweeper.engine.protocol import EngineFacts
from sweeper.engine.replay.lines import text_of
from sweeper.engine.replay.rows import Row
from sweeper.engine.replay.table import Table
from sweeper.estimate import rules
from sweeper.estimate.violation import Violation
from sweeper.hardware.facts import HardwareFacts
from sweeper.models.facts import ModelFacts
from sweeper.models.read import facts_from_config
from sweeper.search.objective import (
    Corner,
    corner_from_baseline,
    load_curve,
    log_hypervolume,
    slo_excess,
)
from sweeper.space.canonical import as_raw, deployment_hash, exists
from sweeper.space.model import Space
from sweeper.space.parse import parse_space
from sweeper.trial.outcome import Point, TrialOutcome
from sweeper.verdicts import Verdict

LAUNCH_S = 60.0
"""Virtual time of a launch where a table does not say: measured rows come without."""

HARDWARE = {
    "h200": HardwareFacts("cuda", "NVIDIA H200", 8, 140.4, compute_capability=(9, 0)),
    "h100_80gb": HardwareFacts("cuda", "NVIDIA H100 80GB HBM3", 8, 79.6, compute_capability=(9, 0)),
}
"""What the rules are told of the machines of the simulated problems: eight GPUs each."""

VLLM = EngineFacts("vllm", "0.24.0", "vllm", "cuda", predicted=True)

Check = Callable[[Mapping[str, Any]], list[Violation]]


@dataclass(frozen=True)
class Known:
    """A table as a problem.

    Attributes:
        name: of the problem.
        table: all of it.
        space: what is searched.
        slo: the promise of the second figure; empty if the table has no P95.
        check: what arithmetic proves without a launch.
        objective: what steers and what is reached.
    """

    name: str
    table: Table
    space: Space
    slo: SloConfig
    check: Check
    objective: ObjectiveConfig = field(default_factory=ObjectiveConfig)

    def outcome(self, number: int, kind: str, deployment: Mapping[str, Any]) -> TrialOutcome:
        """What a launch of a deployment would have come to."""
        row = self.table.lookup(deployment)
        if row is None:
            raise KeyError(f"{self.name}: no row for {dict(deployment)}")
        return outcome_of(row, number, kind)

    @cached_property
    def corner(self) -> Corner:
        """Fixed reference of the hypervolume."""
        return corner_from_baseline(outcome_of(self.table.baseline, 0, "baseline"), self.objective)

    @cached_property
    def best_volume(self) -> float:
        """Hypervolume that all points of the table dominate together."""
        curve = [pair for row in self.table.rows for pair in self._curve(row)]
        return log_hypervolume(curve, self.corner)

    @cached_property
    def best_deployment(self) -> float:
        """Hypervolume of the best single load curve."""
        return max(log_hypervolume(self._curve(row), self.corner) for row in self.table.rows)

    @cached_property
    def best_under_slo(self) -> float | None:
        """Highest throughput of a point that keeps the promise, None if none does."""
        found = [self.under_slo(outcome_of(row, 0, "search")) for row in self.table.rows]
        return max((value for value in found if value is not None), default=None)

    @property
    def load(self) -> LoadConfig:
        """The ladder; `found` where rows stand at levels of their own, which do not compare."""
        ladder = self.table.ladder
        worked = [row for row in self.table.rows if row.levels]
        is_given = all(set(row.by_level) == set(ladder) for row in worked)
        streams = [key[1] for key in ladder if key[1] is not None]
        return LoadConfig(levels="given" if is_given else "found", concurrency=streams)

    def under_slo(self, outcome: TrialOutcome) -> float | None:
        """Throughput of a trial's best point that keeps the promise."""
        return max(
            (
                point.metrics[self.objective.throughput_metric]
                for point in outcome.valid_points
                if slo_excess(point, self.slo) <= 0
            ),
            default=None,
        )

    def _curve(self, row: Row) -> list[tuple[float, float]]:
        return load_curve(outcome_of(row, 0, "search").valid_points, self.objective)


def outcome_of(row: Row, number: int, kind: str) -> TrialOutcome:
    """A row as the outcome of a launch."""
    points = [
        Point(
            {"kind": level.kind, "concurrency": level.concurrency},
            dict(level.metrics),
            {},
            level.n,
            not level.reasons,
        )
        for level in row.levels
    ]
    failed = row.verdict is not Verdict.OK
    learnt = {**row.learnt, **({"rule": "no_kv_memory"} if row.verdict is Verdict.CAPACITY else {})}
    return TrialOutcome(
        number=number,
        kind=kind,
        deployment=dict(row.deployment),
        deployment_hash=deployment_hash(row.deployment),
        verdict=row.verdict,
        phase=row.phase,
        cause=row.cause,
        learnt=learnt if failed else {},
        points=points,
        timings_s={"total": LAUNCH_S if row.virtual_s is None else row.virtual_s},
    )


def simulated(path: Path) -> Known:
    """A problem of `benchmarks/tables/`."""
    table = Table.load(path)
    head = json.loads(text_of(path).splitlines()[0])["table"]
    space = parse_space(SpaceConfig(**head["space"]))
    lengths = head["workload"]
    check = _rules(
        space,
        facts_from_config(head["facts"]),
        HARDWARE[head["hardware"]],
        lengths["input_tokens"] + lengths["output_tokens"],
    )
    return Known(head["name"], table, space, SloConfig(**head["slo"]), check)


def recorded(
    name: str, table: Table, slo: SloConfig, objective: ObjectiveConfig | None = None
) -> Known:
    """A problem of measured rows: nothing is known but what stands there."""

    def check(deployment: Mapping[str, Any]) -> list[Violation]:
        if table.lookup(deployment) is not None:
            return []
        return [Violation("not_in_table", "nobody measured this", "", ())]

    space = parse_space(table.space)
    return Known(name, table, space, slo, check, objective or ObjectiveConfig())


def _rules(space: Space, model: ModelFacts, hardware: HardwareFacts, tokens: int) -> Check:
    defaults = {p.name: p.default for p in space.parameters if p.default != "default"}

    def check(deployment: Mapping[str, Any]) -> list[Violation]:
        raw = as_raw(space, deployment)
        values: dict[str, Any] = {}
        for parameter in space.parameters:
            if exists(space, parameter, values):
                values[parameter.name] = raw.get(parameter.name, defaults.get(parameter.name))
        sent = {key: value for key, value in values.items() if value not in {"none", "auto"}}
        return rules.check(
            {key: value for key, value in sent.items() if not key.startswith("flag.")},
            model=model,
            hardware=hardware,
            engine=VLLM,
            draft=None,
            required_tokens=tokens,
        )

    return check
