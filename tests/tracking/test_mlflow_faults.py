"""Whatever is at the other end of `tracking.uri`: one warning, little time, the study goes on.

One process for all, because importing MLflow takes seconds.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sweeper.config.schema import SweeperConfig, TrackingConfig
from sweeper.tracking.journal import Journal
from sweeper.tracking.mlflow_log import MlflowTracker, Patience, StudySummary
from sweeper.tracking.paths import StudyPaths
from sweeper.trial.progress import PhaseChanged
from tests.factories import outcome
from tests.tracking.bad_server import KINDS, bad_server
from tests.tracking.mirror import assert_mirrors

SHORT = Patience(study_s=0.6, once_s=0.3, end_quiet_s=0.6, end_s=2.0, first_pause_s=60)
# What a machine that is five times slower may need for a study that hardly waits.
ALLOWED_S = 30.0


@pytest.fixture
def paths(tmp_path: Path) -> StudyPaths:
    paths = StudyPaths(tmp_path, "s")
    paths.create()
    return paths


@pytest.fixture(scope="module", autouse=True)
def impatient_database() -> Iterator[None]:
    """MLflow tries a database for minutes, under a lock that later tests would wait for."""
    from mlflow.store.db import utils

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(utils, "MAX_RETRY_COUNT", 2)
        yield


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory, empty_database: Path) -> Path:
    """An MLflow database that is whole; copied by those who spoil it."""
    paths = StudyPaths(tmp_path_factory.mktemp("whole"), "another")
    paths.create()
    shutil.copy(empty_database, paths.mlflow_db)
    tracker = MlflowTracker(SweeperConfig(), paths, {}, "another")
    assert tracker.sync([], StudySummary()).error is None
    return paths.mlflow_db


def whole_study(paths: StudyPaths, uri: str | None, **how: Any) -> tuple[list[str], float]:
    """Warnings and seconds of a study of three trials that ends."""
    warnings: list[str] = []
    cfg = SweeperConfig(tracking=TrackingConfig(uri=uri, timeout_s=2))
    tracker = MlflowTracker(cfg, paths, {}, "s", warn=warnings.append, **{"patience": SHORT} | how)
    started_s = time.monotonic()
    tracker.start()
    for number in range(3):
        one = outcome(number)
        Journal(paths.trials_jsonl).append(one)
        tracker.record(one)
    tracker.finish(StudySummary())
    return warnings, time.monotonic() - started_s


def test_nothing_is_logged_while_a_load_is_driven(paths: StudyPaths, database: Path) -> None:
    """The mirror shares a processor and an interpreter with the client that measures."""
    shutil.copy(database, paths.mlflow_db)
    said: list[str] = []
    patient = Patience(end_quiet_s=60, end_s=120)
    tracker = MlflowTracker(SweeperConfig(), paths, {}, "s", warn=said.append, patience=patient)
    tracker.observe(PhaseChanged(0, "load", "1 stream"))
    tracker.start()
    time.sleep(0.5)
    assert not paths.mlflow_record.exists()
    tracker.observe(PhaseChanged(0, "stop"))
    tracker.record(outcome(0))
    tracker.finish(StudySummary())
    assert said == []
    assert paths.mlflow_record.exists()


@pytest.mark.parametrize("kind", KINDS)
def test_a_server_that_misbehaves_costs_one_warning(paths: StudyPaths, kind: str) -> None:
    with bad_server(kind) as uri:
        warnings, took_s = whole_study(paths, uri)
    assert len(warnings) == 1, warnings
    assert "sync study=s" in warnings[0]
    assert took_s < ALLOWED_S
    assert len(Journal(paths.trials_jsonl).read()) == 3


@pytest.mark.parametrize(
    "uri", ["htp://typo:5000", "localhost:5000", "http://127.0.0.1:9", "http://user:pa55word@[::1"]
)
def test_an_address_that_is_none_costs_one_warning(paths: StudyPaths, uri: str) -> None:
    warnings, took_s = whole_study(paths, uri)
    assert len(warnings) == 1, warnings
    assert "pa55word" not in warnings[0]
    assert took_s < ALLOWED_S


def lock(path: Path) -> Any:
    holder = sqlite3.connect(path)
    holder.execute("BEGIN EXCLUSIVE")
    return holder


def outdate(path: Path) -> Any:
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE alembic_version SET version_num = 'f5a4f2784254'")


def bring_from_the_future(path: Path) -> Any:
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE alembic_version SET version_num = 'ffffffffffff'")


SPOILT = {
    "locked": lock,
    "outdated": outdate,
    "newer": bring_from_the_future,
    "not a database": lambda path: path.write_bytes(b"not a database at all" * 100),
    "a folder": lambda path: (path.unlink(), path.mkdir()),
}


@pytest.mark.parametrize("how", SPOILT)
def test_a_database_that_cannot_be_used_costs_one_warning(
    paths: StudyPaths, database: Path, how: str
) -> None:
    shutil.copy(database, paths.mlflow_db)
    held = SPOILT[how](paths.mlflow_db)
    warnings, took_s = whole_study(paths, None)
    assert len(warnings) == 1, warnings
    if how == "outdated":
        assert "mlflow db upgrade" in warnings[0]
    assert took_s < ALLOWED_S
    if how == "locked":
        held.close()
        cfg = SweeperConfig()
        report = MlflowTracker(cfg, paths, {}, "s").sync(
            Journal(paths.trials_jsonl).read(), StudySummary()
        )
        assert report.error is None
        assert_mirrors(paths.trials_jsonl, f"sqlite:///{paths.mlflow_db}", "s")


@pytest.mark.parametrize("error", [ImportError("no mlflow"), AttributeError("another mlflow")])
def test_an_mlflow_that_cannot_be_imported_costs_one_warning(
    paths: StudyPaths, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def refuse(_: float) -> Any:
        raise error

    monkeypatch.setattr("sweeper.tracking.mlflow_store.import_client", refuse)
    warnings, _ = whole_study(paths, None)
    assert len(warnings) == 1
    assert str(error) in warnings[0]


def test_a_server_that_fails_is_not_asked_after_every_trial(
    paths: StudyPaths, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once at the start, and once at the end; in between a pause that grows."""
    asked: list[float] = []

    def refuse(*_: Any, **__: Any) -> Any:
        asked.append(time.monotonic())
        raise OSError("no route")

    monkeypatch.setattr("sweeper.tracking.mlflow_store.import_client", lambda _: refuse)
    whole_study(paths, None)
    assert len(asked) == 2


def test_the_password_of_the_address_is_not_shown(paths: StudyPaths) -> None:
    cfg = SweeperConfig(tracking=TrackingConfig(uri="http://user:pa55word@127.0.0.1:9/x"))
    assert MlflowTracker(cfg, paths, {}, "s").uri == "http://127.0.0.1:9/x"


@pytest.mark.skipif(os.getuid() == 0, reason="root writes into every file")
def test_a_read_only_database_costs_one_warning(paths: StudyPaths, database: Path) -> None:
    shutil.copy(database, paths.mlflow_db)
    paths.mlflow_db.chmod(0o444)
    warnings, _ = whole_study(paths, None)
    assert len(warnings) == 1
