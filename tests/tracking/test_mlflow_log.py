"""Against a real MLflow on SQLite: one database for the module, because making it takes seconds."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from sweeper.config.schema import SpaceConfig, SweeperConfig, TrackingConfig
from sweeper.tracking.lock import StudyLock
from sweeper.tracking.mlflow_log import MlflowTracker, StudySummary
from sweeper.tracking.mlflow_store import MlflowStore
from sweeper.tracking.paths import StudyPaths
from tests.factories import outcome, study

IDENTITY = {"engine": {"name": "vllm", "version": "0.32.0"}, "model": {"name": "tiny"}}


@pytest.fixture(scope="module")
def studies(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("st udies")


@pytest.fixture
def paths(studies: Path, request: pytest.FixtureRequest) -> StudyPaths:
    paths = StudyPaths(studies, request.node.name[:60])
    paths.create()
    return paths


def tracker(paths: StudyPaths, warn: Any = pytest.fail, **tracking: Any) -> MlflowTracker:
    cfg = SweeperConfig(
        tracking=TrackingConfig(**tracking),
        space=SpaceConfig(parameters={"max_num_seqs": {}, "quantization": {}}),
    )
    return MlflowTracker(cfg, paths, IDENTITY, paths.name, warn=warn)


def client(paths: StudyPaths) -> Any:
    from mlflow import MlflowClient

    return MlflowClient(tracking_uri=f"sqlite:///{paths.mlflow_db}")


def runs(paths: StudyPaths) -> tuple[Any, dict[str, Any]]:
    """The parent run, and the child runs by name."""
    found = client(paths).search_runs(
        [client(paths).get_experiment_by_name("sweeper").experiment_id],
        f"tags.`sweeper.study` = '{paths.name}'",
    )
    parents = [run for run in found if run.data.tags["sweeper.role"] == "study"]
    assert len(parents) == 1
    children = [run for run in found if run.data.tags["sweeper.role"] == "trial"]
    assert all(run.data.tags["mlflow.parentRunId"] == parents[0].info.run_id for run in children)
    named = {run.info.run_name: run for run in children}
    assert len(named) == len(children)
    return parents[0], named


def test_a_study_is_a_parent_run_and_a_trial_a_child(paths: StudyPaths) -> None:
    paths.trial_dir(1).mkdir()
    paths.server_log(1).write_text("x" * 100 + "ready\n")
    paths.pareto_csv.write_text("a\n")
    mirror = tracker(paths)
    for one in study():
        mirror.record(one)
    assert runs(paths)[0].info.status == "RUNNING"
    mirror.finish(
        StudySummary(
            pareto_trials=frozenset({1, 2}),
            metrics={"front_size": 4.0},
            tags={"headline": "Trial 1"},
            artifacts=(paths.pareto_csv, paths.report_html),
        )
    )

    parent, children = runs(paths)
    assert parent.info.status == "FINISHED"
    assert parent.data.metrics == {"front_size": 4.0}
    assert parent.data.tags["sweeper.engine"] == "vllm 0.32.0"
    assert sorted(children) == [
        "000-baseline",
        "001-search",
        "002-search",
        "003-search",
        "004-search",
    ]
    one, failed = children["001-search"], children["003-search"]
    assert one.data.params == {
        "enable_prefix_caching": "false",
        "max_num_seqs": "64",
        "quantization": "default",
    }
    assert one.data.tags["pareto"] == "true"
    assert failed.data.tags["pareto"] == "false"
    assert (one.info.status, failed.info.status) == ("FINISHED", "FAILED")
    assert failed.data.tags["verdict"] == "CAPACITY"
    history = client(paths).get_metric_history(one.info.run_id, "output_tokens_per_s")
    assert {(m.step, m.value) for m in history} == {(1, 22.0), (8, 150.0), (32, 320.0)}
    files = {f.path for f in client(paths).list_artifacts(one.info.run_id)}
    assert files == {"outcome.json", "server.log"}
    assert {f.path for f in client(paths).list_artifacts(parent.info.run_id)} == {"pareto.csv"}
    assert list(paths.mlflow_artifacts.iterdir())


def test_sync_is_idempotent_and_repairs_half_logged_runs(
    paths: StudyPaths, monkeypatch: pytest.MonkeyPatch
) -> None:
    outcomes = study()
    first = tracker(paths)
    first.record(outcomes[0])
    with monkeypatch.context() as patch:
        # The tuner dies between opening the child run and filling it.
        patch.setattr(MlflowStore, "fill", lambda *_: (_ for _ in ()).throw(RuntimeError("killed")))
        tracker(paths, warn=lambda _: None).record(outcomes[1])
    assert runs(paths)[1]["001-search"].info.status == "RUNNING"

    report = tracker(paths).sync(outcomes)
    assert (report.logged, report.repaired, report.present, report.error) == (3, 1, 1, None)
    again = tracker(paths).sync(outcomes)
    assert (again.logged, again.repaired, again.present) == (0, 0, 5)
    children = runs(paths)[1]
    assert len(children) == 5
    repaired = children["001-search"]
    assert repaired.info.status == "FINISHED"
    history = client(paths).get_metric_history(repaired.info.run_id, "e2e_p95_ms")
    assert len(history) == 3


def test_sync_ends_a_parent_only_if_no_tuner_works_on_it(paths: StudyPaths) -> None:
    with StudyLock(paths.lock):
        tracker(paths).record(outcome(0))
        tracker(paths).sync([outcome(0)])
        assert runs(paths)[0].info.status == "RUNNING"
    tracker(paths).sync([outcome(0)])
    assert runs(paths)[0].info.status == "KILLED"
    mirror = tracker(paths)
    mirror.record(outcome(1))
    assert runs(paths)[0].info.status == "RUNNING"
    mirror.finish(StudySummary())
    tracker(paths).sync([outcome(0), outcome(1)])
    assert runs(paths)[0].info.status == "FINISHED"


def test_a_lost_record_of_the_parent_finds_it_by_its_tags(paths: StudyPaths) -> None:
    tracker(paths).record(outcome(0))
    paths.mlflow_record.unlink()
    tracker(paths).record(outcome(1))
    assert len(runs(paths)[1]) == 2


def test_two_folders_may_have_studies_of_one_name(paths: StudyPaths, tmp_path: Path) -> None:
    other = StudyPaths(tmp_path, paths.name)
    other.create()
    tracker(paths).record(outcome(0))
    tracker(other, uri=f"sqlite:///{paths.mlflow_db}").record(outcome(0))
    found = client(paths).search_runs(
        [client(paths).get_experiment_by_name("sweeper").experiment_id],
        f"tags.`sweeper.study` = '{paths.name}' and tags.`sweeper.role` = 'study'",
    )
    assert len(found) == 2


def test_failure_warns_once_keeps_everything_and_is_caught_up(
    paths: StudyPaths, monkeypatch: pytest.MonkeyPatch
) -> None:
    warnings: list[str] = []
    mirror = tracker(paths, warn=warnings.append)
    outcomes = study()
    with monkeypatch.context() as patch:
        patch.setattr(
            MlflowStore, "create_child", lambda *_: (_ for _ in ()).throw(OSError("no route"))
        )
        for one in outcomes[:2]:
            mirror.record(one)
        mirror.finish(StudySummary())
    assert len(warnings) == 1
    assert "no route" in warnings[0]
    assert f"sync study={paths.name}" in warnings[0]
    mirror.record(outcomes[2])
    assert len(runs(paths)[1]) == 3
    assert warnings[1:] == ["MLflow tracking works again"]


def test_a_child_that_was_half_filled_last_is_not_opened_twice(
    paths: StudyPaths, monkeypatch: pytest.MonkeyPatch
) -> None:
    mirror = tracker(paths, warn=lambda _: None)
    with monkeypatch.context() as patch:
        patch.setattr(MlflowStore, "fill", lambda *_: (_ for _ in ()).throw(OSError("no route")))
        mirror.record(outcome(0))
    mirror.start()  # works again, and says nothing about the trial
    mirror.finish(StudySummary())
    _, children = runs(paths)
    assert [run.info.status for run in children.values()] == ["FINISHED"]


def test_a_study_that_was_not_tracked_can_be_synced_later(paths: StudyPaths) -> None:
    tracker(paths, enabled=False).record(outcome(0))
    assert tracker(paths, enabled=True).sync([outcome(0)]).logged == 1
    assert len(runs(paths)[1]) == 1


def test_dead_server_costs_a_warning_and_little_time(paths: StudyPaths) -> None:
    script = """
import sys, time
from pathlib import Path
from sweeper.config.schema import SweeperConfig, TrackingConfig
from sweeper.tracking.mlflow_log import MlflowTracker
from sweeper.tracking.paths import StudyPaths
from tests.factories import outcome
paths = StudyPaths(Path(sys.argv[1]), sys.argv[2])
cfg = SweeperConfig(tracking=TrackingConfig(uri="http://127.0.0.1:9", timeout_s=2))
warnings = []
mirror = MlflowTracker(cfg, paths, {}, paths.name, warn=warnings.append)
mirror.record(outcome(0))
start = time.monotonic()
report = mirror.sync([outcome(0)])
print(len(warnings), report.error is not None, time.monotonic() - start < 15)
"""
    done = subprocess.run(
        [sys.executable, "-c", script, str(paths.studies_dir), paths.name],
        capture_output=True,
        text=True,
        check=True,
        env={k: v for k, v in os.environ.items() if not k.startswith("MLFLOW_")},
    )
    assert done.stdout == "1 True True\n"
    assert done.stderr == ""


def test_disabled_tracking_does_nothing(tmp_path: Path) -> None:
    paths = StudyPaths(tmp_path, "a")
    paths.create()
    mirror = tracker(paths, enabled=False)
    mirror.record(outcome(0))
    assert mirror.sync([outcome(0)]).logged == 0
    mirror.finish(StudySummary())
    assert not paths.mlflow_db.exists()


def test_deleted_experiment_is_named(paths: StudyPaths) -> None:
    warnings: list[str] = []
    tracker(paths, experiment="gone").record(outcome(0))
    mlflow = client(paths)
    mlflow.delete_experiment(mlflow.get_experiment_by_name("gone").experiment_id)
    tracker(paths, warn=warnings.append, experiment="gone").record(outcome(1))
    assert "tracking.experiment=NAME" in warnings[0]


def test_first_use_by_two_processes_at_once(tmp_path: Path) -> None:
    script = """
import sys
from pathlib import Path
from sweeper.config.schema import SweeperConfig
from sweeper.tracking.mlflow_log import MlflowTracker
from sweeper.tracking.paths import StudyPaths
from tests.factories import outcome
paths = StudyPaths(Path(sys.argv[1]), sys.argv[2])
paths.create()
MlflowTracker(SweeperConfig(), paths, {}, paths.name, warn=sys.exit).record(outcome(0))
"""
    both = [
        subprocess.Popen(
            [sys.executable, "-c", script, str(tmp_path), name], stderr=subprocess.PIPE, text=True
        )
        for name in ("a", "b")
    ]
    assert [process.communicate(timeout=120)[1] for process in both] == ["", ""]
    assert [process.returncode for process in both] == [0, 0]
    assert len(runs(StudyPaths(tmp_path, "a"))[1]) == 1
    assert len(runs(StudyPaths(tmp_path, "b"))[1]) == 1
