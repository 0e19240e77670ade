"""MLflow and the journal of one study through a kill, a sync and a clock that jumps."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.tracking.mirror import assert_mirrors
from tests.verbs.conftest import MOCK, Run
from tests.verbs.test_durability import ENVIRONMENT
from tests.verbs.test_study_on_mock import journal

TRACKED = [setting for setting in MOCK if setting != "tracking=none"]


def tampered(tmp_path: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tests.verbs.tampered", *arguments],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=240,
        env=ENVIRONMENT,
        check=False,
    )


def parent(uri: str) -> Any:
    from mlflow import MlflowClient

    client = MlflowClient(uri)
    experiment = client.get_experiment_by_name("sweeper").experiment_id
    (run,) = client.search_runs([experiment], "tags.`sweeper.role` = 'study'")
    return run


def test_a_killed_study_is_synced_and_goes_on_while_the_clock_jumps(
    tmp_path: Path, sweeper: Run
) -> None:
    lines, uri = tmp_path / "studies/s/trials.jsonl", f"sqlite:///{tmp_path}/studies/mlflow.db"
    # The line is in the journal, MLflow has not heard of it: killed in between.
    step = ("die-before", "sweeper.tracking.mlflow_log:MlflowTracker.record", "2")
    assert tampered(tmp_path, *step, *TRACKED, "study=s").returncode == -signal.SIGKILL
    assert len(journal(tmp_path / "studies" / "s")) == 2
    assert parent(uri).info.status == "RUNNING"

    done = sweeper("sync", "study=s")
    assert done.returncode == 0, done.stderr
    assert "1 trials logged, 0 repaired, 1 were there" in done.stdout
    assert parent(uri).info.status == "KILLED"
    assert_mirrors(lines, uri, "s")

    done = tampered(tmp_path, "clock", "", "0", *TRACKED, "study=s", "budget.launches=4")
    assert done.returncode == 0, done.stdout + done.stderr
    trials = journal(tmp_path / "studies" / "s")
    assert len(trials) == 4
    assert all(0 < trial["timings_s"]["total"] < 200 for trial in trials)
    assert len({trial["started_at"][:10] for trial in trials}) > 1
    assert parent(uri).info.status == "FINISHED"
    assert_mirrors(lines, uri, "s")
    assert "MLflow tracking" not in done.stdout


def test_a_study_without_a_journal_line_is_closed_too(tmp_path: Path, sweeper: Run) -> None:
    """Nothing was measured, and MLflow does not show it as running for ever."""
    done = tampered(
        tmp_path, "fail-30", "sweeper.tracking.room:_hold", "1", *TRACKED, "study=s"
    )  # fmt: skip
    assert done.returncode == 1
    assert "nothing more is launched" in done.stderr
    assert parent(f"sqlite:///{tmp_path}/studies/mlflow.db").info.status == "FAILED"
    assert os.listdir(tmp_path / "studies" / "s" / "trials") == []  # noqa: PTH208
