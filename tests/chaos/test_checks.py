"""A check that cannot fail proves nothing: each is shown what it must find."""

from __future__ import annotations

import json
import os
import random
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from sweeper.config.compose import compose
from sweeper.engine.mock.options import mock_options
from sweeper.engine.ports import LOOPBACK
from sweeper.tracking.lock import StudyLock
from sweeper.verdicts import Verdict
from tests.chaos import checks
from tests.chaos.run import faults_struck
from tests.chaos.study import SPACE, ChaosStudy
from tests.chaos.tuner import Record, Strike, has_traceback
from tests.factories import outcome


@pytest.fixture
def study(tmp_path: Path) -> ChaosStudy:
    """A study of two launches that has come to its end and left nothing."""
    made = ChaosStudy("s", tmp_path, launches=2, seed=1, judged=False)
    made.root.mkdir(parents=True)
    for name in ("tmp", "runtime"):
        (tmp_path / name).mkdir()
    for name in ("report.html", "pareto.csv", "study.yaml"):
        (made.root / name).touch()
    write(made, [outcome(0), outcome(1, deployment={"max_num_seqs": 4})])
    made.starts.write_text("trial-0-1-aaaaaaaa\ntrial-1-1-aaaaaaaa\n")
    return made


def write(study: ChaosStudy, outcomes: list[object]) -> None:
    lines = [json.dumps(each.to_dict()) for each in outcomes]  # type: ignore[attr-defined]
    study.journal.write_text("".join(f"{line}\n" for line in lines))


def test_a_study_that_left_nothing_passes(study: ChaosStudy) -> None:
    assert checks.processes([study]) == []
    assert checks.ports([study]) == []
    assert checks.files([study]) == []
    assert checks.journals([study]) == []
    assert checks.repeats([study], [Record()]) == []
    assert checks.ends([study], [Record()]) == []


@pytest.mark.parametrize("known_by", ["environment", "command"])
def test_a_process_is_found(study: ChaosStudy, known_by: str) -> None:
    command = [sys.executable, "-c", "import time; time.sleep(60)"]
    env = {}
    if known_by == "command":
        command.append("trial-1-1-aaaaaaaa")
    else:
        env = {**os.environ, "CHAOS": str(study.folder)}
    with subprocess.Popen(command, env=env) as process:
        try:
            (found,) = checks.processes([study])
        finally:
            process.kill()
    assert str(process.pid) in found


def test_a_port_is_found(study: ChaosStudy) -> None:
    with socket.socket() as listener:
        listener.bind((LOOPBACK, 0))
        listener.listen()
        port = listener.getsockname()[1]
        folder = study.root / "trials" / "0" / "attempt-2"
        folder.mkdir(parents=True)
        (folder / "argv.json").write_text(json.dumps({"argv": ["x", "--port", str(port)]}))
        (found,) = checks.ports([study])
    assert str(port) in found


@pytest.mark.parametrize(
    "left",
    [
        "studies/s/.launch.json.x1",
        "studies/s/launch.json",
        "studies/s/in_flight.json",
        "studies/s/trials/0/.server.log.x",
        "tmp/x",
        "runtime/sweeper-0/launch.json",
    ],
)
def test_a_file_is_found(study: ChaosStudy, left: str) -> None:
    path = study.folder / left
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    assert any(str(path) in found for found in checks.files([study]))


def test_a_held_lock_is_found(study: ChaosStudy) -> None:
    with StudyLock(study.root / "study.lock"):
        assert checks.files([study]) == ["s: its lock is held"]
    assert checks.files([study]) == []


def test_what_a_journal_lacks_is_found(study: ChaosStudy) -> None:
    write(study, [outcome(0), outcome(2)])
    assert any("numbers are [0, 2]" in found for found in checks.journals([study]))
    assert any("not journalled: [(1, 1)]" in found for found in checks.journals([study]))
    write(study, [outcome(0), outcome(1), outcome(1, attempt=3)])
    assert checks.journals([study]) == ["s: trial 1 has attempts [1, 3]"]
    write(study, [outcome(0), outcome(1), outcome(1)])
    assert checks.journals([study]) == ["s: trial 1 has attempts [1, 1]"]
    study.journal.write_bytes(study.journal.read_bytes() + b'{"number": 2')
    assert "s: the last line is torn" in checks.journals([study])


def test_a_trial_that_is_repeated_is_found(study: ChaosStudy) -> None:
    write(study, [outcome(0), outcome(1)])  # the same deployment twice
    assert checks.repeats([study], []) == ["s: trial 1 repeats trial 0"]
    write(study, [outcome(0, verdict=Verdict.INFRA), outcome(0, attempt=2)])
    assert checks.repeats([study], []) == []
    assert checks.repeats([study], [Record(repeated=["x"])]) == ["x"]
    study.starts.write_text("trial-0-1-aaaaaaaa\n" * 4)
    assert "launched again by the same tuner" in checks.repeats([study], [])[0]


def test_an_end_that_is_none_is_found(study: ChaosStudy) -> None:
    write(study, [outcome(0)])
    (study.root / "report.html").unlink()
    found = checks.ends([study], [Record(errors=["y"])])
    assert found == [
        "y",
        "s: 1 of 2 launches are journalled",
        "s: report.html is missing",
    ]


def test_a_bug_is_told_from_a_signal_that_python_printed() -> None:
    bug = "\nTraceback (most recent call last):\n  File ...\nValueError: no\n"
    assert has_traceback(f"03:00:00  trial 1: start{bug}")
    assert has_traceback(bug.strip())
    assert not has_traceback(f"Exception ignored in: <function f at 0x1>{bug}")
    assert not has_traceback("")


def test_strikes_are_drawn_from_the_seed() -> None:
    drawn = [[Strike.draw(random.Random(seed)) for _ in range(5)] for seed in (1, 1, 2)]
    assert drawn[0] == drawn[1] != drawn[2]


def test_the_settings_are_the_tuners_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Faults come through the command line as they are, and every one of them is known."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "chaos.yaml").write_text(SPACE)
    study = ChaosStudy("s", tmp_path, launches=2, seed=3, judged=True)
    cfg = compose(study.arguments(), device_kind="cuda")
    assert mock_options(cfg.engine.options).faults == list(study.faults.values())
    assert cfg.budget.launches == 2


def test_faults_are_counted_by_what_they_drew(study: ChaosStudy) -> None:
    seqs = {"max_num_seqs": 4}
    write(study, [outcome(n, deployment=seqs) for n in range(400)])
    struck = faults_struck([study])
    assert set(struck) == set(study.faults)
    assert 1 < struck["oom"] < 60
