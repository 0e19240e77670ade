"""All studies of a comparison, on several processes, kept as they end so that a run can go on."""

from __future__ import annotations

import json
import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.efficiency.policies import POLICIES, Policy
from benchmarks.efficiency.problem_set import Source, load
from benchmarks.efficiency.study import FRONTIER, SLO, run


@dataclass(frozen=True)
class Job:
    """One study to run."""

    source: Source
    policy: str
    seed: int
    kind: str
    most: int

    @property
    def key(self) -> tuple[str, str, int, str, int]:
        return self.source.name, self.policy, self.seed, self.kind, self.most


@dataclass(frozen=True)
class Record:
    """A study that was run, as it is written down.

    Attributes:
        problem, policy, seed, kind, most: what was run.
        launches: fraction of the best, as text → launches until then, None if never.
        virtual_s: likewise, seconds of the virtual clock.
        total: launches of the whole study.
        total_s: likewise, seconds.
        failed: of them without a point.
        share: of the best at its end.
    """

    problem: str
    policy: str
    seed: int
    kind: str
    most: int
    launches: dict[str, int | None]
    virtual_s: dict[str, float | None]
    total: int
    total_s: float
    failed: int
    share: float

    @property
    def key(self) -> tuple[str, str, int, str, int]:
        return self.problem, self.policy, self.seed, self.kind, self.most


def jobs(
    sources: Sequence[Source],
    policies: Sequence[Policy],
    seeds: int,
    most: int,
    kinds: Sequence[str] = (FRONTIER, SLO),
) -> list[Job]:
    """Every study of a comparison, seeds outermost, so that an unfinished run is a balanced one."""
    return [
        Job(source, policy.name, seed, kind, most)
        for seed in range(seeds)
        for source in sources
        for kind in kinds
        for policy in policies
        if _applies(source, policy, seed, kind)
    ]


def _applies(source: Source, policy: Policy, seed: int, kind: str) -> bool:
    if policy.prior != "none" and source.prior is None:
        return False
    if seed > 0 and not policy.is_seeded:
        return False
    return kind == FRONTIER or source.kind == "simulated"


def run_all(
    wanted: Sequence[Job], path: Path | None, workers: int, say: Callable[[str], None]
) -> list[Record]:
    """Run what the file does not hold yet; every study is added to it as it ends."""
    known = {} if path is None else {record.key: record for record in read(path)}
    missing = [job for job in wanted if job.key not in known]
    say(f"{len(wanted)} studies, {len(wanted) - len(missing)} of them known")
    for count, record in enumerate(_run(missing, workers), start=1):
        known[record.key] = record
        if path is not None:
            with path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(asdict(record)) + "\n")
        if count % 50 == 0:
            say(f"{count} of {len(missing)} run")
    return [known[job.key] for job in wanted]


def read(path: Path) -> list[Record]:
    """Records of a file, none if it is not there; a torn last line is skipped."""
    if not path.is_file():
        return []
    found = []
    for line in path.read_text(encoding="utf-8").splitlines():
        try:
            found.append(Record(**json.loads(line)))
        except ValueError:
            continue
    return found


def _run(missing: Sequence[Job], workers: int) -> Iterator[Record]:
    if workers == 1:
        yield from map(run_one, missing)
        return
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, mp_context=context) as pool:
        futures = [pool.submit(run_one, job) for job in missing]
        for future in as_completed(futures):
            yield future.result()


def run_one(job: Job) -> Record:
    """Run one study."""
    policy = next(one for one in POLICIES if one.name == job.policy)
    prior = None if policy.prior == "none" else job.source.other
    other = None if prior is None else load(prior)
    result = run(load(job.source), policy, job.seed, job.kind, job.most, other=other)
    reached = {str(fraction): when for fraction, when in result.reached.items()}
    return Record(
        job.source.name,
        job.policy,
        job.seed,
        job.kind,
        job.most,
        {fraction: when.launches for fraction, when in reached.items()},
        {fraction: when.virtual_s for fraction, when in reached.items()},
        result.launches,
        result.virtual_s,
        result.failed,
        result.share,
    )
