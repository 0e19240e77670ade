"""Whether a study stays quick and small over thousands of trials.

    python -m benchmarks.scale                               # 10,000 launches, sampler=random
    python -m benchmarks.scale --trials 3000 --sampler tpe

A study as a user runs it, on the replay engine and a made-up table, so that a launch itself costs
nothing: what is left is this product's own. Without MLflow, whose mirror works beside the study.
Times are taken between the study's own announcements:

    decide    a trial's record shown → the next launch announced (tell, arithmetic, ask)
    launch    announced → its line in the journal, flushed to the disk
    show      its line written → its progress shown (front so far, what is left of the budget)

Their sum is what a trial costs. Memory is the process's resident set.
"""

from __future__ import annotations

import argparse
import gzip
import itertools
import json
import math
import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from benchmarks.processes import machine
from sweeper.config.compose import compose
from sweeper.engine.replay.rows import CLOSED
from sweeper.search.loop import StudyRun
from sweeper.tracking.journal import Journal
from sweeper.tracking.lock import StudyLock
from sweeper.tracking.mlflow_log import MlflowTracker
from sweeper.tracking.paths import StudyPaths
from sweeper.trial.progress import Event, StudyProgress, TrialEnded, TrialStarted
from sweeper.verbs.running import prepare
from sweeper.verbs.tabled import filled

STREAMS = (1, 8, 64)
VALUES: dict[str, tuple[Any, ...]] = {
    "tensor_parallel_size": (1, 2, 4, 8),
    "max_num_seqs": (8, 16, 32, 64, 128, 256, 512, 1024),
    "max_num_batched_tokens": (512, 1024, 2048, 4096, 8192, 16384, 32768, 65536),
    "gpu_memory_utilization": (0.6, 0.75, 0.9, 0.95),
    "quantization": ("default", "fp8", "int8"),
    "speculative": ("default", "ngram"),
}
DRAFTS = (2, 3, 4)
"""Of `num_speculative_tokens`, which exists with a draft only: 12,288 deployments in all."""
WINDOW = 200
"""Trials of which the cost is told at each stage."""


@dataclass
class Watch:
    """Listens to a study and takes its times.

    Attributes:
        decide_ms, launch_ms, show_ms: a trial each, see the module.
        cpu_s: processor seconds of this process until each trial was shown.
        resident_mib: after each trial that is a multiple of `WINDOW`, by its number.
    """

    decide_ms: list[float] = field(default_factory=list)
    launch_ms: list[float] = field(default_factory=list)
    show_ms: list[float] = field(default_factory=list)
    cpu_s: list[float] = field(default_factory=list)
    resident_mib: dict[int, float] = field(default_factory=dict)
    _since: float = field(default_factory=time.perf_counter)
    _process: psutil.Process = field(default_factory=psutil.Process)

    def __call__(self, event: Event) -> None:
        now = time.perf_counter()
        match event:
            case TrialStarted():
                self.decide_ms.append((now - self._since) * 1000)
            case TrialEnded():
                kept = self.launch_ms if event.outcome.launched else self.decide_ms
                kept.append((now - self._since) * 1000)
            case StudyProgress():
                self.show_ms.append((now - self._since) * 1000)
                self.cpu_s.append(time.process_time())
                if len(self.show_ms) % WINDOW == 0:
                    self.resident_mib[len(self.show_ms)] = self._process.memory_info().rss / 2**20
            case _:
                return
        self._since = time.perf_counter()

    def stage(self, end: int) -> dict[str, float]:
        """Medians of the `WINDOW` trials before `end`, ms, and the memory there, MiB."""
        parts = {
            name: statistics.median(getattr(self, name)[max(0, end - WINDOW) : end] or [math.nan])
            for name in ("decide_ms", "launch_ms", "show_ms")
        }
        begin = max(0, end - WINDOW)
        cpu_ms = (self.cpu_s[end - 1] - self.cpu_s[begin]) * 1000 / max(1, end - 1 - begin)
        return {
            "trials": end,
            **{name: round(value, 2) for name, value in parts.items()},
            "trial_ms": round(sum(parts.values()), 2),
            "cpu_ms": round(cpu_ms, 2),
            "resident_mib": round(self.resident_mib.get(end, math.nan), 1),
        }


def write_table(path: Path, deployments: int | None = None) -> None:
    """A made-up table: throughput with a saturating batch, and a corner that does not fit.

    Args:
        path: ``*.jsonl.gz`` to write.
        deployments: how many of them; None writes all.
    """
    header = {"table": {"model": "made-up", "hardware": "made-up", "source": path.name}}
    with gzip.open(path, "wt", encoding="utf-8", compresslevel=1) as file:
        for line in itertools.chain([header], itertools.islice(_lines(), deployments)):
            file.write(json.dumps(line) + "\n")


def _lines() -> Iterator[dict[str, Any]]:
    for values in itertools.product(*VALUES.values()):
        raw = dict(zip(VALUES, values, strict=True))
        deployment = {name: value for name, value in raw.items() if value != "default"}
        drafts = DRAFTS if "speculative" in deployment else (None,)
        for draft in drafts:
            drafted = {} if draft is None else {"num_speculative_tokens": draft}
            yield _line({**deployment, **drafted})


def _line(deployment: dict[str, Any]) -> dict[str, Any]:
    seqs, tokens = deployment["max_num_seqs"], deployment["max_num_batched_tokens"]
    if seqs == 1024 and deployment["gpu_memory_utilization"] == 0.95:
        return {
            "deployment": deployment,
            "verdict": "CAPACITY",
            "cause": "out of device memory",
            "virtual_s": 60.0,
        }
    levels = [_level(deployment, streams, seqs, tokens) for streams in STREAMS]
    return {"deployment": deployment, "levels": levels, "virtual_s": 180.0}


def _level(deployment: dict[str, Any], streams: int, seqs: int, tokens: int) -> dict[str, Any]:
    devices = deployment["tensor_parallel_size"]
    batch = min(streams, seqs)
    step_ms = (8.0 + 0.05 * batch) / devices**0.7 + 4e4 / tokens**1.2
    step_ms *= {"fp8": 0.7, "int8": 0.8}.get(deployment.get("quantization", ""), 1.0)
    step_ms *= 1.0 - 0.05 * deployment.get("num_speculative_tokens", 0) + batch / 400
    e2e_ms = step_ms * 256 * math.ceil(streams / seqs)
    tokens_per_s = streams * 256 / e2e_ms * 1000
    return {
        "kind": CLOSED,
        "concurrency": streams,
        "virtual_s": 40.0,
        "n": 64,
        "metrics": {
            "output_tokens_per_s": tokens_per_s,
            "output_tokens_per_s_per_gpu": tokens_per_s / devices,
            "e2e_p95_ms": e2e_ms * 1.1,
            "ttft_p95_ms": 40.0 + e2e_ms / 50,
            "tpot_p95_ms": step_ms,
        },
    }


def run_study(table: Path, folder: Path, overrides: Sequence[str]) -> Watch:
    """Run a study of a table in this process, all of its search but nothing after it."""
    cfg = filled(
        compose(
            [
                "engine=replay",
                f"engine.table={table}",
                f"studies_dir={folder}",
                "tracking=none",
                "stop=none",
                *overrides,
            ]
        )
    )
    watch = Watch()
    setup = prepare(cfg, watch)
    paths = StudyPaths(folder, cfg.study or "scale")
    paths.create()
    with StudyLock(paths.lock):
        journal = Journal(paths.trials_jsonl, reserve=paths.reserve)
        tracker = MlflowTracker(cfg, paths, {}, paths.name)
        StudyRun(setup, paths, journal, tracker, watch).run()
    return watch


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--trials", type=int, default=10_000)
    parser.add_argument("--sampler", default="random")
    parser.add_argument("--deployments", type=int, default=None, help="of the table; default all")
    parser.add_argument("--json", type=Path, default=None, help="also write the figures there")
    asked = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="scale-") as folder:
        table = Path(folder) / "made-up.jsonl.gz"
        write_table(table, asked.deployments)
        started = time.perf_counter()
        watch = run_study(
            table,
            Path(folder) / "studies",
            [f"sampler={asked.sampler}", f"budget.launches={asked.trials}"],
        )
        spent_s = time.perf_counter() - started
    stages = [watch.stage(end) for end in _stages(len(watch.show_ms))]
    print(f"{machine()}; sampler={asked.sampler}; {spent_s:.0f} s for {len(watch.show_ms)} trials")
    print(_table(stages))
    if asked.json is not None:
        asked.json.write_text(json.dumps({"sampler": asked.sampler, "stages": stages}, indent=2))
    return 0


def _stages(trials: int) -> list[int]:
    """Multiples of `WINDOW` to show: doubling, and the last."""
    last = max(WINDOW, trials // WINDOW * WINDOW)
    doubling = itertools.takewhile(
        lambda end: end < last, (WINDOW * 2**k for k in itertools.count())
    )
    return [*doubling, last]


def _table(stages: Sequence[dict[str, float]]) -> str:
    names = list(stages[0])
    lines = [f"| {' | '.join(names)} |", "|" + "---|" * len(names)]
    lines += [f"| {' | '.join(f'{stage[name]:g}' for name in names)} |" for stage in stages]
    return "\n".join(lines)


if __name__ == "__main__":
    raise SystemExit(main())
