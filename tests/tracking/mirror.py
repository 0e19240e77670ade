"""Does MLflow say exactly what the journal says? Used wherever a study was mirrored."""

from __future__ import annotations

import json
import math
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import yaml

from sweeper.tracking.journal import Journal
from sweeper.tracking.mlflow_form import UNMADE, Columns, RunForm, run_form
from sweeper.tracking.mlflow_subject import served
from sweeper.trial.outcome import TrialOutcome

CONDITIONS = ("model", "engine", "hardware", "workload")
ENDED = {"FINISHED", "FAILED", "KILLED"}


def assert_mirrors(
    journal_path: Path,
    tracking_uri: str,
    study: str,
    *,
    experiment: str = "sweeper",
    running: bool = False,
    artifacts: bool = True,
) -> None:
    """Assert that a study's runs in MLflow are the study's journal, no more and no less.

    One parent run; under it one child run for every journalled attempt and none besides, none of
    the study elsewhere; each child's name, params, metrics (every value, step and time, each once),
    tags, end, data set, model and ``outcome.json`` as its journal line has them; nothing NaN or
    infinite; no run left RUNNING.

    Args:
        journal_path: ``trials.jsonl``; `study.yaml` beside it names the columns, if it is there.
        tracking_uri: as given to ``tracking.uri``; ``sqlite:///FOLDER/mlflow.db`` for the embedded.
        study: the study's name, as the runs are tagged with.
        experiment: ``tracking.experiment``.
        running: True while a tuner works on the study: the parent must then be RUNNING.
        artifacts: False if the artifacts cannot be read from here.

    Raises:
        AssertionError: naming the run and what differs.
    """
    from mlflow import MlflowClient

    client = MlflowClient(tracking_uri=tracking_uri)
    found = client.get_experiment_by_name(experiment)
    assert found is not None, f"no experiment {experiment!r} at {tracking_uri}"
    runs = client.search_runs(
        [found.experiment_id], f"tags.`sweeper.study` = '{study}'", max_results=5000
    )
    parents = [run for run in runs if run.data.tags.get("sweeper.role") == "study"]
    assert len(parents) == 1, f"{len(parents)} parent runs of {study!r}"
    state = parents[0].info.status
    assert state == "RUNNING" if running else state in ENDED, f"the parent is {state}"
    outcomes = Journal(journal_path).read()
    _assert_children(client, runs, parents[0], outcomes)
    _assert_lineage(client, runs, outcomes)
    columns = _columns(journal_path.with_name("study.yaml"))
    for outcome in outcomes:
        run = next(run for run in runs if _key(run) == (outcome.number, outcome.attempt))
        _assert_child(client, run, outcome, run_form(outcome, columns))
        if artifacts:
            _assert_artifact(client, run, outcome)


def _assert_children(client: Any, runs: list[Any], parent: Any, outcomes: list[Any]) -> None:
    children = [run for run in runs if run.info.run_id != parent.info.run_id]
    lost = [r for r in children if r.data.tags.get("mlflow.parentRunId") != parent.info.run_id]
    assert not lost, f"runs of the study under another parent: {[r.info.run_name for r in lost]}"
    expected = Counter((outcome.number, outcome.attempt) for outcome in outcomes)
    there = Counter(_key(run) for run in children)
    assert there == expected, f"runs {dict(there)}, journal {dict(expected)} (number, attempt)"


def _assert_child(client: Any, run: Any, outcome: TrialOutcome, form: RunForm) -> None:
    where = f"run {run.info.run_name}"
    assert run.info.run_name == form.name, where
    assert run.info.status == ("FINISHED" if outcome.verdict == "OK" else "FAILED"), (
        f"{where} is {run.info.status}, its verdict {outcome.verdict}"
    )
    params = run.data.params
    assert {k: params.get(k) for k in form.params} == form.params, f"{where}: params"
    others = {k for k in params if k not in form.params} - {*CONDITIONS}
    left = {params[k] for k in others}
    assert left <= {"default", UNMADE}, f"{where}: params beyond the deployment's"
    assert {*CONDITIONS} <= {*params}, f"{where}: params of the study"
    tags = {k: run.data.tags.get(k) for k in form.tags}
    assert tags == form.tags, f"{where}: tags {tags}"
    assert run.data.tags.get("sweeper.complete") == "true", f"{where}: not complete"
    assert set(run.data.metrics) == {name for name, _, _ in form.metrics}, f"{where}: metric names"
    expected = Counter((name, value, step, form.timestamp_ms) for name, value, step in form.metrics)
    logged = Counter(
        (metric.key, metric.value, metric.step, metric.timestamp)
        for name in run.data.metrics
        for metric in client.get_metric_history(run.info.run_id, name)
    )
    assert logged == expected, f"{where}: too much {logged - expected}, missing {expected - logged}"
    assert all(math.isfinite(value) for _, value, _, _ in logged), f"{where}: not finite"


def _assert_artifact(client: Any, run: Any, outcome: TrialOutcome) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = client.download_artifacts(run.info.run_id, "outcome.json", folder)
        text = Path(path).read_text(encoding="utf-8")
    assert json.loads(text) == json.loads(json.dumps(outcome.to_dict())), (
        f"run {run.info.run_name}: outcome.json is not the journal's line"
    )


def _assert_lineage(client: Any, runs: list[Any], outcomes: list[Any]) -> None:
    """Every run was driven with one data set; every trial that was served says which model."""
    data = {(d.dataset.name, d.dataset.digest) for run in runs for d in run.inputs.dataset_inputs}
    assert len(data) == 1, f"data sets {data}"
    assert all(len(run.inputs.dataset_inputs) == 1 for run in runs), "a run without its data set"
    experiment = runs[0].info.experiment_id
    models = {
        model.model_id: model.tags["sweeper.checkpoint"]
        for model in client.search_logged_models([experiment])
        if model.tags.get("sweeper.identity") == runs[0].data.tags["sweeper.identity"]
        and model.tags.get("sweeper.study") == runs[0].data.tags["sweeper.study"]
    }
    assert len({*models.values()}) == len(models), f"a checkpoint is two models: {models}"
    whole = [client.get_run(run.info.run_id) for run in runs]
    told = {_key(run): [models[i.model_id] for i in run.inputs.model_inputs] for run in whole}
    for outcome in outcomes:
        model = served(outcome)
        expected = [] if model is None else [model.key]
        assert told[outcome.number, outcome.attempt] == expected, f"trial {outcome.number}: model"


def _key(run: Any) -> tuple[int, int]:
    return int(run.data.tags.get("number", -1)), int(run.data.tags.get("attempt", 1))


def _columns(study_yaml: Path) -> Columns:
    if not study_yaml.exists():
        return Columns()
    stored = yaml.safe_load(study_yaml.read_text(encoding="utf-8"))
    space = stored["config"]["space"]
    names = tuple(sorted({*space["parameters"], *space["fixed"]}))
    return Columns(names, quantizes="quantize" in stored["identity"])
