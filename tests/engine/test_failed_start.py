"""Why a server did not become ready, from values; and a cache that is wiped once."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from sweeper.config.schema import EngineConfig
from sweeper.engine import failed_start
from sweeper.engine.compile_cache import MARKER, prepare
from sweeper.engine.diagnosis import NO_CAUSE
from sweeper.engine.failed_start import cache_is_to_blame, explain_start, with_surroundings
from sweeper.engine.mock.engine import MockEngine
from sweeper.engine.occupancy import Occupancy
from sweeper.engine.protocol import LaunchFailure, LaunchRequest, RunningServer
from sweeper.engine.readiness import Readiness, State
from sweeper.verdicts import Diagnosis, Phase, Verdict
from tests.engine.conftest import Bench
from tests.engine.test_compile_cache import READING

UNKNOWN = Diagnosis(Verdict.UNKNOWN, Phase.START, NO_CAUSE, "read the log")
KNOWN = Diagnosis(Verdict.CAPACITY, Phase.START, "too large", "smaller", learnt={"rule": "x"})


def explained(state: State, known: Diagnosis, phase: Phase = Phase.START) -> Diagnosis:
    outcome = Readiness(state, phase, 5.0, "what was seen")
    return explain_start(lambda *_: known, outcome, "first\nlast\n", 9.0)


@pytest.mark.parametrize("state", [State.TIMED_OUT, State.STALLED, State.REFUSED, State.DIED])
def test_a_cause_that_the_log_names_comes_before_how_it_showed(state: State) -> None:
    assert explained(state, KNOWN).verdict is Verdict.CAPACITY


@pytest.mark.parametrize(
    ("state", "rule", "words"),
    [
        (State.TIMED_OUT, "not_ready_in_time", "not ready after 9 s: what was seen"),
        (State.STALLED, "start_stalled", "the start hangs: what was seen"),
    ],
)
def test_a_start_that_is_late_tells_the_last_line(state: State, rule: str, words: str) -> None:
    found = explained(state, UNKNOWN)
    assert found.verdict is Verdict.STARTUP_TIMEOUT
    assert found.learnt == {"rule": rule, "last_log_line": "last"}
    assert found.cause == f"{words}; last line of the log: last"


def test_a_healthy_server_that_refuses_is_a_crash() -> None:
    found = explained(State.REFUSED, UNKNOWN, Phase.WARMUP)
    assert (found.verdict, found.cause) == (Verdict.CRASH_UNDER_LOAD, "what was seen")


def test_a_full_disk_explains_a_log_without_an_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "server.log"
    assert with_surroundings(UNKNOWN, log) == UNKNOWN
    assert with_surroundings(UNKNOWN, tmp_path / "none" / "log") == UNKNOWN
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(failed_start.shutil, "disk_usage", lambda _: usage._replace(free=4096))
    found = with_surroundings(UNKNOWN, log)
    assert (found.verdict, found.learnt["rule"]) == (Verdict.INFRA, "disk_full")
    assert NO_CAUSE in found.cause
    assert with_surroundings(KNOWN, log) == KNOWN, "what is known stays"


def test_who_is_to_blame_for_a_damaged_cache() -> None:
    told = Diagnosis(Verdict.INFRA, Phase.START, "", "", learnt={"rule": failed_start.CACHE_RULE})
    assert cache_is_to_blame(told, "")
    assert cache_is_to_blame(UNKNOWN, READING)
    assert not cache_is_to_blame(UNKNOWN, "")
    assert not cache_is_to_blame(KNOWN, READING)


class Caching(MockEngine):
    """A mock that dies while its cache holds a damaged artefact."""

    launches = 0
    folder: Path

    def compile_cache(self) -> Path | None:
        return self.folder

    @contextmanager
    def launch(self, request: LaunchRequest, place: Occupancy) -> Iterator[RunningServer]:
        self.launches += 1
        request.run_dir.mkdir(parents=True, exist_ok=True)
        if (self.folder / "damaged").exists():
            (request.run_dir / "server.log").write_text(READING)
            raise LaunchFailure(UNKNOWN)
        with super().launch(request, place) as server:
            yield server


def caching(bench: Bench, folder: Path, **options: Any) -> Caching:
    cfg = EngineConfig(name="mock", options=options, stop_timeout_s=1.0)
    made = Caching(cfg, cache_dir=bench.folder / "cache")
    made.folder = folder
    return made


def test_a_damaged_cache_is_wiped_and_the_start_tried_once_more(bench: Bench) -> None:
    folder = prepare(bench.folder / "cache" / "vllm" / "cpu")
    (folder / "damaged").touch()
    engine, notes = caching(bench, folder), list[str]()
    with engine.serve(bench.request(tell=notes.append)) as server:
        assert server.is_alive()
    assert engine.launches == 2
    assert [entry.name for entry in folder.iterdir()] == [MARKER]
    assert "wiped" in notes[0]
    assert (bench.folder / "run" / "server-damaged-cache.log").read_text() == READING


def test_a_cache_that_may_not_be_wiped_fails_the_start_and_says_why(bench: Bench) -> None:
    folder = bench.folder / "cache" / "vllm" / "cpu"
    folder.mkdir(parents=True)
    (folder / "damaged").touch()
    engine, notes = caching(bench, folder), list[str]()
    with (
        pytest.raises(LaunchFailure),
        engine.serve(bench.request(tell=notes.append)),
    ):
        pass
    assert engine.launches == 1
    assert (folder / "damaged").exists()
    assert "was not made by sweeper" in notes[0]
