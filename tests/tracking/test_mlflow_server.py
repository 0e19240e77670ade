"""Against a real MLflow server: over HTTP, through its being stopped, and to the same end."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from sweeper.config.schema import SweeperConfig, TrackingConfig
from sweeper.tracking.journal import Journal
from sweeper.tracking.mlflow_log import MlflowTracker, Patience, StudySummary
from sweeper.tracking.paths import StudyPaths
from tests.factories import study
from tests.tracking.mirror import assert_mirrors


@pytest.fixture
def server(tmp_path: Path) -> Iterator[tuple[str, int]]:
    """(URI, process group) of a server that answers."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    process = subprocess.Popen(
        [sys.executable, "-m", "mlflow", "server", "--host", "127.0.0.1", "--port", str(port),
         "--workers", "1", "--backend-store-uri", f"sqlite:///{tmp_path}/server.db",
         "--artifacts-destination", str(tmp_path / "artifacts")],
        cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
        env={**os.environ, "MLFLOW_DISABLE_TELEMETRY": "true"},
    )  # fmt: skip
    uri = f"http://127.0.0.1:{port}"
    try:
        deadline = time.monotonic() + 180
        while not answers(uri):
            assert process.poll() is None, "the MLflow server ended"
            assert time.monotonic() < deadline
            time.sleep(0.2)
        yield uri, process.pid
    finally:
        os.killpg(process.pid, signal.SIGCONT)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def answers(uri: str) -> bool:
    try:
        with urllib.request.urlopen(f"{uri}/health", timeout=2) as response:
            return bool(response.status == 200)
    except (OSError, urllib.error.URLError):
        return False


def test_a_server_that_falls_silent_and_comes_back_is_caught_up(
    tmp_path: Path, server: tuple[str, int]
) -> None:
    uri, group = server
    paths = StudyPaths(tmp_path / "studies", "s")
    paths.create()
    warnings: list[str] = []
    cfg = SweeperConfig(tracking=TrackingConfig(uri=uri, timeout_s=2))
    patience = Patience(study_s=60, once_s=30, end_quiet_s=60, end_s=120, first_pause_s=0)
    tracker = MlflowTracker(cfg, paths, {}, "s", warn=warnings.append, patience=patience)
    journal, outcomes = Journal(paths.trials_jsonl), study()
    for one in outcomes:
        one.manifest |= {"model": {"name": "org/Tiny-1.5B"}, "checkpoint": "org/Tiny-1.5B"}
    tracker.start()
    for number, one in enumerate(outcomes):
        if number == 1:
            os.killpg(group, signal.SIGSTOP)
        if number == 3:
            os.killpg(group, signal.SIGCONT)
        journal.append(one)
        tracker.record(one)
    tracker.finish(StudySummary(pareto_trials=frozenset({1}), metrics={"front_size": 1.0}))
    assert len([text for text in warnings if "failed" in text]) == 1
    assert_mirrors(paths.trials_jsonl, uri, "s")
    again = MlflowTracker(cfg, paths, {}, "s").sync(outcomes, StudySummary())
    assert (again.logged, again.repaired, again.present) == (0, 0, 5)
    assert_mirrors(paths.trials_jsonl, uri, "s")
