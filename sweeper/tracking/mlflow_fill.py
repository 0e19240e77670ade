"""What a run is filled with: figures in batches, files one by one. What is refused is left out."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from sweeper.redaction import redact
from sweeper.tracking.mlflow_client import is_rejected
from sweeper.tracking.mlflow_form import RunForm

LOG_TAIL_BYTES = 1 << 20
# MLflow takes 1000 metrics and 100 params a call.
MAX_METRICS = 900
MAX_PARAMS = 90
UPLOADS = "sweeper-upload-"
"""Before the pid of the process whose folder it is."""

Artifact = Path | tuple[str, Any]


def log_figures(client: Any, run_id: str, form: RunForm) -> list[str]:
    """Log metrics and params; returns the names that MLflow refused."""
    from mlflow.entities import Param

    params = [Param(name, value) for name, value in form.params.items()]
    left_out = log_metrics(client, run_id, form.metrics, form.timestamp_ms)
    for start in range(0, len(params), MAX_PARAMS):
        left_out += _log(client, run_id, params=params[start : start + MAX_PARAMS])
    return left_out


def log_metrics(
    client: Any, run_id: str, items: Sequence[tuple[str, float, int]], stamp_ms: int
) -> list[str]:
    """Log (name, value, step) at one time; returns the names that MLflow refused."""
    from mlflow.entities import Metric

    metrics = [Metric(name, value, stamp_ms, step) for name, value, step in items]
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


def _tail(path: Path) -> str:
    """The end of a text file, at most LOG_TAIL_BYTES."""
    with path.open("rb") as handle:
        size = handle.seek(0, os.SEEK_END)
        handle.seek(max(0, size - LOG_TAIL_BYTES))
        text = handle.read().decode("utf-8", errors="replace")
    left_out = size - LOG_TAIL_BYTES
    return text if left_out <= 0 else f"[the first {left_out} bytes are left out]\n{text}"
