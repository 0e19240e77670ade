"""Runs a worker: a script with an environment of its own, spoken to by JSON lines."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any


class EndKind(StrEnum):
    """How a worker ended."""

    DONE = "done"
    FAILED = "failed"
    """It reported an error of its own."""
    DIED = "died"
    """It ended without a last word: killed, or crashed."""
    TIMED_OUT = "timed_out"
    OUT_OF_MEMORY = "out_of_memory"
    """It took more than it was allowed to, and was ended here."""
    NO_ENVIRONMENT = "no_environment"
    """Its environment could not be made, or its interpreter not be started."""


@dataclass(frozen=True)
class WorkerJob:
    """A worker to run.

    Attributes:
        script: Python file with PEP 723 metadata; it imports nothing of sweeper but
            `worker_protocol`, which is put in its way.
        request: plain JSON, handed to it on standard input.
        log_path: what it and its environment's making print; appended to.
        python: interpreter to run it with; None makes the environment that its metadata asks for.
        timeout_s: for the work, the environment's making not counted.
        environment_timeout_s: for making the environment.
        memory_gib: resident memory of all its processes; None for no limit.
        env: added to its environment. Secrets go here, never into `request`.
    """

    script: Path
    request: Mapping[str, Any]
    log_path: Path
    timeout_s: float
    python: str | None = None
    environment_timeout_s: float = 1800.0
    memory_gib: float | None = None
    env: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class WorkerEnd:
    """What came of it. An expected end is a value; see `EndKind`.

    Attributes:
        kind: how it ended.
        result: what it reported as done.
        error: its own word for the class of its error (``no_cuda``, ``missing`` ...), empty
            otherwise.
        message: one line; empty if done.
        exit_code: of its process, None if there was none.
        seconds: of the work, the environment's making not counted.
        environment_s: what that took.
    """

    kind: EndKind
    result: Mapping[str, Any] = field(default_factory=dict)
    error: str = ""
    message: str = ""
    exit_code: int | None = None
    seconds: float = 0.0
    environment_s: float = 0.0
