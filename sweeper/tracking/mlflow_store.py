"""The one module that speaks to MLflow: experiment, parent and child runs of one study."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sweeper.config.schema import TrackingConfig
from sweeper.config.secrets import HOW_TO_GIVE
from sweeper.errors import StudyError
from sweeper.redaction import HIDDEN
from sweeper.tracking.lock import exclusive
from sweeper.tracking.mlflow_client import (
    Pace,
    PacedClient,
    import_client,
    is_gone,
    shown_uri,
)
from sweeper.tracking.mlflow_experiment import experiment
from sweeper.tracking.mlflow_fill import (
    Artifact,
    attach,
    describe,
    log_figures,
    log_metrics,
    log_params,
    log_tags,
)
from sweeper.tracking.mlflow_form import FORM, Columns, RunForm
from sweeper.tracking.mlflow_lineage import Lineage
from sweeper.tracking.mlflow_metrics import Metric
from sweeper.tracking.mlflow_names import MAX_TAG_LENGTH, safe_names
from sweeper.tracking.mlflow_tags import StudyTags
from sweeper.tracking.mlflow_view import view_route, view_tag
from sweeper.tracking.paths import StudyPaths, atomic_write_text

COMPLETE = "sweeper.complete"
WRITTEN = "sweeper.form"
PARENT = "mlflow.parentRunId"
MARKS = {"pareto": "false", "recommended": "false", "confirmation": "none"}
"""Tags of every child that are only known once the study ends; their values until then."""


@dataclass(frozen=True)
class Child:
    """A child run that is already there.

    Attributes:
        run_id: MLflow's name of it.
        complete: True if everything of its trial was logged, in the form of today, and the run
            has ended.
        tags: as they are.
    """

    run_id: str
    complete: bool
    tags: Mapping[str, str] = field(default_factory=dict)


class MlflowStore:
    """Runs of one study. Everything is made at first use; every method may raise what MLflow does.

    Args:
        cfg: URI, experiment, timeout.
        paths: the study's paths.
        tags: what the study is.
        pace: told of every call.
    """

    def __init__(
        self, cfg: TrackingConfig, paths: StudyPaths, tags: StudyTags, pace: Pace | None = None
    ) -> None:
        self._cfg = cfg
        self._paths = paths
        self._tags = tags
        self._pace = pace or Pace()
        self._uri = cfg.uri or f"sqlite:///{paths.mlflow_db}"
        self.uri = shown_uri(self._uri)
        self._client: Any = None
        self._experiment_id: str | None = None
        self._parent_id: str | None = None
        self._lost: set[str] = set()
        self._lineage = Lineage(tags, paths)

    @property
    def columns(self) -> Columns:
        """Params that every child has."""
        return self._tags.columns

    def prepare(self) -> None:
        """Import MLflow, without speaking to anybody."""
        import_client(self._cfg.timeout_s)

    # Not cached by `functools.cached_property`: before Python 3.12 it holds one lock for all
    # instances while it computes, and this may hang.
    @property
    def client(self) -> Any:
        """The client, proven to reach its server or database."""
        if self._client is None:
            self._client = self._connected()
        return self._client

    def _connected(self) -> Any:
        if HIDDEN in self._uri:
            raise RuntimeError(f"the password in tracking.uri is not stored: {HOW_TO_GIVE}")
        client_class = import_client(self._cfg.timeout_s)
        # Two processes that migrate one empty SQLite file at the same time break each other.
        guard = exclusive(self._paths.mlflow_lock) if self._uri.startswith("sqlite:") else None
        with guard or nullcontext():
            self._pace.before()
            client = PacedClient(client_class(tracking_uri=self._uri), self._pace)
            client.search_experiments(max_results=1)
            return client

    @property
    def experiment_id(self) -> str:
        """Of the configured experiment, which is made if it is not there."""
        if self._experiment_id is None:
            self._experiment_id = experiment(self.client, self._cfg.experiment, self._root())
        return self._experiment_id

    def _root(self) -> str | None:
        """Artifact root. A server decides for itself; without one, MLflow would use the cwd."""
        if self._uri.startswith(("http:", "https:", "databricks")):
            return None
        return self._paths.mlflow_artifacts.as_uri()

    def find_parent(self, start_ms: int | None = None) -> str:
        """The study's parent run: the recorded one, one found by its tags, or a new one.

        One that was deleted meanwhile is replaced; `children` brings its children along.
        """
        if self._parent_id is not None and not self._is_there(self._parent_id):
            self._parent_id = None
        if self._parent_id is None:
            parent = self._recorded_parent() or self._found_parent() or self._new_parent(start_ms)
            self._record_parent(parent)
            log_params(self.client, parent, self._tags.columns.conditions)
            self._lineage.link_data(self.client, parent)
            self._parent_id = parent
        return self._parent_id

    def _new_parent(self, start_ms: int | None) -> str:
        run = self.client.create_run(
            self.experiment_id,
            run_name=self._tags.study,
            tags=self._tags.of_parent(self._paths),
            start_time=start_ms,
        )
        return str(run.info.run_id)

    def show_running(self) -> None:
        """Show the study as running, also if it had ended before."""
        parent = self.find_parent()
        if self.client.get_run(parent).info.status != "RUNNING":
            self.client.update_run(parent, status="RUNNING")

    def parent_status(self) -> str:
        """RUNNING, FINISHED, FAILED or KILLED."""
        return str(self.client.get_run(self.find_parent()).info.status)

    def children(self) -> dict[tuple[int, int], Child]:
        """(number, attempt) → the child run that has it; at most one is left of each."""
        parent = self.find_parent()
        found: dict[tuple[int, int], Child] = {}
        self._adopt(parent)
        self._lineage.forget()
        for run in self.search(_under(parent)):
            tags = run.data.tags
            key = (int(tags.get("number", -1)), int(tags.get("attempt", 1)))
            ended, form = run.info.status != "RUNNING", tags.get(WRITTEN, "1")
            whole = tags.get(COMPLETE) == "true" and form.isdigit() and int(form) >= FORM
            child = Child(run.info.run_id, ended and whole, tags)
            twin = found.setdefault(key, child)
            if twin is not child:
                worse = twin if child.complete and not twin.complete else child
                found[key] = child if worse is twin else twin
                self.client.delete_run(worse.run_id)
        return found

    def running_children(self, parent: str) -> list[str]:
        """Ids of runs under a parent that are shown as running."""
        query = f"{_under(parent)} and attributes.status = 'RUNNING'"
        return [str(run.info.run_id) for run in self.search(query)]

    def create_child(self, form: RunForm) -> str:
        """Open a child run. Its tags come first, so that a half-filled one can be found again."""
        tags = {**MARKS, **form.tags, PARENT: self.find_parent(), **self._tags.of_run()}
        run = self.client.create_run(
            self.experiment_id, run_name=form.name, tags=tags, start_time=form.timestamp_ms
        )
        return str(run.info.run_id)

    def fill(self, run_id: str, form: RunForm, artifacts: Sequence[Artifact]) -> list[str]:
        """Log everything of a trial and close its run; a second time changes nothing.

        Returns:
            What could not be logged, one line each. A run without all its artifacts is not marked
            complete, so that the next sync tries them again.
        """
        model_id = None
        self._lineage.link_data(self.client, run_id)
        if form.served is not None:
            model_id = self._lineage.link_model(
                self.client, self.experiment_id, self.find_parent(), run_id, form.served
            )
        left_out = log_figures(self.client, run_id, form, model_id, self._tags.data_set)
        unattached = [text for item in artifacts if (text := attach(self.client, run_id, item))]
        if left_out:
            self.tag(run_id, "sweeper.left_out", ", ".join(left_out))
        whole = "without artifacts" if unattached else "true"
        log_tags(self.client, run_id, {**form.tags, WRITTEN: str(FORM), COMPLETE: whole})
        status = "FINISHED" if form.finished else "FAILED"
        self.client.set_terminated(run_id, status, end_time=form.end_ms or None)
        return left_out + unattached

    def tag(self, run_id: str, key: str, value: str) -> None:
        """Set one tag."""
        self.client.set_tag(run_id, key, value[:MAX_TAG_LENGTH])

    def describe(self, note: str) -> None:
        """Set the parent run's description, unless somebody has written their own.

        The way to the study's charts follows its first paragraph, which alone is shown at first.
        """
        parent = self.find_parent()
        first, separator, rest = note.partition("\n\n")
        link = f"[Charts of this study]({view_route(self.experiment_id, parent)})"
        whole = f"{first}\n\n{link}{separator}{rest}"
        describe(self.client, parent, whole[:MAX_TAG_LENGTH])

    def save_view(self, parameters: Sequence[str], made_ms: int) -> None:
        """Save a view of the experiment that shows this study's trials in charts."""
        names = list(safe_names(parameters).values())
        key, text = view_tag(self._tags.study, self.find_parent(), sorted(names), made_ms)
        if len(text) <= MAX_TAG_LENGTH:
            self.client.set_experiment_tag(self.experiment_id, key, text)

    def log_parent(self, items: Sequence[Metric], stamps_ms: int | Sequence[int]) -> None:
        """Log figures of the study; the same time and step again change nothing."""
        log_metrics(self.client, self.find_parent(), items, stamps_ms)

    def attach_to_parent(self, path: Path) -> None:
        """Attach a file or a folder to the parent run."""
        folder = path.name if path.is_dir() else None
        log = self.client.log_artifacts if path.is_dir() else self.client.log_artifact
        log(self.find_parent(), str(path), folder)

    def end_run(self, run_id: str, status: str, end_ms: int | None = None) -> None:
        """Close a run."""
        self.client.set_terminated(run_id, status, end_time=end_ms)

    def search(self, query: str) -> list[Any]:
        """All runs of the experiment that are not deleted and fit."""
        runs: list[Any] = []
        token = None
        while True:
            page = self.client.search_runs(
                [self.experiment_id], query, max_results=1000, page_token=token
            )
            runs += page
            token = page.token
            if not token:
                return runs

    def _adopt(self, parent: str) -> None:
        """Put the children of parents that were deleted under this one."""
        for lost in sorted(self._lost - {parent}):
            for run in self.search(_under(lost)):
                self.client.set_tag(run.info.run_id, PARENT, parent)
        self._lost.clear()

    def _is_there(self, run_id: str) -> bool:
        """True if a run of this experiment has that id and is not deleted."""
        try:
            info = self.client.get_run(run_id).info
        except Exception as error:
            if not is_gone(error):
                raise
            self._lost.add(run_id)
            return False
        if info.lifecycle_stage != "active":
            self._lost.add(run_id)
            return False
        return str(info.experiment_id) == self.experiment_id

    def _recorded_parent(self) -> str | None:
        run_id = recorded_run(self._paths, self.uri)
        return run_id if run_id is not None and self._is_there(run_id) else None

    def _record_parent(self, run_id: str) -> None:
        if recorded_run(self._paths, self.uri) == run_id:
            return
        record = {"uri": self.uri, "run_id": run_id}
        # Without the record the run is found by its tags; a full disk must not cost the mirror.
        with suppress(StudyError):
            atomic_write_text(self._paths.mlflow_record, json.dumps(record, indent=1) + "\n")

    def _found_parent(self) -> str | None:
        """A parent whose id was not recorded because the tuner died in between."""
        tags = self._tags.finding(self._paths)
        query = " and ".join(f"tags.`{key}` = '{value}'" for key, value in tags.items())
        return next((str(run.info.run_id) for run in self.search(query)), None)


def recorded_run(paths: StudyPaths, uri: str) -> str | None:
    """The parent run that a study's folder names for a tracking URI (as shown), or None."""
    try:
        record = json.loads(paths.mlflow_record.read_text(encoding="utf-8"))
        recorded_uri, run_id = shown_uri(str(record["uri"])), str(record["run_id"])
    except (OSError, ValueError, TypeError, KeyError):
        return None
    return run_id if recorded_uri == uri else None


def _under(parent: str) -> str:
    return f"tags.`{PARENT}` = '{parent}'"
