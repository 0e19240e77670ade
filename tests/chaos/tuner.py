"""Runs of the tuner, each of which may be struck at a random moment by a random signal."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from sweeper.engine import procfs
from sweeper.engine.procfs import Identity
from tests.chaos.study import ChaosStudy

ROOT = Path(__file__).resolve().parent.parent.parent
PATIENCE_S = 240.0
"""One run of the tuner; a healthy one takes a small part of it."""
MAX_RUNS = 60
POLL_S = 0.01
SYNC_SHARE = 0.08
"""Runs before which a `sync` is killed."""
UNTRACKED_SHARE = 0.4
"""Runs without MLflow, which a later run or `sync` makes up for."""

SIGNALS = {signal.SIGKILL: 0.75, signal.SIGTERM: 0.1, signal.SIGINT: 0.08, signal.SIGHUP: 0.07}
MOMENTS = {"launch": 0.5, "journal": 0.25, "early": 0.15, "server": 0.1}
EXITS = {0, 1, 130, -signal.SIGKILL, -signal.SIGTERM, -signal.SIGINT, -signal.SIGHUP}
"""A signal that comes before the tuner has made its handlers ends it as it ends any program."""


@dataclass(frozen=True)
class Strike:
    """When and how a run is struck.

    Attributes:
        moment: `launch` and `journal` count from the nth launch or journal line of this run,
            `early` from its start (imports, resuming, the sync with MLflow); `server` kills the
            server of the nth launch instead of the tuner.
        nth: of launches or journal lines.
        delay_s: from then on.
        number: the signal.
    """

    moment: str
    nth: int
    delay_s: float
    number: signal.Signals

    @classmethod
    def draw(cls, rng: random.Random) -> Strike:
        moment = rng.choices(list(MOMENTS), list(MOMENTS.values()))[0]
        longest_s = {"launch": 1.5, "journal": 0.3, "early": 6.0, "server": 1.0}[moment]
        number = rng.choices(list(SIGNALS), list(SIGNALS.values()))[0]
        return cls(moment, rng.randint(1, 11), rng.uniform(0.0, longest_s), number)


@dataclass
class Record:
    """What happened in all runs of one study.

    Attributes:
        exits: exit codes of the tuner's runs, in order.
        strikes: strikes that hit, by moment and signal.
        repeated: launches of what an earlier run had journalled, as text.
        errors: what a run wrote that was no expected end.
        sync_kills: runs of `sync` that were killed.
    """

    exits: list[int] = field(default_factory=list)
    strikes: Counter[str] = field(default_factory=Counter)
    repeated: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    sync_kills: int = 0


def run_study(study: ChaosStudy, rng: random.Random) -> Record:
    """Run a study again and again until its budget is used."""
    record = Record()
    for _ in range(MAX_RUNS):
        if rng.random() < SYNC_SHARE and study.journal.exists():
            _kill_a_sync(study, rng.uniform(1.5, 5.0), record)
        tracking = ["tracking=none"] if rng.random() < UNTRACKED_SHARE else []
        before = study.outcomes()
        launches = len(study.started())
        exit_code, was_struck = _run(study, tracking, rng, record)
        record.exits.append(exit_code)
        _note_repeats(study, before, launches, record)
        done = sum(outcome["launched"] for outcome in study.outcomes()) >= study.launches
        if done and exit_code == 0 and not was_struck:
            return record
        if exit_code == 0 and not done:
            record.errors.append(f"{study.name}: run {len(record.exits) - 1} ended with 0, undone")
    record.errors.append(f"{study.name}: not done after {MAX_RUNS} runs of the tuner")
    return record


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "sweeper", *arguments]


def environment(folder: Path) -> dict[str, str]:
    """The tuner's: this checkout's code, and a folder of its own for temporary files."""
    return {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "TMPDIR": str(folder / "tmp"),
        "SWEEPER_RUNTIME_DIR": str(folder / "runtime"),
        "CHAOS": str(folder),
    }


def _run(
    study: ChaosStudy, tracking: list[str], rng: random.Random, record: Record
) -> tuple[int, bool]:
    """One run of the tuner: its exit code, and whether it was struck before it ended."""
    log_path = study.folder / f"{study.name}.{len(record.exits)}.log"
    with log_path.open("wb") as log:
        tuner = subprocess.Popen(
            command(*study.arguments(), *tracking),
            cwd=study.folder,
            env=environment(study.folder),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            # Whoever runs this under nohup passes on that SIGHUP is ignored.
            preexec_fn=_heed_signals,  # noqa: PLW1509
        )
        was_struck = _strike(tuner, study, rng, record)
        try:
            exit_code = tuner.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            record.errors.append(f"{study.name}: the tuner hung, see {log_path.name}")
            tuner.kill()
            exit_code = tuner.wait()
    text = log_path.read_text(errors="replace")
    if exit_code not in EXITS or has_traceback(text):
        record.errors.append(f"{study.name}: exit code {exit_code}: {text[-2000:]}")
    return exit_code, was_struck


def has_traceback(text: str) -> bool:
    """Whether a run was ended by a bug.

    A signal that comes while an object is finalised is printed by Python as ignored; the tuner
    heeds it all the same, a moment later.
    """
    lines = text.splitlines()
    before = zip(["", *lines], lines, strict=False)
    return any(
        line.startswith("Traceback") and not last.startswith("Exception ignored in")
        for last, line in before
    )


def _heed_signals() -> None:
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)


def _strike(
    tuner: subprocess.Popen[bytes], study: ChaosStudy, rng: random.Random, record: Record
) -> bool:
    """Strike once, servers as often as drawn before; False if the tuner ended unstruck."""
    while True:
        strike = Strike.draw(rng)
        if not _until(tuner, study, strike):
            return False
        if strike.moment == "server":
            record.strikes["server SIGKILL"] += _kill_server(study)
            continue
        tuner.send_signal(strike.number)
        record.strikes[f"{strike.moment} {strike.number.name}"] += 1
        return True


def _until(tuner: subprocess.Popen[bytes], study: ChaosStudy, strike: Strike) -> bool:
    """Wait for the moment of a strike; False if the tuner ended before, or hangs."""
    counts: dict[str, Callable[[], int]] = {
        "journal": lambda: len(study.outcomes()),
        "early": lambda: strike.nth,
    }
    count = counts.get(strike.moment, lambda: len(study.names()))
    wanted = strike.nth if strike.moment == "early" else count() + strike.nth
    moment_s: float | None = None
    deadline = time.monotonic() + PATIENCE_S
    while tuner.poll() is None and time.monotonic() < deadline:
        now_s = time.monotonic()
        if moment_s is None and count() >= wanted:
            moment_s = now_s + strike.delay_s
        if moment_s is not None and now_s >= moment_s:
            return True
        time.sleep(POLL_S)
    return False


def _kill_server(study: ChaosStudy) -> bool:
    """Kill the server of the running launch, as a host out of memory does."""
    try:
        note = json.loads((study.root / "launch.json").read_text())
        leader = Identity(*note["leader"])
        if not procfs.is_living(leader):
            return False
        os.kill(leader.pid, signal.SIGKILL)
    except (OSError, ValueError, KeyError, TypeError):
        return False  # it has none now
    return True


def _kill_a_sync(study: ChaosStudy, after_s: float, record: Record) -> None:
    sync = subprocess.Popen(
        command("sync", f"study={study.name}", f"studies_dir={study.folder / 'studies'}"),
        cwd=study.folder,
        env=environment(study.folder),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        sync.wait(after_s)
    except subprocess.TimeoutExpired:
        sync.kill()
        sync.wait()
        record.sync_kills += 1


def _note_repeats(
    study: ChaosStudy, before: list[dict[str, object]], launches: int, record: Record
) -> None:
    """Hold the launches of the last run against what was journalled before it began.

    The first of them may be a server of the run before, which noted its start after its tuner was
    killed; that was not journalled either.
    """
    finished = {(outcome["number"], outcome["attempt"]) for outcome in before}
    record.repeated += [
        f"{study.name}: {launch} was journalled and launched again"
        for launch in study.started()[launches:]
        if launch in finished
    ]
