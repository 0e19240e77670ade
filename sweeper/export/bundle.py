"""What deployment files are made from, and how they reach the disk."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sweeper.engine.secret_names import is_secret
from sweeper.pareto.recommendation import Recommendation
from sweeper.tracking.paths import replace_folder

PLAIN, EXECUTABLE = 0o644, 0o755


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

    @property
    def public_flags(self) -> dict[str, Any]:
        """Flags without secrets and without those that are not set, sorted by name."""
        named = {name.replace("-", "_"): value for name, value in self.flags.items()}
        return {
            name: named[name]
            for name in sorted(named)
            if named[name] is not None and not is_secret(name)
        }

    @property
    def public_env(self) -> dict[str, str]:
        """Environment without secrets, sorted by name."""
        return {name: str(self.env[name]) for name in sorted(self.env) if not is_secret(name)}

    @property
    def left_out(self) -> list[str]:
        """Names of secrets that were left out and must be given at start."""
        return sorted(name for name in [*self.flags, *self.env] if is_secret(name))


@dataclass(frozen=True)
class File:
    """One rendered file."""

    text: str
    mode: int = PLAIN


Files = dict[str, File]


def write_bundle(folder: Path, files: Files) -> None:
    """Write the folder all or nothing; the earlier one stays if anything fails.

    Raises:
        StudyError: it cannot be written.
    """
    replace_folder(folder, {name: (file.text, file.mode) for name, file in files.items()})
