"""A whole study on the mock engine: agreement of its records, resuming, killing, interrupting."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.verbs.conftest import MOCK, Run


def journal(folder: Path) -> list[dict[str, Any]]:
    path = folder / "trials.jsonl"
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text().splitlines()]


def mock_servers(folder: Path) -> list[psutil.Process]:
    """Servers started below this test's folder."""
    found = []
    for process in psutil.process_iter():
        try:
            command = process.cmdline()
        except psutil.Error:
            continue
        if "sweeper.engine.mock.server" in command and str(folder) in " ".join(command):
            found.append(process)
    return found


def test_baseline_first_then_seeds_then_search(sweeper: Run, tmp_path: Path) -> None:
    done = sweeper(*MOCK, "study=s", "budget.launches=5")
    assert done.returncode == 0, done.stdout + done.stderr
    trials = journal(tmp_path / "studies" / "s")
    assert [t["kind"] for t in trials] == ["baseline", "seed", "search", "search", "search"]
    assert [t["number"] for t in trials] == list(range(5))
    assert trials[0]["deployment"] == {}
    assert trials[1]["deployment"]["speculative"] == "ngram"
    assert len({t["deployment_hash"] for t in trials}) == 5
    assert "predicted" in (done.stdout + done.stderr).lower()


def test_the_same_command_goes_on_and_repeats_nothing(sweeper: Run, tmp_path: Path) -> None:
    assert sweeper(*MOCK, "study=s", "budget.launches=2").returncode == 0
    first = journal(tmp_path / "studies" / "s")
    assert sweeper(*MOCK, "study=s", "budget.launches=4").returncode == 0
    second = journal(tmp_path / "studies" / "s")
    assert second[:2] == first
    assert len(second) == 4
    assert sweeper("resume", "study=s", "budget.launches=4").returncode == 0
    assert journal(tmp_path / "studies" / "s") == second


def test_a_finite_space_ends_when_all_is_tried(sweeper: Run, tmp_path: Path) -> None:
    (tmp_path / "two.yaml").write_text(
        "name: two\nparameters:\n  quantization: {choices: [none, fp8_per_tensor]}\n"
    )
    settings = [setting for setting in MOCK if not setting.startswith(("space=", "budget."))]
    done = sweeper(*settings, "space=two.yaml", "study=s", "budget.launches=50", "confirm=none")
    assert done.returncode == 0, done.stderr
    assert len(journal(tmp_path / "studies" / "s")) == 2
    assert "every deployment" in done.stdout + done.stderr


@pytest.mark.parametrize("when", ["first", "second"])
def test_kill_nine_in_a_launch_loses_only_that_launch(
    sweeper: Run, tmp_path: Path, when: str
) -> None:
    command = [*MOCK, "study=s", "+engine.options.start_s=3"]
    folder = tmp_path / "studies" / "s"
    tuner = subprocess.Popen(
        [sys.executable, "-m", "sweeper", *command],
        cwd=tmp_path,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    wanted = 0 if when == "first" else 1
    deadline = time.monotonic() + 60
    while len(journal(folder)) < wanted or not mock_servers(folder):
        assert tuner.poll() is None and time.monotonic() < deadline
        time.sleep(0.05)
    tuner.kill()
    tuner.wait()
    finished = journal(folder)
    orphans = mock_servers(folder)
    assert orphans

    done = sweeper(*command)
    assert done.returncode == 0, done.stdout + done.stderr
    assert not any(p.is_running() and p.status() != psutil.STATUS_ZOMBIE for p in orphans)
    trials = journal(folder)
    assert trials[: len(finished)] == finished
    assert len({t["deployment_hash"] for t in trials}) == len(trials) == 3
    assert [t["kind"] for t in trials[:2]] == ["baseline", "seed"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupt_keeps_everything_and_stops_the_server(
    tmp_path: Path, sweeper: Run, number: int
) -> None:
    folder = tmp_path / "studies" / "s"
    tuner = subprocess.Popen(
        [sys.executable, "-m", "sweeper", *MOCK, "study=s", "+engine.options.start_s=2"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # Tests that run under nohup pass on that SIGHUP is ignored, which the tuner respects.
        preexec_fn=lambda: signal.signal(number, signal.SIG_DFL),  # noqa: PLW1509
    )
    deadline = time.monotonic() + 60
    while not journal(folder) or not mock_servers(folder):
        assert tuner.poll() is None and time.monotonic() < deadline
        time.sleep(0.05)
    os.kill(tuner.pid, number)
    _, errors = tuner.communicate(timeout=60)
    assert tuner.returncode == 130, errors
    assert "Traceback" not in errors
    assert not mock_servers(folder)
    assert journal(folder)
    assert (folder / "report.html").exists()
    assert (folder / "recommended" / "recommendation.json").exists()


def test_a_second_tuner_is_refused_and_told_who_holds_the_study(
    tmp_path: Path, sweeper: Run
) -> None:
    command = [*MOCK, "study=s", "+engine.options.start_s=5"]
    tuner = subprocess.Popen(
        [sys.executable, "-m", "sweeper", *command],
        cwd=tmp_path,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        deadline = time.monotonic() + 60
        while not mock_servers(tmp_path / "studies" / "s"):
            assert tuner.poll() is None and time.monotonic() < deadline
            time.sleep(0.05)
        done = sweeper(*command)
        assert done.returncode == 1
        assert str(tuner.pid) in done.stderr
    finally:
        tuner.send_signal(signal.SIGINT)
        tuner.wait(60)


def test_nothing_feasible_is_said_with_its_causes(tmp_path: Path, sweeper: Run) -> None:
    done = sweeper(
        *MOCK, "study=s", "+engine.options.faults=[{die_at: start, log_text: 'ValueError: boom'}]"
    )
    assert done.returncode == 1
    assert "boom" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_fault_of_the_surroundings_is_retried_once_then_left(
    tmp_path: Path, sweeper: Run
) -> None:
    """fp8 trials fail for reasons no rule knows: two attempts each, and the study goes on."""
    fault = "{die_at: start, log_text: strange, when: {quantization: fp8_per_tensor}}"
    settings = [setting for setting in MOCK if not setting.startswith(("space=", "budget."))]
    (tmp_path / "two.yaml").write_text(
        "name: two\nparameters:\n  quantization: {choices: [none, fp8_per_tensor]}\n"
    )
    done = sweeper(*settings, "space=two.yaml", "study=s", f"+engine.options.faults=[{fault}]")
    assert done.returncode == 0, done.stderr
    trials = journal(tmp_path / "studies" / "s")
    assert [(t["number"], t["attempt"], t["verdict"]) for t in trials] == [
        (0, 1, "OK"),
        (1, 1, "UNKNOWN"),
        (1, 2, "UNKNOWN"),
    ]


def test_the_same_fault_again_and_again_ends_the_study_early(tmp_path: Path, sweeper: Run) -> None:
    fault = "{die_at: start, log_text: strange, when: {max_num_seqs: [1, 2, 3, 4, 5, 6]}}"
    settings = [setting for setting in MOCK if not setting.startswith(("space=", "budget."))]
    (tmp_path / "seqs.yaml").write_text(
        "name: seqs\nparameters:\n  max_num_seqs: {choices: [1, 2, 3, 4, 5, 6, 16], default: 16}\n"
    )
    done = sweeper(
        *settings, "space=seqs.yaml", "study=s", "budget.launches=40",
        f"+engine.options.faults=[{fault}]",
    )  # fmt: skip
    assert done.returncode == 1
    assert "3 trials in a row" in done.stderr
    assert "resume study=s" in done.stderr
    assert len(journal(tmp_path / "studies" / "s")) == 1 + 3 * 2


def test_mlflow_says_what_the_journal_says(tmp_path: Path, sweeper: Run) -> None:
    settings = [setting for setting in MOCK if setting != "tracking=none"]
    assert sweeper(*settings, "study=s").returncode == 0
    from mlflow import MlflowClient

    client = MlflowClient(f"sqlite:///{tmp_path / 'studies' / 'mlflow.db'}")
    experiment = client.get_experiment_by_name("sweeper")
    runs = client.search_runs([experiment.experiment_id])
    children = {int(r.data.tags["number"]): r for r in runs if "number" in r.data.tags}
    trials = journal(tmp_path / "studies" / "s")
    assert sorted(children) == [t["number"] for t in trials]
    assert all(run.info.status in {"FINISHED", "FAILED"} for run in runs)
    for trial in trials:
        best = max(p["metrics"]["output_tokens_per_s"] for p in trial["points"])
        history = client.get_metric_history(
            children[trial["number"]].info.run_id, "output_tokens_per_s"
        )
        assert max(m.value for m in history) == pytest.approx(best)
    assert any(r.data.tags.get("pareto") == "true" for r in children.values())
    synced = sweeper("sync", "study=s")
    assert synced.returncode == 0
    assert "0 trials logged" in synced.stdout


def start_until(
    tmp_path: Path, command: list[str], ready: Callable[[], bool]
) -> subprocess.Popen[bytes]:
    """Start a tuner and kill it with signal 9 as soon as `ready`."""
    tuner = subprocess.Popen(
        [sys.executable, "-m", "sweeper", *command],
        cwd=tmp_path,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    deadline = time.monotonic() + 60
    while not ready():
        assert tuner.poll() is None and time.monotonic() < deadline
        time.sleep(0.02)
    tuner.kill()
    tuner.wait()
    return tuner


STRANGE = "{die_at: start, log_text: strange, when: {quantization: fp8_per_tensor}}"


def test_a_kill_during_the_retry_costs_the_retry_nothing(tmp_path: Path, sweeper: Run) -> None:
    """Attempt 2 of a trial is launched again under the trial's own number."""
    settings = [setting for setting in MOCK if not setting.startswith(("space=", "budget."))]
    (tmp_path / "two.yaml").write_text(
        "name: two\nparameters:\n  quantization: {choices: [none, fp8_per_tensor]}\n"
    )
    command = [
        *settings, "space=two.yaml", "study=s", "+engine.options.start_s=1",
        f"+engine.options.faults=[{STRANGE}]",
    ]  # fmt: skip
    folder = tmp_path / "studies" / "s"
    start_until(tmp_path, command, lambda: len(journal(folder)) == 2 and bool(mock_servers(folder)))
    assert sweeper(*command).returncode == 0
    trials = journal(folder)
    assert [(t["number"], t["attempt"]) for t in trials] == [(0, 1), (1, 1), (1, 2)]
    assert not (folder / "in_flight.json").exists()


def test_a_baseline_that_failed_is_tried_again_by_the_next_run(
    tmp_path: Path, sweeper: Run
) -> None:
    """Its own message is heard, and once its cause is gone the study goes on."""
    first = sweeper(*MOCK, "study=s", "engine.start_timeout_s=0.02")
    assert first.returncode == 1, first.stderr
    assert "the baseline" in first.stderr
    assert "engine.args.NAME=VALUE" in first.stderr
    again = sweeper(*MOCK, "study=s", "budget.launches=5")
    assert again.returncode == 0, again.stderr
    trials = journal(tmp_path / "studies" / "s")
    assert [(t["number"], t["attempt"], t["kind"]) for t in trials[:4]] == [
        (0, 1, "baseline"),
        (0, 2, "baseline"),
        (0, 3, "baseline"),
        (1, 1, "seed"),
    ]


def test_a_space_that_narrows_on_resuming_is_no_other_space(tmp_path: Path, sweeper: Run) -> None:
    """The quality reference is longer than 48 tokens: known only once the baseline has run."""
    (tmp_path / "length.yaml").write_text(
        "name: length\nparameters:\n"
        "  max_model_len: {choices: [default, 48]}\n"
        "  max_num_seqs: {choices: [default, 4, 8, 16]}\n"
    )
    settings = [setting for setting in MOCK if not setting.startswith(("space=", "budget."))]
    settings = [*settings, "space=length.yaml", "study=s", "quality.reference_tokens=32"]
    assert sweeper(*settings, "budget.launches=1").returncode == 0
    done = sweeper(*settings, "budget.launches=3")
    assert done.returncode == 0, done.stderr
    assert len(journal(tmp_path / "studies" / "s")) >= 3


def test_a_damaged_optuna_journal_is_rebuilt(tmp_path: Path, sweeper: Run) -> None:
    assert sweeper(*MOCK, "study=s", "budget.launches=2").returncode == 0
    path = tmp_path / "studies" / "s" / "optuna.journal"
    path.write_bytes(path.read_bytes()[:-20])
    done = sweeper(*MOCK, "study=s", "budget.launches=3")
    assert done.returncode == 0, done.stderr
    assert len(journal(tmp_path / "studies" / "s")) == 3


@pytest.mark.parametrize("lost", ["reference.json", "study.yaml"])
def test_a_study_that_lost_what_its_numbers_mean_is_refused(
    tmp_path: Path, sweeper: Run, lost: str
) -> None:
    assert sweeper(*MOCK, "study=s", "budget.launches=1").returncode == 0
    (tmp_path / "studies" / "s" / lost).unlink()
    done = sweeper(*MOCK, "study=s", "budget.launches=2")
    assert done.returncode == 1
    assert lost in done.stderr
    assert "Traceback" not in done.stderr


def test_nohup_is_respected(tmp_path: Path, sweeper: Run) -> None:
    """A hang-up that the caller ignores does not end the study."""
    folder = tmp_path / "studies" / "s"
    tuner = subprocess.Popen(
        ["nohup", sys.executable, "-m", "sweeper", *MOCK, "study=s", "budget.launches=2"],
        cwd=tmp_path,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    while not mock_servers(folder):
        assert tuner.poll() is None
        time.sleep(0.02)
    tuner.send_signal(signal.SIGHUP)
    assert tuner.wait(60) == 0
    assert len(journal(folder)) == 2


def test_sync_fills_mlflow_for_a_study_that_ran_without_it(tmp_path: Path, sweeper: Run) -> None:
    assert sweeper(*MOCK, "study=s", "budget.launches=2").returncode == 0
    done = sweeper("sync", "study=s")
    assert done.returncode == 0, done.stderr
    assert "2 trials logged" in done.stdout
