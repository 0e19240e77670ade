"""A study that is killed, starved of disk, cut off or moved keeps what it measured and goes on."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import pty
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from sweeper.__main__ import main
from sweeper.config.schema import (
    LoadConfig,
    ObjectiveConfig,
    SamplerConfig,
    SloConfig,
    SpaceConfig,
)
from sweeper.search.objective import Objective
from sweeper.search.proposals import Proposals
from sweeper.space.parse import parse_space
from tests.factories import study
from tests.verbs.conftest import MOCK, Run
from tests.verbs.test_study_on_mock import journal, mock_servers

ROOT = Path(__file__).resolve().parent.parent.parent
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT)}


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    return {**ENVIRONMENT, "SWEEPER_CACHE_DIR": str(tmp_path / "cache")}


Tampered = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def tampered(tmp_path: Path, sweeper: Run, environment: dict[str, str]) -> Tampered:
    def run(how: str, where: str, nth: int, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "tests.verbs.tampered", how, where, str(nth), *arguments],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=240,
            env=environment,
            check=False,
        )

    return run


STEPS = [
    ("die-after", "sweeper.search.in_flight:note", 1, 0),
    ("die-after", "sweeper.search.loop:keep_reference", 1, 0),
    ("die-before", "sweeper.tracking.journal:Journal.append", 1, 0),
    ("die-within", "sweeper.tracking.journal:Journal._write", 1, 0),
    ("die-after", "sweeper.tracking.journal:Journal.append", 1, 1),
    ("die-after", "sweeper.tracking.mlflow_log:MlflowTracker.record", 1, 1),
    # The first call is for the note that the step before has left.
    ("die-after", "sweeper.search.in_flight:clear", 2, 1),
    ("die-before", "sweeper.verbs.finish:write_report", 1, 1),
]


def test_kill_nine_at_every_step_loses_at_most_the_launch_that_ran(
    sweeper: Run, tampered: Tampered, tmp_path: Path
) -> None:
    """One study, killed again and again; what the journal once had it has for ever."""
    folder, before = tmp_path / "studies" / "s", 0
    for how, where, nth, new in STEPS:
        done = tampered(how, where, nth, *MOCK, "study=s", "budget.launches=4")
        assert done.returncode == -signal.SIGKILL, (where, done.stdout, done.stderr)
        kept = whole_lines(folder)
        assert len(kept) == before + new, where
        before = len(kept)
    done = sweeper(*MOCK, "study=s", "budget.launches=4")
    assert done.returncode == 0, done.stdout + done.stderr
    trials = journal(folder)
    assert trials[:before] == kept
    assert [trial["number"] for trial in trials] == list(range(4))
    assert len({trial["deployment_hash"] for trial in trials}) == 4
    assert not (folder / "in_flight.json").exists()
    assert running_in_optuna(folder) == 0


def whole_lines(folder: Path) -> list[dict[str, Any]]:
    path = folder / "trials.jsonl"
    lines = path.read_bytes().splitlines(keepends=True) if path.exists() else []
    return [json.loads(line) for line in lines if line.endswith(b"\n")]


def running_in_optuna(folder: Path) -> int:
    import optuna
    from optuna.storages import JournalStorage
    from optuna.storages.journal import JournalFileBackend

    storage = JournalStorage(JournalFileBackend(str(folder / "optuna.journal")))
    trials = optuna.load_study(study_name="sweeper", storage=storage).trials
    return sum(trial.state == optuna.trial.TrialState.RUNNING for trial in trials)


def test_a_measured_trial_that_the_disk_refuses_is_rescued_and_taken_up(
    sweeper: Run, tampered: Tampered, tmp_path: Path, environment: dict[str, str]
) -> None:
    folder, where = tmp_path / "studies" / "s", "sweeper.tracking.journal:Journal._write"
    done = tampered(f"fail-{errno.ENOSPC}", where, 2, *MOCK, "study=s", "budget.launches=3")
    assert done.returncode == 1
    assert "No space left on device); trial 1 was measured and is kept in" in done.stderr
    assert "Traceback" not in done.stderr
    assert [trial["number"] for trial in journal(folder)] == [0]
    (rescued,) = (tmp_path / "cache" / "rescued").iterdir()
    line = json.loads(rescued.read_text())["outcome"]

    done = subprocess.run(
        [sys.executable, "-m", "sweeper", "resume", "study=s"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env=environment,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "trial 1, which the disk had refused, is in the journal now" in done.stdout
    trials = journal(folder)
    assert trials[1] == line
    assert [trial["number"] for trial in trials] == [0, 1, 2]
    assert not rescued.exists()


@pytest.mark.parametrize("nowhere", ["sweeper.tracking.room:_hold", "os:statvfs"])
def test_no_launch_is_paid_for_where_its_line_would_not_fit(
    tampered: Tampered, tmp_path: Path, nowhere: str
) -> None:
    done = tampered(f"fail-{errno.EROFS}", nowhere, 1, *MOCK, "study=s")
    assert done.returncode == 1
    assert "nothing more is launched" in done.stderr
    assert "remedy: make the folder writable" in done.stderr
    assert not (tmp_path / "studies" / "s" / "trials" / "0" / "server.log").exists()


def test_a_full_disk_behind_optuna_ends_the_study_in_words(
    tampered: Tampered, tmp_path: Path
) -> None:
    done = tampered(
        f"fail-{errno.ENOSPC}", "sweeper.search.proposals:Proposals.tell", 1, *MOCK, "study=s"
    )
    assert done.returncode == 1
    assert "everything measured is kept" in done.stderr
    assert "Traceback" not in done.stderr
    assert len(journal(tmp_path / "studies" / "s")) == 1


def wait_for(tuner: subprocess.Popen[Any], ready: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 120
    while not ready():
        assert tuner.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.05)


def hear_the_hangup() -> None:
    """Under `nohup` the tests would inherit its wish to outlive the terminal."""
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


def start(tmp_path: Path, *arguments: str, **how: Any) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "sweeper", *MOCK, "study=s", *arguments],
        cwd=tmp_path,
        text=True,
        env=ENVIRONMENT,
        **({"preexec_fn": hear_the_hangup} | how),
    )


def took_the_hint(tmp_path: Path, tuner: subprocess.Popen[str], errors: str) -> None:
    """An end that was asked for: server gone, journal kept, the way on is named."""
    folder = tmp_path / "studies" / "s"
    assert tuner.returncode == 130, errors
    assert "python -m sweeper resume study=s" in errors
    assert "Traceback" not in errors
    assert not mock_servers(folder)
    assert journal(folder)
    assert json.loads((folder / "ended.json").read_text())["status"] == "KILLED"


def test_a_reader_that_has_gone_ends_the_study_like_ctrl_c(tmp_path: Path, sweeper: Run) -> None:
    """`python -m sweeper | head -3`."""
    folder = tmp_path / "studies" / "s"
    tuner = start(
        tmp_path, "budget.launches=40", stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert tuner.stdout is not None
    assert tuner.stderr is not None
    wait_for(tuner, lambda: bool(journal(folder)))
    tuner.stdout.close()
    errors = tuner.stderr.read()
    tuner.wait(120)
    took_the_hint(tmp_path, tuner, errors)


def test_a_terminal_that_has_gone_ends_the_study_like_ctrl_c(tmp_path: Path, sweeper: Run) -> None:
    """The window is closed: SIGHUP, and every further word fails."""
    folder, errors = tmp_path / "studies" / "s", tmp_path / "errors"
    master, terminal = pty.openpty()

    def take_terminal() -> None:
        hear_the_hangup()
        os.setsid()
        fcntl.ioctl(terminal, termios.TIOCSCTTY, 0)

    with errors.open("w") as stderr:
        tuner = start(
            tmp_path, "budget.launches=40", stdin=terminal, stdout=terminal, stderr=stderr,
            preexec_fn=take_terminal,
        )  # fmt: skip
    os.close(terminal)
    os.set_blocking(master, False)

    def seen() -> bool:
        with contextlib.suppress(BlockingIOError):
            os.read(master, 1 << 16)
        return bool(journal(folder))

    wait_for(tuner, seen)
    os.close(master)
    tuner.wait(120)
    took_the_hint(tmp_path, tuner, errors.read_text())


def test_an_interrupt_while_the_server_stops_keeps_the_trial_that_was_measured(
    tmp_path: Path, sweeper: Run
) -> None:
    """The first request waits for the line, and Ctrl-\\ is one too."""
    folder = tmp_path / "studies" / "s"
    tuner = start(tmp_path, "budget.launches=40", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert tuner.stdout is not None
    for line in tuner.stdout:
        if "trial 0: stop" in line:
            break
    tuner.send_signal(signal.SIGQUIT)
    _, errors = tuner.communicate(timeout=120)
    took_the_hint(tmp_path, tuner, errors)
    assert [(t["number"], t["verdict"]) for t in journal(folder)] == [(0, "OK")]


def test_a_suspended_tuner_keeps_its_study_and_goes_on(tmp_path: Path, sweeper: Run) -> None:
    folder = tmp_path / "studies" / "s"
    tuner = start(
        tmp_path, "+engine.options.start_s=1", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    wait_for(tuner, lambda: bool(mock_servers(folder)))
    tuner.send_signal(signal.SIGSTOP)
    try:
        second = sweeper(*MOCK, "study=s")
        assert second.returncode == 1
        assert f"in use by process {tuner.pid} on" in second.stderr
        assert f"suspended\n  remedy: let it go on with `kill -CONT {tuner.pid}`" in second.stderr
    finally:
        tuner.send_signal(signal.SIGCONT)
    assert tuner.wait(240) == 0
    assert len(journal(folder)) == 3


def test_a_study_can_be_moved_renamed_and_looked_at_elsewhere(tmp_path: Path, sweeper: Run) -> None:
    """Under a folder with spaces and letters of all kinds, through a link."""
    (tmp_path / "löng 名 dir").mkdir()
    (tmp_path / "link").symlink_to("löng 名 dir")
    assert sweeper(*MOCK, "study=s", "budget.launches=1", "studies_dir=link").returncode == 0
    first = journal(tmp_path / "link" / "s")
    (tmp_path / "link" / "s").rename(tmp_path / "link" / "renamed")
    done = sweeper("resume", "study=renamed", "budget.launches=2", "studies_dir=löng 名 dir")
    assert done.returncode == 0, done.stderr
    trials = journal(tmp_path / "link" / "renamed")
    assert trials[:1] == first
    assert len(trials) == 2

    copy = tmp_path / "copy" / "renamed"
    copy.mkdir(parents=True)
    for name in ("study.yaml", "trials.jsonl"):
        (copy / name).write_bytes((tmp_path / "link" / "renamed" / name).read_bytes())
    for verb in ("status", "pareto", "export"):
        done = sweeper(verb, "study=renamed", "studies_dir=copy")
        assert done.returncode == 0, (verb, done.stderr)


DIFFERENCES = {
    "model.dtype=float16": "model_options.dtype: ",
    "space.fixed={enforce_eager: true}": "space.fixed.enforce_eager: absent → true",
    "objective=point": "objective.kind: frontier → point",
    "workload.output_tokens=9": "workload.output_tokens: 8 → 9",
    "load.concurrency=[1,2]": "load.concurrency: [1, 4] → [1, 2]",
    "hardware=a100_80gb": "hardware.name: ",
    "+engine.options.start_s=0.5": "engine_options.start_s: ",
    "quality.reference_tokens=9": "quality.reference_tokens: 8 → 9",
}


def test_each_difference_of_identity_is_named(
    sweeper: Run,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """What is asked otherwise, and what has become otherwise: engine, model."""
    monkeypatch.chdir(tmp_path)
    assert sweeper(*MOCK, "study=s", "budget.launches=1").returncode == 0
    for override, named in DIFFERENCES.items():
        assert main([*MOCK, "study=s", override]) == 2, override
        assert named in capsys.readouterr().err
    path = tmp_path / "studies" / "s" / "study.yaml"
    stored = yaml.safe_load(path.read_text())
    for part, key in (("engine", "version"), ("model", "name")):
        other = {**stored["identity"][part], key: "other"}
        changed = {**stored, "identity": {**stored["identity"], part: other}}
        path.write_text(yaml.safe_dump(changed))
        assert main([*MOCK, "study=s"]) == 2
        assert f"{part}.{key}: other → " in capsys.readouterr().err


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "study.yaml"),
        (b"identity: {a: 1}\nconf", "study.yaml"),
        (b"\x00\xff\xfe", "study.yaml"),
        (b"[1, 2", "study.yaml"),
        (b"identity: {}\nconfig: {tomorrow: {a: 1}}\n", "tomorrow"),
    ],
)
def test_a_damaged_study_file_is_named_with_a_way_on(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    content: bytes,
    said: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "studies" / "s"
    folder.mkdir(parents=True)
    (folder / "study.yaml").write_bytes(content)
    for verb in ("resume", "status"):
        assert main([verb, "study=s"]) == 2
        errors = capsys.readouterr().err
        assert said in errors
        assert "remedy: " in errors


OPTUNA_LEFTOVERS: dict[str, Callable[[Path, Path], object]] = {
    "stale symlink lock": lambda path, lock: lock.symlink_to(path),
    "stale open-lock file": lambda path, lock: lock.write_text(""),
    "torn last line": lambda path, lock: path.write_bytes(path.read_bytes()[:-20]),
    "garbage": lambda path, lock: path.write_bytes(b"\x00\xff garbage\n{"),
    "read-only file": lambda path, lock: path.chmod(0o444),
}


def test_nothing_that_optuna_left_can_hold_up_a_study(tmp_path: Path) -> None:
    """Its journal is made anew from ours at each start."""
    path, outcomes = tmp_path / "optuna.journal", study()
    space = parse_space(SpaceConfig(parameters={"max_num_seqs": {"choices": [16, 64, 4096]}}))
    objective = Objective(ObjectiveConfig(), SloConfig(), LoadConfig(), with_quality=False)
    for what, leave in {"nothing": lambda *_: None, **OPTUNA_LEFTOVERS}.items():
        leave(path, path.with_name("optuna.journal.lock"))
        started_s = time.monotonic()
        Proposals(path, space, SamplerConfig(kind="random"), objective, outcomes[:1])
        assert time.monotonic() - started_s < 30, what
        assert running_in_optuna(tmp_path) == 0, what


def test_the_limit_of_open_files_is_raised_as_far_as_it_may_be() -> None:
    script = """
import resource
from sweeper.verbs.limits import raise_file_limit
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 512))
raise_file_limit()
print(resource.getrlimit(resource.RLIMIT_NOFILE))
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout == "(512, 512)\n"
