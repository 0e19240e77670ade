"""What deployment files are made from, and how they reach the disk."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sweeper.export.measured_on import MeasuredOn
from sweeper.pareto.recommendation import Recommendation
from sweeper.redaction import carries_secret, printable, redact_data
from sweeper.tracking.paths import replace_folder

PLAIN, EXECUTABLE = 0o644, 0o755
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True)
class ExportInput:
    """Everything a renderer may know. Renderers are pure functions of it.

    Attributes:
        study: the study's name.
        recommendation: the point to deploy.
        model_path: what the engine is given: a hub id or a local folder.
        served_name: model name clients will ask for.
        flags: engine flags, underscored names → values (`Engine.start_command`).
        env: environment variables of the server.
        engine: name and version of the engine it was measured on.
        hardware: what it was measured on, one line.
        host, port: where the server is to listen.
        revision: model revision on a hub, or None.
        notes: further lines for the README.
        made: what the manifest says of a checkpoint that was made here; empty for any other.
        limit: requests under way at once up to which the numbers hold, None where none follows.
        measured_on: facts of the launch that images, machines and probes follow from.
        asked_for: whether the trial was named by the user, whatever is recommended.
    """

    study: str
    recommendation: Recommendation
    model_path: str
    served_name: str
    flags: Mapping[str, Any]
    env: Mapping[str, str] = field(default_factory=dict)
    engine: str = "vllm"
    hardware: str = "unknown hardware"
    host: str = "0.0.0.0"
    port: int = 8000
    revision: str | None = None
    notes: tuple[str, ...] = ()
    made: Mapping[str, Any] = field(default_factory=dict)
    limit: int | None = None
    measured_on: MeasuredOn = field(default_factory=MeasuredOn)
    asked_for: bool = False

    @property
    def public_flags(self) -> dict[str, Any]:
        """Flags without secrets and without those that are not set, sorted by name."""
        named = {name.replace("-", "_"): value for name, value in self.flags.items()}
        return {
            name: named[name]
            for name in sorted(named)
            if named[name] is not None and not _is_hidden(name, named[name])
        }

    @property
    def public_env(self) -> dict[str, str]:
        """Environment without secrets, sorted by name."""
        return {
            name: str(self.env[name])
            for name in sorted(self.env)
            if _VARIABLE.fullmatch(name) and not _is_hidden(name, str(self.env[name]))
        }

    @property
    def left_out(self) -> list[str]:
        """Names of secrets that were left out and must be given at start."""
        given = {**self.flags, **self.env}
        return sorted(printable(name) for name in given if _is_hidden(name, given[name]))


def _is_hidden(name: str, value: Any) -> bool:
    """True for a value that is a secret by its name or in itself, or that holds one."""
    return carries_secret(name, value) or redact_data(value) != value


@dataclass(frozen=True)
class File:
    """One rendered file."""

    text: str
    mode: int = PLAIN


Files = dict[str, File]


def write_bundle(folder: Path, files: Files) -> None:
    """Write the folder all or nothing; the earlier one stays if anything fails.

    Raises:
        ValueError: a file's name would lead out of the folder (a bug).
        StudyError: it cannot be written.
    """
    for name in files:
        if Path(name).name != name or name in {".", ".."}:
            raise ValueError(f"{name!r} is not the name of a file in the folder")
    replace_folder(folder, {name: (file.text, file.mode) for name, file in files.items()})
