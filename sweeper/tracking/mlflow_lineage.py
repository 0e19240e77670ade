"""A run in MLflow's own words: the data set it was driven with, the model that it served.

A checkpoint lies where its engine finds it, not in MLflow: it is an *external* model there, made
once a study and shared by all trials that served it. A server that knows no data sets or no models
(they came with MLflow 2.4 and 3.0) does without; everything else is logged all the same.
"""

from __future__ import annotations

from typing import Any

from sweeper.tracking.mlflow_client import is_rejected, is_unknown
from sweeper.tracking.mlflow_subject import DataSet, Served
from sweeper.tracking.mlflow_tags import StudyTags
from sweeper.tracking.paths import StudyPaths

MODEL_TYPE = "served checkpoint"
KEY = "sweeper.checkpoint"
_EXTERNAL = "mlflow.model.isExternal"
_CONTEXT = "mlflow.data.context"


class Lineage:
    """Data set and models of one study. Methods raise what MLflow does.

    Args:
        tags: what the study is.
        paths: its paths.
    """

    def __init__(self, tags: StudyTags, paths: StudyPaths) -> None:
        self._tags = tags
        self._paths = paths
        self._models: dict[str, str] | None = None
        self._linked: set[tuple[str, str]] = set()
        self._is_known = True

    def link_data(self, client: Any, run_id: str) -> None:
        """Say what the run was driven with; a second time changes nothing."""
        data = self._tags.data_set
        if data is None or not self._is_known:
            return
        from mlflow.entities import DatasetInput, InputTag

        tags = [InputTag(_CONTEXT, "load")]
        self._try(client.log_inputs, run_id, datasets=[DatasetInput(_entity(data), tags)])

    def link_model(
        self, client: Any, experiment_id: str, parent: str, run_id: str, served: Served
    ) -> str | None:
        """Say what a run served, and make the model known if it is not.

        Returns:
            The model's id, None on a server that knows no models.
        """
        if not self._is_known:
            return None
        found: str | None = self._try(self._model, client, experiment_id, parent, served)
        if found is not None:
            for run in (run_id, parent):
                self._try(self._link, client, run, found)
        return found

    def forget(self) -> None:
        """List the models anew next time: somebody may have deleted one."""
        self._models = None
        self._linked.clear()

    def _link(self, client: Any, run_id: str, model_id: str) -> None:
        """A second time changes nothing, but costs a call."""
        from mlflow.entities import LoggedModelInput

        if (run_id, model_id) not in self._linked:
            client.log_inputs(run_id, models=[LoggedModelInput(model_id)])
            self._linked.add((run_id, model_id))

    def _model(self, client: Any, experiment_id: str, parent: str, served: Served) -> str:
        if self._models is None:
            self._models = self._listed(client, experiment_id)
        if served.key not in self._models:
            tags = {**self._tags.of_model(self._paths), KEY: served.key, _EXTERNAL: "true"}
            made = client.create_logged_model(
                experiment_id,
                name=served.name,
                source_run_id=parent,
                tags=tags,
                params=dict(served.params),
                model_type=MODEL_TYPE,
            )
            client.finalize_logged_model(made.model_id, "READY")
            self._models[served.key] = str(made.model_id)
        return self._models[served.key]

    def _listed(self, client: Any, experiment_id: str) -> dict[str, str]:
        """Key → id of the models that are there; one left half-made by a kill is finished."""
        told = self._tags.of_model(self._paths)
        query = " AND ".join(f"tags.`{key}` = '{value}'" for key, value in told.items())
        found: dict[str, str] = {}
        token = None
        while True:
            page = client.search_logged_models([experiment_id], query, page_token=token)
            for model in page:
                if KEY in model.tags:
                    found.setdefault(model.tags[KEY], str(model.model_id))
                if str(model.status) != "READY":
                    client.finalize_logged_model(model.model_id, "READY")
            token = page.token
            if not token:
                return found

    def _try(self, call: Any, *args: Any, **kwargs: Any) -> Any:
        """The result; None where the server refuses it, for good if it knows no such call."""
        try:
            return call(*args, **kwargs)
        except Exception as error:
            if is_unknown(error):
                self._is_known = False
            elif not is_rejected(error):
                raise
            return None


def _entity(data: DataSet) -> Any:
    from mlflow.entities import Dataset

    return Dataset(
        name=data.name,
        digest=data.digest,
        source_type=data.source_type,
        source=data.source,
        profile=data.profile,
    )
