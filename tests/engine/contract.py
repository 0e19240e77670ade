"""What every served engine keeps, whatever it runs: used by `test_contract` and by the docs' toy.

A case says how to make the engine and which deployments it starts, and dies of.
"""

from __future__ import annotations

import json
import os
import secrets
import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any, ClassVar

import pytest

from sweeper.config.schema import EngineConfig
from sweeper.engine.protocol import Engine, LaunchFailure, LaunchRequest, RunningServer
from sweeper.engine.registry import create
from sweeper.load.address import ServerAddress
from sweeper.load.drive import DriveOptions, run_level
from sweeper.load.level import LoadLevel
from sweeper.load.records import LevelRun
from sweeper.load.workload.item import WorkItem
from sweeper.verdicts import Diagnosis, Phase, Verdict
from tests.engine.conftest import living_with


@dataclass(frozen=True)
class Case:
    """One engine.

    Attributes:
        name: registered name.
        works: a deployment that starts, its flags told back by the server.
        dies: one that does not start.
        verdict: of that.
        options: `engine.options`.
    """

    name: str
    works: Mapping[str, Any]
    dies: Mapping[str, Any]
    verdict: Verdict
    options: Mapping[str, Any] = field(default_factory=dict)

    def engine(self, folder: Path) -> Engine:
        cfg = EngineConfig(name=self.name, options=dict(self.options), stop_timeout_s=2.0)
        return create(cfg, cache_dir=folder / "cache")


class Launches:
    """Launches of one case under a token of their own, by which what they leave is found."""

    def __init__(self, case: Case, folder: Path) -> None:
        self.case, self.folder = case, folder
        self.token = f"test-{secrets.token_hex(8)}"
        self.engine = case.engine(folder)

    @contextmanager
    def launch(self, parameters: Mapping[str, Any]) -> Iterator[RunningServer]:
        request = LaunchRequest(
            model_path="some-model",
            parameters=dict(parameters),
            run_dir=self.folder / "run",
            served_name="trial-7",
            start_timeout_s=30.0,
            token=self.token,
            record_path=self.folder / "launch.json",
        )
        with self.engine.serve(request) as server:
            yield server

    def left(self) -> list[str]:
        """What is there and should not be: living processes, and the record of the launch."""
        found = [f"process {pid}" for pid in living_with(self.token)]
        record = self.folder / "launch.json"
        return [*found, *([str(record)] if record.exists() else [])]

    def end(self) -> None:
        for pid in living_with(self.token):
            os.kill(pid, signal.SIGKILL)


class Sentences:
    """Requests as they are sent to a server that does not tokenize."""

    exact = False
    shares_prefix = False
    conditions: ClassVar[dict[str, object]] = {"kind": "sentences"}

    def items(self, stream: str) -> Iterator[WorkItem]:
        return (WorkItem(f"{stream} sentence number {n}", 5) for n in count())


def driven(server: RunningServer) -> LevelRun:
    """Two streams of our own client, four requests of five tokens."""
    options = DriveOptions(request_timeout_s=20.0, level_timeout_s=60.0)
    level = LoadLevel("closed", 4, concurrency=2)
    return run_level(
        ServerAddress.of(server), level, Sentences(), stream="contract", options=options
    )


def facts_are_cheap_and_the_same(launches: Launches) -> None:
    facts = launches.engine.facts()
    assert facts == launches.engine.facts() == launches.case.engine(launches.folder).facts()
    assert facts.name == launches.engine.name == launches.case.name
    assert facts.version and facts.device in {"cpu", "cuda", "remote"}
    assert launches.engine.kind == "served"
    assert launches.engine.predicted == facts.predicted
    assert not launches.engine.check_flags([], None).refusals


def it_answers_our_client_and_leaves_nothing(launches: Launches) -> None:
    with launches.launch(launches.case.works) as server:
        assert server.is_alive() and server.exit_code() is None and server.pid > 0
        run = driven(server)
        assert [record.output_tokens for record in run.records] == [5] * 4, run.records
        assert all(record.first_token_s is not None for record in run.records)
        assert launches.left()
        for name, value in launches.case.works.items():
            told = server.effective_args.get(name.removeprefix("flag."))
            assert told in (None, value), f"{name}: asked {value}, told {told}"
        assert server.log_path.read_text().strip()
        note = json.loads((launches.folder / "run/argv.json").read_text())
        assert note["argv"] == list(server.argv)
        for path in (launches.folder / "run").rglob("*"):
            if path.is_file() and server.api_key:
                assert server.api_key not in path.read_text(errors="replace"), path
    assert not launches.left() and not server.is_alive()


def one_that_does_not_start_is_explained(launches: Launches) -> None:
    with pytest.raises(LaunchFailure) as caught, launches.launch(launches.case.dies):
        pytest.fail("it started")
    found = caught.value.diagnosis
    assert (found.verdict, found.phase) == (launches.case.verdict, Phase.START)
    assert found.cause and found.remedy and found.evidence
    assert caught.value.halt is None and not launches.left()


def an_interruption_stops_the_server(launches: Launches) -> None:
    with pytest.raises(KeyboardInterrupt), launches.launch(launches.case.works):
        raise KeyboardInterrupt
    assert not launches.left()


def it_can_be_started_again(launches: Launches) -> None:
    ports = set()
    for _ in range(2):
        with launches.launch(launches.case.works) as server:
            ports.add(server.base_url)
    assert all(port.startswith("http://127.0.0.1:") for port in ports)
    assert not launches.left()


def any_log_is_explained(launches: Launches) -> None:
    for text in ("", "\x00\xff\n" * 50, "a" * 100_000, "ValueError: no such thing\n", "Ω" * 300):
        for phase in (Phase.START, Phase.LOAD):
            found = launches.engine.diagnose(text, phase, 1)
            assert isinstance(found, Diagnosis) and found.phase is phase
            assert found.verdict is not Verdict.OK and found.cause


def a_deployment_is_told_for_starting_by_hand(launches: Launches) -> None:
    flags, env = launches.engine.start_command(
        {**launches.case.works, "env.OMP_NUM_THREADS": "2"}, "some-model"
    )
    assert env["OMP_NUM_THREADS"] == "2" and "OMP_NUM_THREADS" not in flags
    for name, value in launches.case.works.items():
        assert flags[name.removeprefix("flag.")] == value


CONTRACT: tuple[Callable[[Launches], None], ...] = (
    facts_are_cheap_and_the_same,
    it_answers_our_client_and_leaves_nothing,
    one_that_does_not_start_is_explained,
    an_interruption_stops_the_server,
    it_can_be_started_again,
    any_log_is_explained,
    a_deployment_is_told_for_starting_by_hand,
)
