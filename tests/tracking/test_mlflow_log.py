"""Against a real MLflow on SQLite: one database for the module, because making it takes seconds.

What a reviewer finds there is in `test_mlflow_review`.
"""

from __future__ import annotations

import itertools
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from sweeper.config.schema import SpaceConfig, SweeperConfig, TrackingConfig
from sweeper.tracking.journal import Journal
from sweeper.tracking.lock import StudyLock
from sweeper.tracking.mlflow_form import run_form
from sweeper.tracking.mlflow_log import MlflowTracker, Patience, StudySummary
from sweeper.tracking.mlflow_store import MlflowStore
from sweeper.tracking.paths import StudyPaths
from sweeper.trial.outcome import TrialOutcome
from tests.factories import outcome, study
from tests.tracking.mirror import assert_mirrors

# A loaded machine is no hanging MLflow.
PATIENT = Patience(study_s=300, once_s=60, end_quiet_s=60, end_s=120, first_pause_s=0)
UNWANTED: list[str] = []
COUNTER = itertools.count()
IDENTITY = {"engine": {"name": "vllm", "version": "0.32.0"}, "model": {"name": "tiny"}}


@pytest.fixture(scope="module")
def studies(tmp_path_factory: pytest.TempPathFactory, empty_database: Path) -> Path:
    folder = tmp_path_factory.mktemp("st udies")
    shutil.copy(empty_database, folder / "mlflow.db")
    return folder


@pytest.fixture
def paths(studies: Path, request: pytest.FixtureRequest) -> StudyPaths:
    paths = StudyPaths(studies, f"{request.node.originalname}-{next(COUNTER)}"[-60:])
    paths.create()
    return paths


def tracker(paths: StudyPaths, warn: Any = None, **tracking: Any) -> MlflowTracker:
    cfg = SweeperConfig(
        tracking=TrackingConfig(**tracking),
        space=SpaceConfig(parameters={"max_num_seqs": {}, "quantization": {}}),
    )
    heard = UNWANTED.append if warn is None else warn
    return MlflowTracker(cfg, paths, IDENTITY, paths.name, warn=heard, patience=PATIENT)


@contextmanager
def tracked(paths: StudyPaths, *outcomes: TrialOutcome, **how: Any) -> Iterator[MlflowTracker]:
    """A tracker that has logged, and that a kill ends with the block."""
    mirror = tracker(paths, **how)
    try:
        for one in outcomes:
            mirror.record(one)
        yield mirror
    finally:
        mirror.close()


@pytest.fixture(autouse=True)
def no_unwanted_warning() -> Iterator[None]:
    UNWANTED.clear()
    yield
    assert UNWANTED == []


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
    assert parent.data.metrics == {"front_size": 4.0, "best_so_far_output_tokens_per_s": 320.0}
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
        "model": "tiny",
        "engine": "vllm 0.32.0",
        "hardware": "unknown",
        "workload": "synthetic",
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


def broken(*_: Any) -> Any:
    raise OSError("no route")


def journalled(paths: StudyPaths, outcomes: list[TrialOutcome]) -> Path:
    for one in outcomes:
        Journal(paths.trials_jsonl).append(one)
    return paths.trials_jsonl


def test_sync_is_idempotent_and_repairs_half_logged_runs(
    paths: StudyPaths, monkeypatch: pytest.MonkeyPatch
) -> None:
    outcomes = study()
    with tracked(paths, outcomes[0]):
        pass
    with monkeypatch.context() as patch:
        # The tuner dies between opening the child run and filling it.
        patch.setattr(MlflowStore, "fill", broken)
        with tracked(paths, outcomes[1], warn=lambda _: None):
            pass
    assert runs(paths)[1]["001-search"].info.status == "RUNNING"

    end = StudySummary(tags={"ended": "killed"}, status="KILLED", metrics={"front_size": 1.0})
    report = tracker(paths).sync(outcomes, end)
    assert (report.logged, report.repaired, report.present, report.error) == (3, 1, 1, None)
    before = everything(paths)
    again = tracker(paths).sync(outcomes, end)
    assert (again.logged, again.repaired, again.present) == (0, 0, 5)
    assert everything(paths) == before
    assert_mirrors(journalled(paths, outcomes), uri(paths), paths.name)


def everything(paths: StudyPaths) -> Any:
    """All that MLflow shows of a study, but for the times at which runs were ended."""
    parent, children = runs(paths)
    return {
        run.info.run_id: (
            run.info.status,
            run.data.params,
            run.data.tags,
            {
                name: [(m.step, m.value, m.timestamp) for m in history(paths, run, name)]
                for name in run.data.metrics
            },
        )
        for run in (parent, *children.values())
    }


def history(paths: StudyPaths, run: Any, name: str) -> Any:
    return client(paths).get_metric_history(run.info.run_id, name)


def uri(paths: StudyPaths) -> str:
    return f"sqlite:///{paths.mlflow_db}"


def test_a_parent_shown_as_running_is_running(paths: StudyPaths) -> None:
    """A run of the study opens it, its end closes it, and a sync leaves it as it ended."""
    with tracked(paths, outcome(0)):
        assert runs(paths)[0].info.status == "RUNNING"
    tracker(paths).sync([outcome(0)], StudySummary(status="KILLED"))
    assert runs(paths)[0].info.status == "KILLED"
    with tracked(paths, outcome(1)) as mirror:
        assert runs(paths)[0].info.status == "RUNNING"
        mirror.finish(StudySummary())
    assert runs(paths)[0].info.status == "FINISHED"


@pytest.mark.parametrize(
    ("ended", "status"),
    [
        ("stopped: KeyboardInterrupt", "KILLED"),
        ("stopped", "KILLED"),
        ("stopped: StudyError", "FAILED"),
    ],
)
def test_a_study_that_was_stopped_or_failed_says_so(
    paths: StudyPaths, ended: str, status: str
) -> None:
    with tracked(paths) as mirror:
        mirror.start()
        mirror.finish(StudySummary(tags={"ended": ended}, interrupted=True))
        mirror.finish(StudySummary())  # the first call counts
    assert runs(paths)[0].info.status == status


def test_a_study_that_is_mirrored_is_left_to_its_tuner(paths: StudyPaths) -> None:
    """Two processes that log one study would log every trial twice."""
    with tracked(paths, outcome(0)):
        report = tracker(paths, warn=lambda _: None).sync([outcome(0), outcome(1)])
        assert report.mirrored_by is not None
        assert str(os.getpid()) in report.mirrored_by
    assert len(runs(paths)[1]) == 1


def test_the_next_study_of_the_folder_ends_what_a_killed_tuner_left(
    paths: StudyPaths, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(MlflowStore, "fill", broken)
        with tracked(paths, outcome(0), warn=lambda _: None):
            pass
    held = StudyPaths(paths.studies_dir, f"{paths.name}-held")
    held.create()
    with tracked(held, outcome(0)):
        pass
    other = StudyPaths(paths.studies_dir, f"{paths.name}-other")
    other.create()
    with StudyLock(held.lock), tracked(other, outcome(0)):
        parent, children = runs(paths)
        assert parent.info.status == "KILLED"
        assert children["000-baseline"].info.status == "KILLED"
        assert runs(held)[0].info.status == "RUNNING"
    tracker(paths).sync([outcome(0)], StudySummary(status="KILLED"))
    assert_mirrors(journalled(paths, [outcome(0)]), uri(paths), paths.name)


def test_a_lost_record_of_the_parent_finds_it_by_its_tags(paths: StudyPaths) -> None:
    with tracked(paths, outcome(0)):
        pass
    paths.mlflow_record.unlink()
    with tracked(paths, outcome(1)):
        pass
    assert len(runs(paths)[1]) == 2


@pytest.mark.parametrize("when", ["between runs", "in the middle"])
def test_a_deleted_parent_is_made_anew_and_takes_its_children_along(
    paths: StudyPaths, when: str
) -> None:
    with tracked(paths, outcome(0)) as first:
        client(paths).delete_run(runs(paths)[0].info.run_id)
        if when == "in the middle":
            first.record(outcome(1))
            first.finish(StudySummary())
    with tracked(paths) as second:
        second.replay([outcome(0), outcome(1)])
        second.finish(StudySummary())
    assert_mirrors(journalled(paths, [outcome(0), outcome(1)]), uri(paths), paths.name)


def test_a_deleted_child_and_a_second_one_are_put_right(paths: StudyPaths) -> None:
    with tracked(paths, outcome(0), outcome(1)) as mirror:
        twin = mirror._store.create_child(run_form(outcome(1), []))
        client(paths).delete_run(runs_of(paths, "000-baseline")[0].info.run_id)
    assert twin in {run.info.run_id for run in runs_of(paths, "001-search")}
    report = tracker(paths).sync([outcome(0), outcome(1)], StudySummary())
    assert (report.logged, report.present) == (1, 1)
    assert_mirrors(journalled(paths, [outcome(0), outcome(1)]), uri(paths), paths.name)


def runs_of(paths: StudyPaths, name: str) -> list[Any]:
    experiment = client(paths).get_experiment_by_name("sweeper").experiment_id
    query = f"tags.`sweeper.study` = '{paths.name}' and attributes.run_name = '{name}'"
    return list(client(paths).search_runs([experiment], query))


def test_two_folders_may_have_studies_of_one_name(paths: StudyPaths, tmp_path: Path) -> None:
    other = StudyPaths(tmp_path, paths.name)
    other.create()
    with tracked(paths, outcome(0)), tracked(other, outcome(0), uri=uri(paths)):
        pass
    found = client(paths).search_runs(
        [client(paths).get_experiment_by_name("sweeper").experiment_id],
        f"tags.`sweeper.study` = '{paths.name}' and tags.`sweeper.role` = 'study'",
    )
    assert len(found) == 2


def test_failure_warns_once_keeps_everything_and_is_caught_up(
    paths: StudyPaths, monkeypatch: pytest.MonkeyPatch
) -> None:
    warnings: list[str] = []
    outcomes = study()
    with tracked(paths, warn=warnings.append) as mirror:
        with monkeypatch.context() as patch:
            patch.setattr(MlflowStore, "create_child", broken)
            for one in outcomes[:2]:
                mirror.record(one)
        assert len(warnings) == 1
        assert "no route" in warnings[0]
        assert f"sync study={paths.name}" in warnings[0]
        mirror.record(outcomes[2])
        mirror.finish(StudySummary())
    assert_mirrors(journalled(paths, outcomes[:3]), uri(paths), paths.name)
    assert warnings[1:] == ["MLflow tracking works again"]


def test_a_child_that_was_half_filled_last_is_not_opened_twice(
    paths: StudyPaths, monkeypatch: pytest.MonkeyPatch
) -> None:
    with tracked(paths, warn=lambda _: None) as mirror:
        with monkeypatch.context() as patch:
            patch.setattr(MlflowStore, "fill", broken)
            mirror.record(outcome(0))
        mirror.finish(StudySummary())
    _, children = runs(paths)
    assert [run.info.status for run in children.values()] == ["FINISHED"]


def test_what_mlflow_refuses_is_left_out_and_blocks_nothing(
    paths: StudyPaths, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A name it does not take, a trial that has no form: the rest and all after them are logged."""
    warnings: list[str] = []
    odd, formless = outcome(1), outcome(2)
    monkeypatch.setattr(
        "sweeper.tracking.mlflow_mirror.run_form", partial(refused_forms, odd, formless)
    )
    with tracked(paths, outcome(0), odd, formless, outcome(3), warn=warnings.append):
        _, children = runs(paths)
    assert set(children) == {"000-baseline", "001-search", "003-search"}
    assert children["001-search"].data.tags["sweeper.left_out"] == "a(b)"
    assert children["001-search"].data.params == {"good": "1"}
    assert children["001-search"].data.metrics == {"m": 1.0}
    assert len(warnings) == 1
    assert "a(b)" in warnings[0]


def refused_forms(odd: TrialOutcome, formless: TrialOutcome, one: TrialOutcome, names: Any) -> Any:
    if one is formless and names:
        raise ValueError("no form")
    form = run_form(one, names)
    if one is odd:
        return replace(form, params={"a(b)": "1", "good": "1"}, metrics=[("m", 1.0, 0)])
    return form


def test_artifacts_that_cannot_be_stored_cost_only_themselves(
    paths: StudyPaths, monkeypatch: pytest.MonkeyPatch
) -> None:
    warnings: list[str] = []
    with monkeypatch.context() as patch:
        patch.setattr("mlflow.MlflowClient.log_artifact", broken)
        with tracked(paths, outcome(0), warn=warnings.append) as mirror:
            mirror.finish(StudySummary())
    assert [text for text in warnings if "artifacts" in text] == warnings
    assert len(warnings) == 1
    parent, children = runs(paths)
    assert parent.info.status == children["000-baseline"].info.status == "FINISHED"
    assert children["000-baseline"].data.metrics
    # They are tried again by the next sync.
    assert tracker(paths).sync([outcome(0)], StudySummary()).repaired == 1
    assert_mirrors(journalled(paths, [outcome(0)]), uri(paths), paths.name)


def test_a_study_that_was_not_tracked_can_be_synced_later(paths: StudyPaths) -> None:
    with tracked(paths, outcome(0), enabled=False):
        pass
    assert tracker(paths, enabled=True).sync([outcome(0)]).logged == 1
    assert len(runs(paths)[1]) == 1


def test_odd_figures_never_reach_mlflow(paths: StudyPaths) -> None:
    odd = {"front_size": float("nan"), "ratio": float("inf"), "good(%)": 2.0}
    with tracked(paths, outcome(0)) as mirror:
        mirror.finish(StudySummary(metrics=odd, tags={"headline": "x" * 9000}))
    told = runs(paths)[0].data.metrics
    assert told == {"good_pct_": 2.0, "best_so_far_output_tokens_per_s": 100.0}


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
    with tracked(paths, outcome(0), enabled=False) as mirror:
        assert mirror.sync([outcome(0)]).logged == 0
        mirror.finish(StudySummary())
    assert not paths.mlflow_db.exists()


def test_deleted_experiment_is_named(paths: StudyPaths) -> None:
    """Somebody meant it: it is neither restored nor replaced behind their back."""
    warnings: list[str] = []
    with tracked(paths, outcome(0), experiment="gone"):
        pass
    mlflow = client(paths)
    mlflow.delete_experiment(mlflow.get_experiment_by_name("gone").experiment_id)
    with tracked(paths, outcome(1), warn=warnings.append, experiment="gone"):
        pass
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
mirror = MlflowTracker(SweeperConfig(), paths, {}, paths.name)
report = mirror.sync([outcome(0)])
sys.exit(report.error)
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
