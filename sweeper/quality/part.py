"""A part of judging a deployment's output: what it is given, and what it gives back.

A part asks a running server and compares with what the same part kept of the reference. It knows
nothing of trials; `sweeper.trial.judging` has the table of parts, by `quality.kind`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from sweeper.config.schema import QualityConfig
from sweeper.load.address import ServerAddress


@dataclass(frozen=True)
class PartJob:
    """What a part is given.

    Attributes:
        server: that answers, without load.
        config: `quality.*`.
        kept: what this part kept of the reference (`PartResult.kept`); None if this server is the
            reference, or the reference was written without this part.
        tokenizer: folder or hub id of the unquantized model, the same for every deployment.
        revision: of it on the hub, or None.
        trust_remote_code: whether it may run code of its own.
        run_dir: the trial's folder, for logs and files of a part; it exists.
        tell: says one line to whoever watches the study.
    """

    server: ServerAddress
    config: QualityConfig
    kept: Mapping[str, Any] | None
    tokenizer: str
    revision: str | None
    trust_remote_code: bool
    run_dir: Path
    tell: Callable[[str], None]


@dataclass(frozen=True)
class PartResult:
    """What a part gives back.

    Attributes:
        found: its field of `QualityScore`: plain data for the journal.
        kept: what candidates are compared with, plain data for `reference.json`; used only if the
            server was the reference. `sweeper.quality.reference.LONGEST_TOKENS` in it says what
            room a candidate needs.
    """

    found: dict[str, Any]
    kept: dict[str, Any] = field(default_factory=dict)


class PartFunction(Protocol):
    """Measures one part.

    Raises:
        QualityUnavailableError: it could not be measured; says nothing about the output.
        BrokenOutputError: the engine answers with what is no output.
    """

    def __call__(self, job: PartJob) -> PartResult: ...


class PrepareFunction(Protocol):
    """Gets what a part needs on this machine: settings, the model, a folder for logs.

    Raises:
        ConfigError: what is asked for does not exist.
        QualityUnavailableError: it cannot be had.
    """

    def __call__(
        self, cfg: QualityConfig, model: str, folder: Path, tell: Callable[[str], None], /
    ) -> None: ...
