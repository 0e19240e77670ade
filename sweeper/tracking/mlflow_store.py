"""The one module that speaks to MLflow: experiment, parent and child runs of one study."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import socket
import tempfile
import time
import warnings
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import sweeper
from sweeper.config.identity import identity_hash
from sweeper.config.schema import TrackingConfig
from sweeper.tracking.lock import exclusive
from sweeper.tracking.mlflow_form import RunForm, safe_names
from sweeper.tracking.paths import StudyPaths, atomic_write_text

LOG_TAIL_BYTES = 1 << 20
_COMPLETE = "sweeper.complete"


@dataclass(frozen=True)
class StudyTags:
    """What the parent run is tagged with."""

    study: str
    identity: str
    engine: str
    model: str

    @classmethod
    def of(cls, identity: Mapping[str, Any], study_name: str) -> StudyTags:
        return cls(
            study=study_name,
            identity=identity_hash(dict(identity)),
            engine=_label(identity.get("engine")),
            model=_label(identity.get("model")),
        )


@dataclass(frozen=True)
class Child:
    """A child run that is already there; complete if everything of its trial was logged."""

    run_id: str
    complete: bool


class MlflowStore:
    """Runs of one study. Everything is made at first use; every method may raise what MLflow does.

    Args:
        cfg: URI, experiment, timeout.
        paths: the study's paths.
        tags: what the study is.
    """

    def __init__(self, cfg: TrackingConfig, paths: StudyPaths, tags: StudyTags) -> None:
        self._cfg = cfg
        self._paths = paths
        self._tags = tags
        self.uri = cfg.uri or f"sqlite:///{paths.mlflow_db}"

    @cached_property
    def _client(self) -> Any:
        client_class = _import_client(self._cfg.timeout_s)
        # Two processes that migrate one empty SQLite file at the same time break each other.
        guard = exclusive(self._paths.mlflow_lock) if self.uri.startswith("sqlite:") else None
        with guard or nullcontext():
            client = client_class(tracking_uri=self.uri)
            client.search_experiments(max_results=1)
            return client

    @cached_property
    def _experiment_id(self) -> str:
        """Get or create; another process may create it between the two, hence the retry."""
        name = self._cfg.experiment
        for _ in range(2):
            found = self._client.get_experiment_by_name(name)
            if found is not None:
                return _usable(found)
            try:
                return str(self._client.create_experiment(name, artifact_location=self._root()))
            except Exception:
                time.sleep(0.2)
        found = self._client.get_experiment_by_name(name)
        if found is None:
            return str(self._client.create_experiment(name, artifact_location=self._root()))
        return _usable(found)

    def _root(self) -> str | None:
        """Artifact root. A server decides for itself; without one, MLflow would use the cwd."""
        if self.uri.startswith(("http:", "https:", "databricks")):
            return None
        return self._paths.mlflow_artifacts.as_uri()

    @cached_property
    def parent_id(self) -> str:
        """The study's parent run: the recorded one, one found by its tags, or a new one."""
        run_id = self._recorded_parent() or self._found_parent()
        if run_id is None:
            run_id = self._client.create_run(
                self._experiment_id, run_name=self._tags.study, tags=self._parent_tags()
            ).info.run_id
        record = {"uri": self.uri, "run_id": run_id}
        atomic_write_text(self._paths.mlflow_record, json.dumps(record, indent=1) + "\n")
        return str(run_id)

    def reopen_parent(self) -> None:
        """Show the study as running, also if it had ended before."""
        if self._client.get_run(self.parent_id).info.status != "RUNNING":
            self._client.update_run(self.parent_id, status="RUNNING")

    def end_orphaned_parent(self) -> None:
        """End a parent run that is shown as running although no tuner works on it."""
        if self._client.get_run(self.parent_id).info.status == "RUNNING":
            self._client.set_terminated(self.parent_id, "KILLED")

    def children(self) -> dict[tuple[int, int], Child]:
        """(number, attempt) → the child run that has it."""
        query = f"tags.`mlflow.parentRunId` = '{self.parent_id}'"
        found: dict[tuple[int, int], Child] = {}
        for run in self._search(query):
            tags = run.data.tags
            key = (int(tags.get("number", -1)), int(tags.get("attempt", 1)))
            ended = run.info.status != "RUNNING"
            child = Child(run.info.run_id, ended and tags.get(_COMPLETE) == "true")
            if key not in found or child.complete:
                found[key] = child
        return found

    def create_child(self, form: RunForm) -> str:
        """Open a child run. Its tags come first, so that a half-filled one can be found again."""
        tags = {**form.tags, "mlflow.parentRunId": self.parent_id, **self._study_tags()}
        run = self._client.create_run(
            self._experiment_id, run_name=form.name, tags=tags, start_time=form.timestamp_ms or None
        )
        return str(run.info.run_id)

    def fill(self, run_id: str, form: RunForm, artifacts: Sequence[Path | tuple[str, Any]]) -> None:
        """Log everything of a trial and close its run; a second time changes nothing."""
        from mlflow.entities import Metric, Param

        stamp = form.timestamp_ms or int(time.time() * 1000)
        metrics = [Metric(name, value, stamp, step) for name, value, step in form.metrics]
        params = [Param(name, value) for name, value in form.params.items()]
        for start in range(0, max(len(metrics), 1), 900):
            chunk = metrics[start : start + 900]
            self._client.log_batch(run_id, metrics=chunk, params=params[:90] if not start else [])
        for start in range(90, len(params), 90):
            self._client.log_batch(run_id, params=params[start : start + 90])
        for artifact in artifacts:
            self._attach(run_id, artifact)
        self.tag(run_id, _COMPLETE, "true")
        self._client.set_terminated(run_id, "FINISHED" if form.finished else "FAILED")

    def tag(self, run_id: str, key: str, value: str) -> None:
        """Set one tag."""
        self._client.set_tag(run_id, key, value)

    def close_parent(
        self,
        *,
        metrics: Mapping[str, float],
        tags: Mapping[str, str],
        artifacts: Sequence[Path],
        status: str,
    ) -> None:
        """Fill and end the parent run."""
        names = safe_names(metrics)
        for name, value in metrics.items():
            self._client.log_metric(self.parent_id, names[name], value)
        for key, text in tags.items():
            self.tag(self.parent_id, key, text)
        for path in artifacts:
            folder = path.name if path.is_dir() else None
            log = self._client.log_artifacts if path.is_dir() else self._client.log_artifact
            log(self.parent_id, str(path), folder)
        self._client.set_terminated(self.parent_id, status)

    def _attach(self, run_id: str, artifact: Path | tuple[str, Any]) -> None:
        if isinstance(artifact, Path):
            name, text = artifact.name, _tail(artifact)
        else:
            name, text = artifact[0], json.dumps(artifact[1], indent=1, default=str)
        with tempfile.TemporaryDirectory() as folder:
            copy = Path(folder) / name
            copy.write_text(text, encoding="utf-8")
            self._client.log_artifact(run_id, str(copy))

    def _recorded_parent(self) -> str | None:
        try:
            record = json.loads(self._paths.mlflow_record.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        if not isinstance(record, dict) or record.get("uri") != self.uri:
            return None
        query = f"attributes.run_id = '{record.get('run_id')}'"
        return next((str(run.info.run_id) for run in self._search(query)), None)

    def _found_parent(self) -> str | None:
        """A parent whose id was not recorded because the tuner died in between."""
        tags = {k: v for k, v in self._parent_tags().items() if k in _PARENT_KEYS}
        query = " and ".join(f"tags.`{key}` = '{value}'" for key, value in tags.items())
        return next((str(run.info.run_id) for run in self._search(query)), None)

    def _search(self, query: str) -> list[Any]:
        runs: list[Any] = []
        token = None
        while True:
            page = self._client.search_runs(
                [self._experiment_id], query, max_results=1000, page_token=token
            )
            runs += page
            token = page.token
            if not token:
                return runs

    def _study_tags(self) -> dict[str, str]:
        return {
            "sweeper.study": self._tags.study,
            "sweeper.identity": self._tags.identity,
            "sweeper.version": sweeper.__version__,
        }

    def _parent_tags(self) -> dict[str, str]:
        origin = f"{socket.gethostname()}:{self._paths.root}"
        return {
            **self._study_tags(),
            "sweeper.role": "study",
            "sweeper.engine": self._tags.engine,
            "sweeper.model": self._tags.model,
            # Two people may give two studies one name on one server: the folder tells them apart.
            "sweeper.origin": hashlib.sha256(origin.encode()).hexdigest()[:16],
        }


_PARENT_KEYS = ("sweeper.role", "sweeper.identity", "sweeper.origin")


def _import_client(timeout_s: float) -> Any:
    """Import MLflow quietly, with short time-outs: a dead server must not stall a study."""
    for name, value in {
        "MLFLOW_HTTP_REQUEST_TIMEOUT": str(max(1, round(timeout_s))),
        "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1",
        "MLFLOW_DISABLE_TELEMETRY": "true",
        "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",
        "GIT_PYTHON_REFRESH": "quiet",
    }.items():
        os.environ.setdefault(name, value)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from mlflow import MlflowClient
    for name in ("mlflow", "alembic"):
        logging.getLogger(name).setLevel(logging.ERROR)
    return MlflowClient


def _usable(experiment: Any) -> str:
    if experiment.lifecycle_stage == "deleted":
        raise RuntimeError(
            f"the MLflow experiment {experiment.name!r} is deleted: restore it, or name another "
            "with tracking.experiment=NAME"
        )
    return str(experiment.experiment_id)


def _tail(path: Path) -> str:
    """The end of a text file, at most LOG_TAIL_BYTES."""
    with path.open("rb") as handle:
        size = handle.seek(0, os.SEEK_END)
        handle.seek(max(0, size - LOG_TAIL_BYTES))
        text = handle.read().decode("utf-8", errors="replace")
    left_out = size - LOG_TAIL_BYTES
    return text if left_out <= 0 else f"[the first {left_out} bytes are left out]\n{text}"


def _label(part: object) -> str:
    """One readable word or two for an identity's part: its name and version."""
    if isinstance(part, Mapping):
        words = [str(part[key]) for key in ("name", "version") if part.get(key)]
        return " ".join(words) or "unknown"
    return str(part) if part else "unknown"
