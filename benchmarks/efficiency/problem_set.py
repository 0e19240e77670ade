"""The problems of a run, found by name: simulated tables, studies made by this product, silicon."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from benchmarks.efficiency.known import Known, recorded, simulated
from sweeper.config.schema import ObjectiveConfig, SloConfig
from sweeper.engine.replay.lines import text_of
from sweeper.engine.replay.silicon import PARAMETER, groups_of
from sweeper.engine.replay.table import Table
from sweeper.space.canonical import baseline, canonical, size
from sweeper.space.parse import parse_space

SUFFIX = ".jsonl.gz"
TABLES = Path(__file__).resolve().parent.parent / "tables"
SILICON = Path("data") / "silicon_sample.csv"
LEAST_DEPLOYMENTS = 30
LARGEST_SPACE = 20_000
"""Beyond it a space is not listed, and a table of 50 rows in it cannot be found by drawing."""

OTHER_GPU = {"h200": "h100_80gb", "h100_80gb": "h200"}
"""Whose simulator is the prior."""

SIMULATED, STUDY, MEASURED = "simulated", "study", "silicon"


@dataclass(frozen=True)
class Source:
    """Where a problem comes from; small enough to be sent to another process.

    Attributes:
        kind: simulated | study | silicon.
        name: of the problem.
        path: of its table.
        group: of a CSV of measured rows.
        prior: table of the other GPU, None without one.
    """

    kind: str
    name: str
    path: Path
    group: str = ""
    prior: Path | None = None

    @property
    def other(self) -> Source | None:
        """The other GPU's table as a problem of its own."""
        if self.prior is None:
            return None
        return Source(self.kind, self.prior.name.removesuffix(SUFFIX), self.prior)


@lru_cache(maxsize=64)
def load(source: Source) -> Known:
    """The problem itself, once a process."""
    if source.kind == SIMULATED:
        return simulated(source.path)
    if source.kind == STUDY:
        return recorded(source.name, Table.load(source.path), SloConfig())
    table = Table.load(source.path, group=source.group, batch=PARAMETER)
    # The source states one figure a row, taken for the mean: there is no P95 to promise.
    return recorded(source.name, table, SloConfig(), ObjectiveConfig(latency_metric="e2e_mean_ms"))


def simulated_sources(folder: Path = TABLES) -> list[Source]:
    """The exhaustive tables of the simulator."""
    # MODEL-HARDWARE-WORKLOAD; other tables lie there too.
    found = {path.name.removesuffix(SUFFIX): path for path in folder.glob(f"*-*-*{SUFFIX}")}
    return [
        Source(SIMULATED, name, path, prior=_other(name, found))
        for name, path in sorted(found.items())
    ]


def _other(name: str, found: dict[str, Path]) -> Path | None:
    model, hardware, workload = name.split("-")
    return found.get(f"{model}-{OTHER_GPU[hardware]}-{workload}")


def measured_sources(folder: Path = TABLES) -> list[Source]:
    """Exhaustive studies of this product on a real engine, kept as tables."""
    return [
        Source(STUDY, path.name.removesuffix(SUFFIX), path)
        for path in sorted(folder.glob(f"cpu_*{SUFFIX}"))
    ]


def study_sources(paths: Sequence[Path]) -> list[Source]:
    """Exhaustive studies made by this product: their folders, or their `trials.jsonl`."""
    return [Source(STUDY, (path if path.is_dir() else path.parent).name, path) for path in paths]


def silicon_sources(shared: Path | None) -> tuple[list[Source], list[str]]:
    """Groups of measured rows with enough deployments, and why there are no more of them.

    Args:
        shared: the folder that holds `data/silicon_sample.csv`, None if there is none.
    """
    path = None if shared is None else shared / SILICON
    if path is None or not path.is_file():
        where = "no folder was given" if path is None else f"{path} is not there"
        return [], [f"silicon is left out: {where} (--shared DIR, or SWEEPER_SHARED)"]
    sources, left_out = [], 0
    for name, table in _groups(path):
        if _is_searchable(table):
            sources.append(Source(MEASURED, name, path, group=name))
        else:
            left_out += 1
    notes = [
        f"{left_out} silicon groups are left out: their rows span a space of more than "
        f"{LARGEST_SPACE}, or one whose defaults were not measured"
    ]
    return sources, (notes if left_out else [])


def _groups(path: Path) -> Iterator[tuple[str, Table]]:
    """Name and table of each group with deployments enough."""
    for group in groups_of(path, text_of(path)):
        if len(group.rows) < LEAST_DEPLOYMENTS:
            return  # the largest come first
        table = Table.load(path, group=group.name, batch=PARAMETER)
        if len(table.rows) >= LEAST_DEPLOYMENTS:
            yield group.name, table


def _is_searchable(table: Table) -> bool:
    space = parse_space(table.space)
    spanned = size(space)
    begins = table.lookup(canonical(space, baseline(space))) is not None
    return spanned is not None and spanned <= LARGEST_SPACE and begins
