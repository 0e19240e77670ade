"""`status`: a study that runs elsewhere, one that does not, and the list of all."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sweeper.__main__ import main
from sweeper.config.schema import SweeperConfig
from sweeper.config.stored import study_text
from sweeper.tracking.bulletin import Bulletin
from sweeper.tracking.ending import Ending, note
from sweeper.tracking.journal import Journal
from sweeper.tracking.lock import StudyLock
from sweeper.tracking.paths import StudyPaths
from sweeper.trial.progress import PhaseChanged, TrialStarted
from sweeper.verbs import status
from tests.factories import study
from tests.verbs.conftest import MOCK, SPACE


@pytest.fixture
def paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StudyPaths:
    """A study with five trials, which nobody works on."""
    monkeypatch.chdir(tmp_path)
    return stored(StudyPaths(tmp_path / "studies", "mine"))


def stored(paths: StudyPaths) -> StudyPaths:
    paths.create()
    cfg = SweeperConfig(study=paths.name)
    paths.study_yaml.write_text(study_text(cfg, {"name": paths.name}))
    for item in study():
        Journal(paths.trials_jsonl).append(item)
    return paths


def told(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["status", *arguments]) == 0
    return capsys.readouterr().out


def told_json(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    return json.loads(told(capsys, *arguments, "format=json"))


@pytest.fixture
def running(paths: StudyPaths) -> Iterator[StudyPaths]:
    """The same with a tuner at work (this process), in the middle of a trial."""
    bulletin = Bulletin(paths.now_json)
    with StudyLock(paths.lock):
        bulletin.observe(TrialStarted(5, "search", {"max_num_seqs": 32}, 5, 20))
        bulletin.observe(PhaseChanged(5, "load", "concurrency 8"))
        yield paths


def test_a_running_study(running: StudyPaths, capsys: pytest.CaptureFixture[str]) -> None:
    text = " ".join(told(capsys, "study=mine").split())
    assert f"running: process {os.getpid()} on " in text
    assert "launch 6 of 20, trial 5 (search)" in text
    assert "load concurrency 8" in text
    assert "best so far: trial 1 at concurrency 32: 320.0 tokens/s" in text
    assert "No available memory for the cache blocks" in text


def test_a_terminal_that_lacks_characters(
    running: StudyPaths, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(content, encoding="ascii"))
    assert main(["status", "study=mine"]) == 0
    assert b"??????" in content.getvalue()


def test_the_same_for_programs(running: StudyPaths, capsys: pytest.CaptureFixture[str]) -> None:
    data = told_json(capsys, "study=mine")
    assert (data["state"], data["pid"]) == ("running", os.getpid())
    assert data["now"][0]["phase"] == "load"
    assert data["trials"] == {"OK": 3, "CAPACITY": 1, "INFEASIBLE_CONFIG": 1}
    assert data["progress"]["best"].startswith("trial 1")


def test_a_finished_study(paths: StudyPaths, capsys: pytest.CaptureFixture[str]) -> None:
    note(paths.ended_json, Ending("FINISHED", "budget used up"))
    assert told(capsys, "study=mine").startswith("ended: budget used up\n")
    assert told_json(capsys, "study=mine")["now"] == []


def test_all_studies(running: StudyPaths, capsys: pytest.CaptureFixture[str]) -> None:
    broken = stored(StudyPaths(running.studies_dir, "broken"))
    broken.trials_jsonl.write_text("{\n{}\n")
    text = told(capsys)
    assert "mine" in text
    assert "running on " in text
    assert "line 1 cannot be read" in " ".join(text.split())
    found = {one["study"]: one for one in told_json(capsys)}
    assert found["mine"]["state"] == "running"
    assert found["mine"]["fault"] is None
    assert found["broken"]["fault"] is not None


def test_no_study_yet(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert "no study" in told(capsys)
    assert told_json(capsys) == []


def test_watching_ends_with_the_study(
    paths: StudyPaths, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = []
    lock = StudyLock(paths.lock).__enter__()

    def wait(_: float) -> None:
        looks.append(1)
        if len(looks) == 2:
            lock.__exit__(None, None, None)
            note(paths.ended_json, Ending("FINISHED", "budget used up"))

    monkeypatch.setattr(status.time, "sleep", wait)
    text = told(capsys, "study=mine", "watch=true")
    assert text.count("best so far") == 3
    assert text.count("running: ") == 2
    assert "\x1b" not in text  # no terminal reads this


def test_watching_ends_by_hand(
    running: StudyPaths, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(_: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(status.time, "sleep", interrupted)
    assert "running: " in told(capsys, "study=mine", "watch=true")


def test_a_real_study_in_another_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It says what it is at while its server starts, and leaves no note of that when it ends."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "small.yaml").write_text(SPACE)
    command = [sys.executable, "-m", "sweeper", *MOCK, "study=far", "engine.options.start_s=600"]
    paths = StudyPaths(tmp_path / "studies", "far")
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as tuner:
        try:
            deadline = time.monotonic() + 120
            while not paths.now_json.exists() or "start" not in paths.now_json.read_text():
                assert time.monotonic() < deadline
                assert tuner.poll() is None
                time.sleep(0.05)
            text = told(capsys, "study=far")
        finally:
            tuner.send_signal(signal.SIGINT)
    assert f"running: process {tuner.pid} on " in text
    assert "launch 1 of 3, trial 0 (baseline)" in text
    assert "start, for " in text
    assert not paths.now_json.exists()
    assert told(capsys, "study=far").startswith("interrupted: ")
