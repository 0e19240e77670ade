"""One launch with something wrong, and a watch on what it leaves behind."""

from __future__ import annotations

import json
import os
import secrets
import signal
import socket
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest

from sweeper.config.schema import EngineConfig, LoadConfig, QualityConfig, WorkloadConfig
from sweeper.engine import procfs
from sweeper.engine.ports import LOOPBACK
from sweeper.engine.registry import create
from sweeper.engine.served import ServedEngine
from sweeper.load import prompts
from sweeper.trial import vital
from sweeper.trial.outcome import TrialOutcome
from sweeper.trial.plan import TrialPlan
from sweeper.trial.progress import Listener, silent
from sweeper.trial.run import TrialResult, run_trial

WITHIN_S = 30.0
"""Far above what any of these launches takes, and far below every deadline that is not dialled."""

KEPT = {"argv.json", "mock.json", "server.log", "requests.parquet", "error.txt", "quantize.log"}
"""What a launch may leave in its folder."""

DIALS: dict[str, Any] = {"start_s": 0.0, "compile_s": 0.0, "time_scale": 2.0}


@dataclass(frozen=True)
class Ended:
    """A launch that has ended.

    Attributes:
        result: what it left.
        folder: of the test; the launch's own is ``run``.
        seconds: how long it took.
    """

    result: TrialResult
    folder: Path
    seconds: float

    @property
    def outcome(self) -> TrialOutcome:
        return self.result.outcome

    @property
    def log(self) -> bytes:
        """What its last server wrote."""
        return (self.folder / "run" / "server.log").read_bytes()

    @property
    def port(self) -> int:
        """The port of its last server."""
        argv = json.loads((self.folder / "run" / "argv.json").read_text())["argv"]
        return int(argv[argv.index("--port") + 1])


class Bench:
    """Runs launches of one test, all under one token."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.token = f"test-{secrets.token_hex(8)}"

    def plan(self, **changes: Any) -> TrialPlan:
        """A small baseline that writes the reference; `changes` are fields of the plan."""
        fields: dict[str, Any] = {
            "number": 0,
            "kind": "baseline",
            "attempt": 1,
            "deployment": {},
            "deployment_hash": "h",
            "checkpoint": "mock",
            "engine_parameters": {},
            "run_dir": self.folder / "run",
            "record_path": self.folder / "launch.json",
            "token": self.token,
            "start_timeout_s": 20,
            "workload": WorkloadConfig(input_tokens=8, output_tokens=8),
            "load": LoadConfig(
                concurrency=[1, 2],
                requests_per_stream=2,
                min_requests=4,
                request_timeout_s=1,
                level_timeout_s=5,
                gauges_every_s=0.05,
            ),
            "quality": QualityConfig(reference_tokens=4, max_prompts=2, request_timeout_s=1),
            "device_count": 1,
            "seed": 1,
            "quality_key": "k",
            "may_write_reference": True,
        }
        return TrialPlan(**{**fields, **changes})

    def run(
        self,
        *faults: dict[str, Any],
        dials: dict[str, Any] | None = None,
        pick_port: Callable[[], int] | None = None,
        listener: Listener = silent,
        memory_patience_s: float = 60.0,
        may_leave: bool = False,
        within_s: float = WITHIN_S,
        **changes: Any,
    ) -> Ended:
        """Launch once, and hold the launch to leaving nothing and ending in time.

        Args:
            faults: of the mock.
            dials: further options of it.
            pick_port: instead of a free port.
            listener: of the trial.
            memory_patience_s: of the engine.
            may_leave: its note may stay, because it is to look as if a process did.
            within_s: it must have ended in.
            changes: of the plan.
        """
        options = {**DIALS, **(dials or {}), "faults": list(faults)}
        engine = create(
            EngineConfig(
                name="mock",
                options=options,
                stop_timeout_s=0.5,
                memory_patience_s=memory_patience_s,
            ),
            cache_dir=self.folder / "cache",
        )
        assert isinstance(engine, ServedEngine)
        if pick_port is not None:
            engine.pick_port = pick_port
        plan = self.plan(**changes)
        plan.run_dir.mkdir(exist_ok=True, parents=True)
        started = time.monotonic()
        ended = Ended(run_trial(plan, engine, listener), self.folder, 0.0)
        seconds = time.monotonic() - started
        assert seconds < within_s
        assert self.left() == {}
        assert may_leave or not (self.folder / "launch.json").exists()
        assert {path.name for path in plan.run_dir.iterdir()} <= KEPT
        assert not list(self.folder.rglob(".*")), "a temporary file is left"
        return Ended(ended.result, self.folder, seconds)

    def left(self) -> dict[int, str]:
        """Living processes of this test: those with its token, and those with its mark."""
        mark = self.token[-8:]
        found = {}
        for pid, process in procfs.table().items():
            if process.is_zombie or pid == os.getpid():
                continue
            command = _command(pid)
            if procfs.launch_token(pid) == self.token or mark in command:
                found[pid] = command
        return found

    def clear(self) -> None:
        for pid in self.left():
            os.kill(pid, signal.SIGKILL)


def _command(pid: int) -> str:
    try:
        return " ".join(psutil.Process(pid).cmdline())
    except psutil.Error:
        return ""


def is_listening(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex((LOOPBACK, port)) == 0


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    """Patience is dialled down: a dead engine is as dead after one second as after sixty."""
    monkeypatch.setattr(vital, "ANSWER_TIMEOUT_S", 1.0)
    monkeypatch.setattr(vital, "DYING_S", 0.5)
    monkeypatch.setattr(prompts, "_TOKENIZE_TIMEOUT_S", 1.0)
    bench = Bench(tmp_path)
    yield bench
    bench.clear()
