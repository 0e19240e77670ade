"""Files on their way to MLflow leave nothing behind, also if their tuner is killed."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from sweeper.tracking import mlflow_fill
from sweeper.tracking.mlflow_fill import UPLOADS, attach


class Client:
    """Takes files."""

    def __init__(self) -> None:
        self.taken: dict[str, str] = {}

    def log_artifact(self, run_id: str, path: str) -> None:
        self.taken[Path(path).name] = Path(path).read_text()


def test_what_a_killed_tuner_was_uploading_goes_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with subprocess.Popen([sys.executable, "-c", ""]) as dead:
        dead.wait()
    left = tmp_path / f"{UPLOADS}{dead.pid}-abc"
    in_use = tmp_path / f"{UPLOADS}{os.getppid()}-abc"
    foreign = tmp_path / "tmpabc"
    for folder in (left, in_use, foreign):
        folder.mkdir()
        (folder / "outcome.json").touch()
    mlflow_fill._clear_uploads.cache_clear()
    client = Client()
    assert attach(client, "run", ("outcome.json", {"number": 0})) is None
    assert '"number": 0' in client.taken["outcome.json"]
    assert sorted(tmp_path.iterdir()) == sorted([in_use, foreign])
