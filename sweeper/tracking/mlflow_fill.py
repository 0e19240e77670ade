"""What a run is filled with: figures in batches, files one by one. What is refused is left out."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from sweeper.redaction import redact
from sweeper.tracking.mlflow_client import is_rejected
from sweeper.tracking.mlflow_form import NOTE, NOTE_DIGEST, RunForm, note_digest
from sweeper.tracking.mlflow_metrics import OF_CHECKPOINT
from sweeper.tracking.mlflow_subject import DataSet

LOG_TAIL_BYTES = 1 << 20
# MLflow takes 1000 metrics and 100 params a call.
MAX_METRICS = 900
MAX_PARAMS = 90
UPLOADS = "sweeper-upload-"
"""Before the pid of the process whose folder it is."""

Artifact = Path | tuple[str, Any]


def log_figures(
    client: Any,
    run_id: str,
    form: RunForm,
    model_id: str | None = None,
    data: DataSet | None = None,
) -> list[str]:
    """Log metrics and params; returns the names that MLflow refused.

    Args:
        client: of MLflow.
        run_id: of the trial.
        form: of the trial.
        model_id: the model that it served; figures that say something of it are shown there too.
        data: what it was driven with, told of these figures.
    """
    subject = None if model_id is None else _Subject(model_id, data)
    left_out = log_metrics(client, run_id, form.metrics, form.timestamp_ms, subject)
    return left_out + log_params(client, run_id, form.params)


@dataclass(frozen=True)
class _Subject:
    """What some figures of a run are of, beside the run itself."""

    model_id: str
    data: DataSet | None


def _of(subject: _Subject | None, name: str) -> dict[str, str]:
    """What a figure of that name is of, in the words of MLflow's `Metric`."""
    if subject is None or not name.startswith(OF_CHECKPOINT):
        return {}
    told, data = {"model_id": subject.model_id}, subject.data
    if data is not None:
        told |= {"dataset_name": data.name, "dataset_digest": data.digest}
    return told


def log_params(client: Any, run_id: str, told: Mapping[str, str]) -> list[str]:
    """Log params; returns the names that MLflow refused."""
    from mlflow.entities import Param

    params, left_out = [Param(name, value) for name, value in told.items()], []
    for start in range(0, len(params), MAX_PARAMS):
        left_out += _log(client, run_id, params=params[start : start + MAX_PARAMS])
    return left_out


def log_metrics(
    client: Any,
    run_id: str,
    items: Sequence[tuple[str, float, int]],
    stamps_ms: int | Sequence[int],
    subject: _Subject | None = None,
) -> list[str]:
    """Log (name, value, step) at one time, or each at its own; returns the names refused."""
    from mlflow.entities import Metric

    stamps = [stamps_ms] * len(items) if isinstance(stamps_ms, int) else stamps_ms
    metrics = [
        Metric(name, value, stamp, step, **_of(subject, name))
        for (name, value, step), stamp in zip(items, stamps, strict=True)
    ]
    left_out: list[str] = []
    for start in range(0, len(metrics), MAX_METRICS):
        left_out += _log(client, run_id, metrics=metrics[start : start + MAX_METRICS])
    return left_out


def attach(client: Any, run_id: str, artifact: Artifact) -> str | None:
    """Attach one file; an artifact store that fails costs the artifact, never the figures."""
    try:
        if isinstance(artifact, Path):
            name, text = artifact.name, _tail(artifact)
        else:
            name, text = artifact[0], json.dumps(artifact[1], indent=1, default=str)
        _clear_uploads()
        with tempfile.TemporaryDirectory(prefix=f"{UPLOADS}{os.getpid()}-") as folder:
            copy = Path(folder) / name
            copy.write_text(redact(text), encoding="utf-8")
            client.log_artifact(run_id, str(copy))
    except Exception as error:
        return f"artifacts ({type(error).__name__}: {redact(str(error))[:200]})"
    return None


@cache
def _clear_uploads() -> None:
    """Remove, once a process, what tuners that were killed in an upload have left."""
    for folder in Path(tempfile.gettempdir()).glob(f"{UPLOADS}*"):
        pid = folder.name.removeprefix(UPLOADS).partition("-")[0]
        if pid.isdigit() and not Path("/proc", pid).exists():
            shutil.rmtree(folder, ignore_errors=True)


def _log(client: Any, run_id: str, **entities: list[Any]) -> list[str]:
    """Log all at once; what MLflow refuses is left out alone. Returns the names left out."""
    try:
        client.log_batch(run_id, **entities)
    except Exception as error:
        if not is_rejected(error):
            raise
    else:
        return []
    left_out = []
    for kind, items in entities.items():
        for item in items:
            try:
                client.log_batch(run_id, **{kind: [item]})
            except Exception as error:
                if not is_rejected(error):
                    raise
                left_out.append(str(item.key))
    return left_out


def log_tags(client: Any, run_id: str, tags: Mapping[str, str]) -> None:
    """Set tags, all at once."""
    from mlflow.entities import RunTag

    client.log_batch(run_id, tags=[RunTag(name, text) for name, text in tags.items()])


def describe(client: Any, run_id: str, note: str) -> None:
    """Set a run's description, unless somebody has written their own since we did."""
    tags = client.get_run(run_id).data.tags
    there, ours = tags.get(NOTE), tags.get(NOTE_DIGEST)
    if there is None or ours is None or ours == note_digest(there):
        log_tags(client, run_id, {NOTE: note, NOTE_DIGEST: note_digest(note)})


def _tail(path: Path) -> str:
    """The end of a text file, at most LOG_TAIL_BYTES."""
    with path.open("rb") as handle:
        size = handle.seek(0, os.SEEK_END)
        handle.seek(max(0, size - LOG_TAIL_BYTES))
        text = handle.read().decode("utf-8", errors="replace")
    left_out = size - LOG_TAIL_BYTES
    return text if left_out <= 0 else f"[the first {left_out} bytes are left out]\n{text}"
