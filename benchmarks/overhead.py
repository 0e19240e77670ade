"""What a clean trial costs beside the engine's own start, load and stop.

    python -m benchmarks.overhead --launches 12
    python -m benchmarks.overhead --launches 3 quality=none     # the default study: a real engine

A study runs as a user runs it, MLflow included. A launch lasts from its announcement to that of the
next one, so that everything in between counts: asking the sampler, arithmetic, waiting for memory,
checking the port, reading the log, the journal, MLflow. From that are taken

    ready   process started → first completion answered      (the engine's own start)
    load    warm-up and levels as they were driven, and quality
    stop    TERM sent → process gone, of the same command started and stopped bare (its own stop)

What is left is ours. Bare starts and stops are made after the study, of the commands it noted.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from benchmarks.processes import REPOSITORY, end_on_sigterm, get_text, machine

MOCK = (
    "model.path=none/none",
    "engine=mock",
    "hardware=a100_80gb",
    "space=none",
    "space.parameters.max_num_seqs=[8,12,16,24,32,48,64,96,128,192,256,384,512,768,1024]",
    "sampler=random",
    "quality=agreement_quick",
    "load=quick",
    "workload=short",
)
_BARE = 3
_ANNOUNCED = ": start"
_POLL_S = 0.02


@dataclass(frozen=True)
class Launch:
    """One launch in parts, in seconds.

    Attributes:
        period: from its announcement to the next one's.
        ready, load: see the module.
        before, stop, between: where the rest lies: in the phase `start` before the process ran, in
            the phase `stop` (the engine's own part included), and outside the trial.
    """

    period: float
    ready: float
    load: float
    before: float
    stop: float
    between: float

    def ours(self, own_stop: float) -> float:
        """Seconds beside the engine's own start, load and stop."""
        return self.period - self.ready - self.load - own_stop


def main(arguments: Sequence[str] | None = None) -> int:
    """Run, print a table; 1 if the median is a second or more."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--launches", type=int, default=12)
    parser.add_argument("--json", type=Path)
    parser.add_argument("settings", nargs="*", help="of the study, in the place of the mock's")
    asked = parser.parse_args(arguments)
    end_on_sigterm()
    settings = asked.settings or list(MOCK)
    with tempfile.TemporaryDirectory(prefix="overhead-") as folder:
        announced = run_study(Path(folder), [*settings, f"budget.launches={asked.launches}"])
        study = Path(folder) / "studies" / "overhead"
        launches = read_launches(study, announced)
        stops = [bare_stop(path) for path in sorted(study.glob("trials/*/argv.json"))[:_BARE]]
    own_stop = statistics.median(stops)
    ours = sorted(launch.ours(own_stop) for launch in launches)
    print(table(launches, own_stop))
    print(f"{machine()}, Python {sys.version.split()[0]}, {time.strftime('%Y-%m-%d')}")
    print(f"median {statistics.median(ours):.2f} s a launch, worst {ours[-1]:.2f} s")
    if asked.json:
        data = {"ours_s": ours, "own_stop_s": own_stop, "launches": [vars(x) for x in launches]}
        asked.json.write_text(json.dumps(data, indent=1) + "\n")
    return int(statistics.median(ours) >= 1.0)


def run_study(folder: Path, settings: Sequence[str]) -> list[float]:
    """Times at which launches were announced, and that of the study's last line.

    Raises:
        SystemExit: the study failed; what it said is shown.
    """
    command = [sys.executable, "-u", "-m", "sweeper", "study=overhead", *settings]
    env = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    times, said = [], []
    with subprocess.Popen(
        command, cwd=folder, env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            said.append(line)
            if line.rstrip().endswith(_ANNOUNCED) or "budget of" in line:
                times.append(time.monotonic())
    if process.returncode:
        raise SystemExit("".join(said))
    return times


def read_launches(study: Path, announced: Sequence[float]) -> list[Launch]:
    """The journal's timings beside the times of announcement; all launches must be clean.

    Raises:
        SystemExit: a trial was not OK, so that its time says nothing.
    """
    lines = (study / "trials.jsonl").read_text().splitlines()
    trials = [json.loads(line) for line in lines]
    if unclean := [trial for trial in trials if trial["verdict"] != "OK"]:
        told = "\n".join(f"trial {x['number']}: {x['verdict']}: {x['cause']}" for x in unclean)
        raise SystemExit(f"a trial that is not clean has no overhead to tell of:\n{told}")
    periods = [after - before for before, after in pairwise(announced)]
    return [_launch(trial, period) for trial, period in zip(trials, periods, strict=True)]


def _launch(trial: dict[str, Any], period: float) -> Launch:
    timings = trial["timings_s"]
    driven = sum(timings.get(phase, 0.0) for phase in ("warmup", "load", "quality"))
    return Launch(
        period=period,
        ready=timings["ready"],
        load=driven,
        before=timings["start"] - timings["ready"],
        stop=timings["stop"],
        between=period - timings["total"],
    )


def bare_stop(noted: Path) -> float:
    """Start a noted command without the tuner, wait until it answers, and time its end."""
    note = json.loads(noted.read_text())
    argv = note["argv"]
    env = {**os.environ, **note["env"]}
    with subprocess.Popen(
        argv, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    ) as process:
        try:
            _wait_healthy(f"http://127.0.0.1:{argv[argv.index('--port') + 1]}/health")
            started = time.monotonic()
            process.send_signal(signal.SIGTERM)
            process.wait(timeout=120)
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            raise
    return time.monotonic() - started


def _wait_healthy(url: str) -> None:
    deadline = time.monotonic() + 600
    while True:
        try:
            get_text(url)
            return
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(_POLL_S)


def table(launches: Sequence[Launch], own_stop: float) -> str:
    """One line a launch, in Markdown."""
    head = "| launch | whole s | start | load | own stop | ours | before start | stop | between |"
    rows = [
        f"| {n} | {x.period:.2f} | {x.ready:.2f} | {x.load:.2f} | {own_stop:.2f} "
        f"| {x.ours(own_stop):.2f} | {x.before:.2f} | {x.stop:.2f} | {x.between:.2f} |"
        for n, x in enumerate(launches)
    ]
    return "\n".join([head, "|" + "---:|" * 9, *rows])


if __name__ == "__main__":
    sys.exit(main())
