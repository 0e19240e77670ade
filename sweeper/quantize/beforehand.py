"""What is looked up before a checkpoint is made: versions of its tool, size of its model."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

from sweeper.errors import ModelError
from sweeper.models.hub import cached_snapshot, is_hub_id
from sweeper.models.weights import size_bytes, weight_files
from sweeper.quantize.job import CheckpointJob

_ASK_TIMEOUT_S = 60.0
_ASK = """\
import importlib.metadata as metadata, json, sys
found = {}
for name in sys.argv[1:]:
    try:
        found[name] = metadata.version(name)
    except metadata.PackageNotFoundError:
        pass
print(json.dumps(found))
"""


@lru_cache(maxsize=8)
def installed_versions(python: str, names: tuple[str, ...]) -> Mapping[str, str]:
    """Versions of distributions in somebody's interpreter; one that cannot be asked tells none.

    The worker will meet the same fault, and explain it.
    """
    try:
        done = subprocess.run(
            [python, "-c", _ASK, *names],
            capture_output=True,
            text=True,
            timeout=_ASK_TIMEOUT_S,
            check=True,
        )
        return dict(json.loads(done.stdout))
    except (OSError, ValueError, subprocess.SubprocessError):
        return {"python": python}


def model_bytes(job: CheckpointJob) -> int | None:
    """Bytes of the model's weights, None while they are not on this machine."""
    folder: Path | None = Path(job.model_path)
    if not Path(job.model_path).is_dir():
        folder = (
            cached_snapshot(job.model_path, job.revision) if is_hub_id(job.model_path) else None
        )
    try:
        return None if folder is None else size_bytes(weight_files(folder))
    except (ModelError, OSError):
        return None  # the worker will say what it lacks
