"""Chaos: studies on the mock with random faults, whose tuner is killed at random moments.

    python -m tests.chaos.run [--launches 200] [--seed 1] [--studies 4] [--folder FOLDER]

Two studies run at a time, in one folder with one MLflow database. Each is run again until its
budget is used. Then everything is checked by name. The seed decides faults, deployments and the
moments of the strikes; what a strike hits depends on the machine. Exit code 1 if a check fails.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from sweeper.engine.mock.fault import read_fault
from tests.chaos.checks import AT_ONCE, Problems, all_checks
from tests.chaos.study import SPACE, ChaosStudy
from tests.chaos.tuner import Record, run_study


@dataclass(frozen=True)
class Chaos:
    """A chaos run that has ended.

    Attributes:
        seed: it was drawn from.
        studies: with what they left.
        records: what happened, one a study.
        problems: by the check's name; an empty list is a check that holds.
        seconds: of studies, and of studies with checks.
    """

    seed: int
    studies: list[ChaosStudy]
    records: list[Record]
    problems: dict[str, Problems]
    seconds: tuple[float, float]

    @property
    def launches(self) -> int:
        return sum(len(study.started()) for study in self.studies)

    def summary(self) -> str:
        """What was done to the studies, and what came of it."""
        strikes: Counter[str] = sum((record.strikes for record in self.records), Counter())
        exits = Counter(code for record in self.records for code in record.exits)
        verdicts = Counter(
            f"{outcome['verdict']} in {outcome['phase']}"
            for study in self.studies
            for outcome in study.outcomes()
        )
        lines = [
            f"chaos, seed {self.seed}: {self.launches} launches in {len(self.studies)} studies, "
            f"{sum(exits.values())} runs of the tuner, {self.seconds[0]:.0f} s "
            f"and {self.seconds[1] - self.seconds[0]:.0f} s of checks",
            f"strikes: {_told(strikes)}; syncs killed: {sum(r.sync_kills for r in self.records)}",
            f"exit codes: {_told(exits)}",
            f"faults: {_told(faults_struck(self.studies))}",
            f"outcomes: {_told(verdicts)}",
        ]
        for name, problems in self.problems.items():
            lines.append(f"{'ok  ' if not problems else 'FAIL'} {name}")
            lines += [f"       {problem}" for problem in problems]
        return "\n".join(lines)


def run_chaos(launches: int, seed: int, count: int, folder: Path) -> Chaos:
    """Run studies to their end through all that happens, and check what they left.

    Args:
        launches: of all studies together, at least.
        seed: of everything that is drawn.
        count: of studies.
        folder: an empty one; it is kept.
    """
    (folder / "chaos.yaml").write_text(SPACE)
    for name in ("tmp", "runtime"):
        (folder / name).mkdir(mode=0o700)
    each = -(-launches // count)
    studies = [
        ChaosStudy(f"chaos-{place}", folder, each, seed * 1000 + place, judged=place == 0)
        for place in range(count)
    ]
    os.environ.setdefault("MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR", "false")
    started = time.monotonic()
    with ThreadPoolExecutor(AT_ONCE) as pool:
        rngs = [random.Random(study.seed) for study in studies]
        records = list(pool.map(run_study, studies, rngs))
    ran_s = time.monotonic() - started
    problems = all_checks(studies, records)
    return Chaos(seed, studies, records, problems, (ran_s, time.monotonic() - started))


def faults_struck(studies: Sequence[ChaosStudy]) -> Counter[str]:
    """How often each fault was drawn by a launch."""
    struck: Counter[str] = Counter()
    for study in studies:
        faults = {name: read_fault(fault) for name, fault in study.faults.items()}
        for outcome in study.outcomes():
            launch = f"trial-{outcome['number']}-{outcome['attempt']}"
            deployment = outcome["deployment"]
            struck.update(n for n, f in faults.items() if f.strikes(deployment, launch))
    return struck


def _told(counts: Counter[str] | Counter[int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in sorted(counts.items(), key=str)) or "none"


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--launches", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--studies", type=int, default=4)
    parser.add_argument("--folder", type=Path, help="kept; without it a temporary one is used")
    args = parser.parse_args(argv)
    with tempfile.TemporaryDirectory(prefix="chaos-") as temporary:
        folder = args.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        chaos = run_chaos(args.launches, args.seed, args.studies, folder.resolve())
        print(chaos.summary())
    return 1 if any(chaos.problems.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
