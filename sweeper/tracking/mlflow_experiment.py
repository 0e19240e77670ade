"""The experiment that studies are runs of, made where it is not there."""

from __future__ import annotations

import time
from typing import Any

_TAGS = {
    # Without it MLflow asks everybody what kind of work this is.
    "mlflow.experimentKind": "custom_model_development",
    "mlflow.note.content": (
        "A run is a study; its nested runs are its trials, one deployment of a model each. "
        "To see the front: `tags.pareto = 'true'`. What the names mean: docs/mlflow.md and "
        "docs/metrics.md of sweeper."
    ),
}


def experiment(client: Any, name: str, root: str | None) -> str:
    """The id of an experiment. Another process may make it between a look and the making.

    Args:
        client: of MLflow.
        name: of the experiment.
        root: where its artifacts go; None leaves that to the server.

    Raises:
        RuntimeError: it was deleted.
    """
    for _ in range(2):
        found = client.get_experiment_by_name(name)
        if found is not None:
            return _usable(found)
        try:
            return _made(client, name, root)
        except Exception:
            time.sleep(0.2)
    found = client.get_experiment_by_name(name)
    return _made(client, name, root) if found is None else _usable(found)


def _made(client: Any, name: str, root: str | None) -> str:
    return str(client.create_experiment(name, artifact_location=root, tags=_TAGS))


def _usable(found: Any) -> str:
    if found.lifecycle_stage == "deleted":
        # Somebody meant it. Restoring would bring all its runs back; a name of our own would
        # scatter the results: its owner decides, and the journal waits.
        raise RuntimeError(
            f"the MLflow experiment {found.name!r} is deleted: restore it, or name another "
            "with tracking.experiment=NAME"
        )
    return str(found.experiment_id)
