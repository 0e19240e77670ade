"""Engines whose exported files can be started, each loaded when it is first asked for."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Protocol, cast

from sweeper.config.schema import EngineConfig
from sweeper.engine.protocol import Engine
from sweeper.errors import ConfigError
from sweeper.export.verify.files import Exported

STARTERS = {
    "vllm": "sweeper.export.verify.vllm:ExportedVllm",
    "mock": "sweeper.export.verify.mock:ExportedMock",
}


class Starter(Protocol):
    """Makes an engine that starts the exported file and nothing else."""

    def __call__(self, cfg: EngineConfig, *, cache_dir: Path, exported: Exported) -> Engine: ...


def check(engine: str) -> None:
    """Raises ConfigError if what was exported of an engine cannot be started and measured."""
    if engine not in STARTERS:
        raise ConfigError(
            f"verify=true: engine={engine} predicts its figures, and nothing that is started can "
            "keep or break a prediction",
            "measure them: run the study with engine=vllm on the machine that is to serve, then "
            "export with verify=true",
        )


def starter(engine: str) -> Starter:
    """The starter of an engine. Raises ConfigError as `check` does."""
    check(engine)
    module, _, name = STARTERS[engine].partition(":")
    return cast(Starter, getattr(import_module(module), name))
