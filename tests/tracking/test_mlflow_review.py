"""MLflow as a place to review a study: what is searched, compared, described and linked there.

On a real MLflow; the filter strings are those of docs/mlflow.md.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sweeper.config.schema import (
    SelectConfig,
    SloConfig,
    SpaceConfig,
    SweeperConfig,
    WorkloadConfig,
)
from sweeper.pareto.points import points_frame
from sweeper.pareto.select import recommend
from sweeper.report.mlflow_note import told_to_mlflow
from sweeper.tracking.journal import Journal
from sweeper.tracking.mlflow_log import MlflowTracker, StudySummary
from sweeper.tracking.mlflow_view import TAG_PREFIX
from sweeper.tracking.paths import StudyPaths
from sweeper.trial.outcome import TrialOutcome
from sweeper.verdicts import Verdict
from tests.factories import outcome, point, quality, study
from tests.report.traded import made
from tests.tracking.mirror import assert_mirrors

ROOT = Path(__file__).resolve().parents[2]
IDENTITY: dict[str, Any] = {
    "engine": {"name": "vllm", "version": "0.32.0", "distribution": "vllm"},
    "model": {"name": "org/Tiny-1.5B", "digest": "d0"},
    "hardware": {"kind": "cuda", "name": "h100", "device_count": 2},
    "workload": {"kind": "synthetic", "input_tokens": 512, "sha256": "5e"},
    "quantize": {"w4a16": {"tool": "llmcompressor"}},
}
CONDITIONS = {
    "model": "org/Tiny-1.5B",
    "engine": "vllm 0.32.0",
    "hardware": "2 x h100",
    "workload": "chat",
}
MODEL = {"name": "org/Tiny-1.5B", "digest": "d0", "licence": "apache-2.0"}
CFG = SweeperConfig(
    workload=WorkloadConfig(name="chat"),
    space=SpaceConfig(
        parameters={"max_num_seqs": {}, "quantization": {}, "tensor_parallel_size": {}},
        fixed={"enable_prefix_caching": False},
    ),
    select=SelectConfig(slo=SloConfig(e2e_p95_ms=1000)),
)


def whole_study() -> list[TrialOutcome]:
    """Baseline, two better, one out of memory, one refused, one tried twice, one confirmation."""
    trials = study()
    trials.append(outcome(5, verdict=Verdict.INFRA))
    trials.append(
        outcome(
            5,
            attempt=2,
            deployment={"max_num_seqs": 128},
            points=[point(1), point(8, throughput=500.0, e2e_p95_ms=390.0)],
        )
    )
    trials.append(outcome(6, kind="confirm", repeats=1, deployment=trials[1].deployment))
    for one in trials:
        one.manifest |= {"model": MODEL, "quantization": "none", "precision": "engine default"}
        one.manifest |= {"checkpoint": "org/Tiny-1.5B"}
        one.points = [replace(p, metrics=dict(p.metrics)) for p in one.points]
    trials[2].manifest |= {
        "quantization": "w4a16",
        "made": made("w4a16", "llmcompressor", group_size=32),
    }
    return trials


@pytest.fixture(scope="module")
def paths(tmp_path_factory: pytest.TempPathFactory, empty_database: Path) -> StudyPaths:
    """A study that ended and was mirrored twice."""
    paths = StudyPaths(tmp_path_factory.mktemp("studies"), "reviewed")
    paths.create()
    shutil.copy(empty_database, paths.mlflow_db)
    for one in whole_study():
        Journal(paths.trials_jsonl).append(one)
    for path in (paths.report_html, paths.report_md, paths.pareto_csv):
        path.write_text("x")
    paths.recommended_dir.mkdir()
    (paths.recommended_dir / "vllm.yaml").write_text("model: x\n")
    report = sync(paths)
    assert (report.logged, report.error) == (8, None)
    before = everything(paths)
    again = sync(paths)
    assert (again.logged, again.repaired, again.present, again.error) == (0, 0, 8, None)
    assert everything(paths) == before
    return paths


def sync(paths: StudyPaths, **told: Any) -> Any:
    return MlflowTracker(CFG, paths, IDENTITY, paths.name).sync(
        whole_study(), replace(summary(paths), **told)
    )


def summary(paths: StudyPaths) -> StudySummary:
    frame = points_frame(whole_study())
    found = recommend(frame, CFG.select)
    return told_to_mlflow(CFG, paths, whole_study(), frame, recommendation=found, ended="used up")


def client(paths: StudyPaths) -> Any:
    from mlflow import MlflowClient

    return MlflowClient(tracking_uri=f"sqlite:///{paths.mlflow_db}")


def search(paths: StudyPaths, query: str) -> dict[str, Any]:
    experiment = client(paths).get_experiment_by_name("sweeper").experiment_id
    found = client(paths).search_runs([experiment], query, max_results=1000)
    return {run.info.run_name: run for run in found}


def children(paths: StudyPaths) -> dict[str, Any]:
    return search(paths, "tags.`sweeper.role` = 'trial'")


def parent(paths: StudyPaths) -> Any:
    (run,) = search(paths, "tags.`sweeper.role` = 'study'").values()
    return run


def everything(paths: StudyPaths) -> Any:
    """All that MLflow shows of the study."""
    runs = {**children(paths), "parent": parent(paths)}
    shown = client(paths)
    return {
        name: (
            run.info.status,
            run.info.end_time,
            run.data.params,
            run.data.tags,
            {m: [(p.step, p.value, p.timestamp) for p in shown.get_metric_history(id_, m)]
             for m in run.data.metrics},
            [d.dataset.digest for d in run.inputs.dataset_inputs],
            served(paths, run),
            sorted(f.path for f in shown.list_artifacts(id_)),
        )
        for name, run in runs.items()
        for id_ in [run.info.run_id]
    }  # fmt: skip


def served(paths: StudyPaths, run: Any) -> list[str]:
    """Ids of the models of a run; MLflow's search does not tell them."""
    inputs = client(paths).get_run(run.info.run_id).inputs.model_inputs
    return sorted(model.model_id for model in inputs)


def test_the_mirror_is_the_journal(paths: StudyPaths) -> None:
    assert_mirrors(paths.trials_jsonl, f"sqlite:///{paths.mlflow_db}", paths.name)


def filters() -> Iterator[Any]:
    """Rows of the table of filters: (filter string, names of the runs it finds in this study)."""
    page = (ROOT / "docs" / "mlflow.md").read_text(encoding="utf-8")
    table = page.split("## Filters")[1].split("\n## ")[0]
    for line in table.splitlines():
        found = re.match(r"\| ``? ?(.+?) ?``? \| ", line)
        if found and "---" not in line:
            yield pytest.param(found[1].replace("\\|", "|"), id=found[1])


EXPECTED = {
    "tags.`sweeper.role` = 'study'": {"reviewed"},
    "tags.`sweeper.study` = 'NAME' and tags.`sweeper.role` = 'trial'": {
        "000-baseline", "001-search", "002-search", "003-search", "004-search", "005-search",
        "005-search-retry2", "006-confirm",
    },
    "tags.pareto = 'true'": {"001-search", "002-search", "005-search-retry2"},
    "tags.recommended = 'true'": {"005-search-retry2"},
    "tags.verdict != 'OK'": {"003-search", "004-search", "005-search"},
    "tags.verdict = 'CAPACITY'": {"003-search"},
    "tags.launch = 'false'": {"004-search"},
    "tags.kind = 'confirm'": {"006-confirm"},
    "tags.repeats = '1'": {"006-confirm"},
    "tags.attempt = '2'": {"005-search-retry2"},
    "tags.confirmation = 'better'": set(),
    "tags.`sweeper.numbers` = 'predicted'": set(),
    "tags.`sweeper.numbers` = 'replayed'": set(),
    "tags.pareto = 'true' and metrics.best_e2e_p95_ms < 1000": {"002-search", "005-search-retry2"},
    "metrics.best_output_tokens_per_s_per_gpu > 300": {"001-search", "005-search-retry2"},
    "params.quantization = 'default' and attributes.status = 'FINISHED'": {
        "000-baseline", "001-search", "005-search-retry2", "006-confirm",
    },
}  # fmt: skip


@pytest.mark.parametrize("query", list(filters()))
def test_every_filter_of_the_page_finds_what_it_says(paths: StudyPaths, query: str) -> None:
    found = set(search(paths, query.replace("NAME", paths.name)))
    assert found == EXPECTED[query]


def test_no_filter_is_tested_that_the_page_lacks() -> None:
    assert {param.values[0] for param in filters()} == set(EXPECTED)


def test_children_have_the_same_params_so_that_they_compare_without_set_up(
    paths: StudyPaths,
) -> None:
    runs = children(paths)
    (names,) = {frozenset(run.data.params) for run in runs.values()}
    assert {*CFG.space.parameters, *CFG.space.fixed, *CONDITIONS} <= names
    assert all({k: run.data.params[k] for k in CONDITIONS} == CONDITIONS for run in runs.values())
    assert runs["002-search"].data.params["quantize.recipe"] == "w4a16"
    assert runs["001-search"].data.params["quantize.recipe"] == "none"


def test_no_metric_that_plots_need_is_missing_of_a_trial_that_was_ok(paths: StudyPaths) -> None:
    plotted = {
        "best_output_tokens_per_s_per_gpu",
        "best_output_tokens_per_s",
        "best_e2e_p95_ms",
        "best_ttft_p95_ms",
        "best_tpot_p95_ms",
        "best_concurrency",
        "quality",
    }
    ok = search(paths, "tags.verdict = 'OK' and tags.`sweeper.role` = 'trial'")
    assert len(ok) == 5
    for name, run in ok.items():
        assert plotted <= set(run.data.metrics), name
        first = next(iter(run.data.metrics))
        assert first == "best_output_tokens_per_s_per_gpu", "what MLflow's plots offer first"


def test_only_the_attempt_that_counts_is_marked(paths: StudyPaths) -> None:
    """The first attempt of a trial on the front failed: it is on no front."""
    runs = children(paths)
    assert runs["005-search-retry2"].data.tags["pareto"] == "true"
    assert runs["005-search"].data.tags["pareto"] == "false"


def test_the_parent_run_sums_the_study_up(paths: StudyPaths) -> None:
    run = parent(paths)
    told = run.data.metrics
    assert told["launches"] == 7 and told["failures"] == 2 and told["trials_refused"] == 1
    assert told["study_best_under_slo_output_tokens_per_s"] == 500
    assert told["gain_percent"] == pytest.approx(400)
    assert told["gain_low_percent"] < 400 < told["gain_high_percent"]
    assert run.data.params == CONDITIONS
    files = {f.path for f in client(paths).list_artifacts(run.info.run_id)}
    assert files == {"report.html", "report.md", "pareto.csv", "recommended"}
    inside = client(paths).list_artifacts(run.info.run_id, "recommended")
    assert [f.path for f in inside] == ["recommended/vllm.yaml"]
    curve = client(paths).get_metric_history(run.info.run_id, "best_so_far_output_tokens_per_s")
    assert {m.step: m.value for m in curve} == {
        1: 180, 2: 320, 3: 320, 4: 320, 5: 320, 6: 500, 7: 500,
    }  # fmt: skip


def test_the_description_begins_with_the_verdict_and_leads_to_the_charts(
    paths: StudyPaths,
) -> None:
    run = parent(paths)
    first, link = run.data.tags["mlflow.note.content"].split("\n\n")[:2]
    assert first.startswith("**Trial 5 at concurrency 8")
    assert link.startswith("[Charts of this study](#/experiments/")
    experiment = client(paths).get_experiment_by_name("sweeper")
    key = f"{TAG_PREFIX}sweeper-{run.info.run_id}"
    assert key in experiment.tags and key.removeprefix(TAG_PREFIX) in link
    assert experiment.tags["mlflow.experimentKind"] == "custom_model_development"


def test_a_failed_trial_says_why_and_what_to_change(paths: StudyPaths) -> None:
    text = children(paths)["003-search"].data.tags["mlflow.note.content"]
    assert "**CAPACITY** in phase start" in text
    assert "raise gpu_memory_utilization" in text


def test_every_run_names_the_data_set_and_every_trial_the_model_it_served(
    paths: StudyPaths,
) -> None:
    runs = {**children(paths), "parent": parent(paths)}
    for run in runs.values():
        (used,) = run.inputs.dataset_inputs
        assert (used.dataset.name, len(used.dataset.digest)) == ("chat", 16)
    experiment = client(paths).get_experiment_by_name("sweeper").experiment_id
    models = {m.model_id: m for m in client(paths).search_logged_models([experiment])}
    assert {m.name for m in models.values()} == {
        "org-Tiny-1-5B as published",
        "org-Tiny-1-5B w4a16",
    }
    (quantized,) = served(paths, runs["002-search"])
    model = models[quantized]
    assert (model.name, str(model.status)) == ("org-Tiny-1-5B w4a16", "READY")
    assert (model.params["bits"], model.params["digest"]) == ("4", "d0")
    told = {(m.key, m.run_id, m.dataset_name) for m in model.metrics}
    assert ("quality", runs["002-search"].info.run_id, "chat") in told
    assert not any(key == "ttft_p95_ms" for key, _, _ in told), "figures of a level are no model's"
    assert served(paths, runs["004-search"]) == []
    assert served(paths, runs["parent"]) == sorted(models)


def test_a_run_of_an_earlier_version_is_completed(paths: StudyPaths) -> None:
    old = children(paths)["001-search"].info.run_id
    client(paths).delete_tag(old, "sweeper.form")
    client(paths).delete_tag(old, "launch")
    report = sync(paths)
    assert (report.logged, report.repaired, report.present) == (0, 1, 7)
    run = children(paths)["001-search"]
    assert run.info.run_id == old and run.data.tags["launch"] == "true"
    assert_mirrors(paths.trials_jsonl, f"sqlite:///{paths.mlflow_db}", paths.name)


def test_a_description_of_somebody_s_own_stays(paths: StudyPaths) -> None:
    run, ours = parent(paths).info.run_id, parent(paths).data.tags["mlflow.note.content"]
    client(paths).set_tag(run, "mlflow.note.content", "Reviewed by me: ship it.")
    sync(paths)
    assert parent(paths).data.tags["mlflow.note.content"] == "Reviewed by me: ship it."
    client(paths).set_tag(run, "mlflow.note.content", ours)
    sync(paths, note="A newer one.")
    assert parent(paths).data.tags["mlflow.note.content"].startswith("A newer one.")


def test_a_server_that_knows_neither_models_nor_data_sets_takes_all_else(
    paths: StudyPaths, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, empty_database: Path
) -> None:
    from mlflow.exceptions import MlflowException
    from mlflow.protos.databricks_pb2 import ErrorCode

    def unknown(*_: Any, **__: Any) -> Any:
        raise MlflowException("404", error_code=ErrorCode.Value("ENDPOINT_NOT_FOUND"))

    for name in ("log_inputs", "search_logged_models", "create_logged_model"):
        monkeypatch.setattr(f"mlflow.MlflowClient.{name}", unknown)
    old = StudyPaths(tmp_path, "old")
    old.create()
    shutil.copy(empty_database, old.mlflow_db)
    said: list[str] = []
    tracker = MlflowTracker(CFG, old, IDENTITY, "old", warn=said.append)
    report = tracker.sync([replace(one, quality=quality()) for one in whole_study()[:2]])
    assert (report.logged, report.error, said) == (2, None, [])
    metrics = children(old)["001-search"].data.metrics
    assert metrics["best_output_tokens_per_s"] == 320


def test_what_is_refused_of_one_run_is_tried_again_of_the_next(
    paths: StudyPaths, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, empty_database: Path
) -> None:
    from mlflow import MlflowClient
    from mlflow.exceptions import MlflowException
    from mlflow.protos.databricks_pb2 import ErrorCode

    calls: list[str] = []
    log_inputs = MlflowClient.log_inputs

    def refused_once(self: Any, run_id: str, **told: Any) -> Any:
        calls.append(run_id)
        if len(calls) == 2:
            code = ErrorCode.Value("INVALID_PARAMETER_VALUE")
            raise MlflowException("no such digest", error_code=code)
        return log_inputs(self, run_id, **told)

    monkeypatch.setattr("mlflow.MlflowClient.log_inputs", refused_once)
    fussy = StudyPaths(tmp_path, "fussy")
    fussy.create()
    shutil.copy(empty_database, fussy.mlflow_db)
    tracker = MlflowTracker(CFG, fussy, IDENTITY, "fussy")
    report = tracker.sync(whole_study()[:2])
    assert (report.logged, report.error) == (2, None)
    runs = children(fussy)
    assert [len(runs[n].inputs.dataset_inputs) for n in ("000-baseline", "001-search")] == [0, 1]
