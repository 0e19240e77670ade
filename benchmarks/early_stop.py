"""What early stops save, and whether they cost anything of the front.

    python -m benchmarks.early_stop TABLE ...            # replayed: time is the table's own
    python -m benchmarks.early_stop --mock               # real launches of the mock engine

Pairs of studies with the same seed and the same number of launches, one that drives every launch
through its whole ladder (`stop=none`) and one that may cut it. With `--sampler random` both try the
same deployments, so that the fronts can be compared one to one; with any other sampler what it is
told of a cut launch also decides what comes next. On a table the truth is known: `missed` is the
largest factor by which a cut deployment would have beaten the front at any load level.
"""

from __future__ import annotations

import argparse
import math
import statistics
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.processes import machine
from sweeper.config.compose import compose
from sweeper.config.schema import SweeperConfig
from sweeper.engine.replay.table import Table
from sweeper.search.loop import StudyRun
from sweeper.search.objective import corner_from_baseline, load_curve, log_hypervolume, slo_excess
from sweeper.tracking.journal import Journal
from sweeper.tracking.lock import StudyLock
from sweeper.tracking.mlflow_log import MlflowTracker
from sweeper.tracking.paths import StudyPaths
from sweeper.trial.outcome import Point, TrialOutcome
from sweeper.verbs.running import prepare
from sweeper.verbs.tabled import filled
from sweeper.verdicts import Verdict

MOCK = (
    "engine=mock",
    "hardware=h100_80gb",
    "model=qwen7b",
    "quality=none",
    "load.concurrency=[1,4,16]",
    "load.min_requests=8",
    "workload.input_tokens=64",
    "workload.output_tokens=16",
    "+space.parameters.max_num_seqs=[2,4,8,16]",
    "+space.parameters.max_num_batched_tokens=[64,256,1024]",
)


@dataclass(frozen=True)
class Side:
    """One study of a pair.

    Attributes:
        minutes: that its launches took.
        levels: load levels driven.
        cut: launches cut short.
        launches: of the study.
        area: hypervolume of its front, in nats²; with `objective=slo` the best throughput under it.
        outcomes: all of it.
    """

    minutes: float
    levels: int
    cut: int
    launches: int
    area: float
    outcomes: tuple[TrialOutcome, ...]


@dataclass(frozen=True)
class Pair:
    whole: Side
    stopped: Side
    missed: float | None

    @property
    def saved(self) -> float:
        """Share of the minutes that early stops saved."""
        return 1.0 - self.stopped.minutes / self.whole.minutes

    @property
    def area_kept(self) -> float:
        return self.stopped.area / self.whole.area


def run(overrides: Sequence[str]) -> tuple[SweeperConfig, Side]:
    """Run a study, its search and nothing after it."""
    with tempfile.TemporaryDirectory(prefix="early-stop-") as folder:
        cfg = filled(
            compose(
                [
                    f"studies_dir={folder}", "tracking=none", "confirm=none", "prior=none",
                    *overrides,
                ],
                device_kind="cpu",
            )
        )  # fmt: skip
        setup = prepare(cfg, lambda _: None)
        paths = StudyPaths(Path(folder), cfg.study or "s")
        paths.create()
        with StudyLock(paths.lock):
            journal = Journal(paths.trials_jsonl, reserve=paths.reserve)
            tracker = MlflowTracker(cfg, paths, {}, paths.name)
            study = StudyRun(setup, paths, journal, tracker, lambda _: None)
            study.run()
            return cfg, side(cfg, study.outcomes)


def side(cfg: SweeperConfig, outcomes: Sequence[TrialOutcome]) -> Side:
    whole = [o for o in outcomes if o.verdict is Verdict.OK and o.partial is None]
    corner = corner_from_baseline(whole[0], cfg.objective)
    curve = [pair for o in whole for pair in load_curve(o.valid_points, cfg.objective)]
    return Side(
        sum(o.timings_s.get("total", 0.0) for o in outcomes) / 60,
        sum(len(o.points) for o in outcomes),
        sum(o.partial is not None for o in outcomes),
        sum(o.launched for o in outcomes),
        under_slo(cfg, whole) if cfg.objective.kind == "slo" else log_hypervolume(curve, corner),
        tuple(outcomes),
    )


def under_slo(cfg: SweeperConfig, outcomes: Sequence[TrialOutcome]) -> float:
    """Best throughput that keeps the promise; 0 if none does."""
    slo, metric = cfg.select.slo, cfg.objective.throughput_metric
    points = [point for outcome in outcomes for point in outcome.valid_points]
    return max((p.metrics[metric] for p in points if slo_excess(p, slo) <= 0), default=0.0)


def missed(cfg: SweeperConfig, stopped: Side, table: Table) -> float:
    """The largest factor by which a cut deployment would have beaten the front, 1 if none would."""
    asked = cfg.objective
    whole = [o for o in stopped.outcomes if o.verdict is Verdict.OK and o.partial is None]
    front = [pair for o in whole for pair in load_curve(o.valid_points, asked)]
    is_slo = cfg.objective.kind == "slo"
    if is_slo:
        front = [(stopped.area, 0.0)]
    best = 0.0
    for outcome in stopped.outcomes:
        row = table.lookup(outcome.deployment) if outcome.partial is not None else None
        for level in row.levels if row is not None else ():
            tps = level.metrics.get(asked.throughput_metric)
            latency = level.metrics.get(asked.latency_metric)
            kept = not is_slo or slo_excess(_point(level.metrics), cfg.select.slo) <= 0
            if tps and latency and kept:
                ahead = min(_ahead(tps / t, ms / latency) for t, ms in front)
                best = max(best, ahead)
    return math.exp(best)


def _ahead(faster: float, sooner: float) -> float:
    return max(math.log(faster), math.log(sooner)) if sooner > 0 else math.log(faster)


def _point(metrics: Mapping[str, float]) -> Point:
    return Point({}, dict(metrics), {}, 0, True)


def pair(overrides: Sequence[str], table: Path | None) -> Pair:
    _, whole = run([*overrides, "stop=none"])
    cfg, stopped = run([*overrides, "stop=default"])
    lost = None if table is None else missed(cfg, stopped, Table.load(table))
    return Pair(whole, stopped, lost)


def row(name: str, pairs: Sequence[Pair]) -> str:
    def middle(values: Sequence[float]) -> float:
        return statistics.median(values)

    lost = [p.missed for p in pairs if p.missed is not None]
    cells = [
        name,
        str(len(pairs)),
        f"{middle([p.stopped.cut for p in pairs]):g} of {pairs[0].stopped.launches}",
        f"{middle([p.whole.minutes for p in pairs]):.1f}",
        f"{middle([p.stopped.minutes for p in pairs]):.1f}",
        f"{middle([p.saved for p in pairs]):.1%}",
        f"{min(p.area_kept for p in pairs):.4f}",
        f"{max(lost):.3f}" if lost else "-",
    ]
    return f"| {' | '.join(cells)} |"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("tables", nargs="*", type=Path)
    parser.add_argument("--mock", action="store_true")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--launches", type=int, default=40)
    parser.add_argument("--sampler", default="random")
    parser.add_argument("--set", nargs="*", default=[], help="further settings, key=value")
    asked = parser.parse_args(arguments)
    problems: list[tuple[str, list[str], Path | None]] = [
        (table.stem, ["engine=replay", f"engine.table={table}"], table) for table in asked.tables
    ]
    if asked.mock:
        problems.append(("mock", list(MOCK), None))
    print(f"{machine()}; sampler={asked.sampler}")
    print("| problem | seeds | cut | minutes, whole | minutes, cut | saved | area kept | missed |")
    print("|" + "---|" * 8)
    for name, settings, table in problems:
        settings += [f"sampler={asked.sampler}", f"budget.launches={asked.launches}", *asked.set]
        pairs = [
            pair([*settings, f"sampler.seed={seed}"], table) for seed in range(1, asked.seeds + 1)
        ]
        print(row(name, pairs), flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
