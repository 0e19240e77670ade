"""Tags by which a study's runs are known, and found again. Pure, but for host and user."""

from __future__ import annotations

import getpass
import hashlib
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import sweeper
from sweeper.config.identity import identity_hash
from sweeper.config.schema import SweeperConfig
from sweeper.tracking.mlflow_form import NOTE, NOTE_DIGEST, Columns, note_digest
from sweeper.tracking.mlflow_subject import DataSet, data_set
from sweeper.tracking.paths import StudyPaths

ROLE = "sweeper.role"
NUMBERS = "sweeper.numbers"
MEASURED, PREDICTED, REPLAYED = "measured", "predicted", "replayed"

_TABLE = "table"
"""Distribution of an engine that serves figures which were written down before."""
_NOT_SUMMED_UP = (
    "The study is running, or was stopped before it could be summed up. Its trials are the "
    "nested runs. To bring this page up to date: `python -m sweeper sync study={study}`"
)


@dataclass(frozen=True)
class StudyTags:
    """What a study's runs are tagged with, and what all its children have in common."""

    study: str
    identity: str
    engine: str
    model: str
    numbers: str = MEASURED
    columns: Columns = field(default_factory=Columns)
    data_set: DataSet | None = None

    @classmethod
    def of(cls, identity: Mapping[str, Any], cfg: SweeperConfig, study_name: str) -> StudyTags:
        """From a study's identity and configuration."""
        engine, model = _label(identity.get("engine")), _label(identity.get("model"))
        conditions = {
            "model": model,
            "engine": engine,
            "hardware": machine_words(identity.get("hardware")),
            "workload": cfg.workload.name or cfg.workload.kind,
        }
        names = tuple(sorted({*cfg.space.parameters, *cfg.space.fixed}))
        return cls(
            study=study_name,
            identity=identity_hash(dict(identity)),
            engine=engine,
            model=model,
            numbers=numbers_of(identity.get("engine")),
            columns=Columns(names, conditions, quantizes="quantize" in identity),
            data_set=data_set(cfg.workload, identity),
        )

    def of_run(self) -> dict[str, str]:
        """Tags of every run of the study."""
        return {
            "sweeper.study": self.study,
            "sweeper.identity": self.identity,
            "sweeper.version": sweeper.__version__,
            NUMBERS: self.numbers,
            "mlflow.user": _user(),
            "mlflow.source.name": "sweeper",
            "mlflow.source.type": "LOCAL",
        }

    def of_parent(self, paths: StudyPaths) -> dict[str, str]:
        """Tags of the parent run."""
        note = _NOT_SUMMED_UP.format(study=self.study)
        return {
            **self.of_run(),
            **self.finding(paths),
            "sweeper.engine": self.engine,
            "sweeper.model": self.model,
            NOTE: note,
            NOTE_DIGEST: note_digest(note),
        }

    def of_model(self, paths: StudyPaths) -> dict[str, str]:
        """Tags of a model that the study served, by which it is found again."""
        tags = self.finding(paths) | {"sweeper.study": self.study, NUMBERS: self.numbers}
        return {**tags, ROLE: "model"}

    def finding(self, paths: StudyPaths) -> dict[str, str]:
        """Tags by which the parent run is found again.

        Two people may give two studies one name on one server: the folder tells them apart.
        """
        origin = f"{socket.gethostname()}:{paths.root}"
        return {
            ROLE: "study",
            "sweeper.identity": self.identity,
            "sweeper.origin": hashlib.sha256(origin.encode()).hexdigest()[:16],
        }


def numbers_of(engine: object) -> str:
    """Where figures come from, by what a study's identity or manifest says of its engine."""
    if not isinstance(engine, Mapping):
        return MEASURED
    if engine.get("predicted") is True:
        return PREDICTED
    return REPLAYED if engine.get("distribution") == _TABLE else MEASURED


def _label(part: object) -> str:
    """One readable word or two for an identity's part: its name and version."""
    if isinstance(part, Mapping):
        words = [str(part[key]) for key in ("name", "version") if part.get(key)]
        return " ".join(words) or "unknown"
    return str(part) if part else "unknown"


def machine_words(hardware: object) -> str:
    """``2 x h100``, or a CPU by its cores; of an identity's or a manifest's hardware."""
    if not isinstance(hardware, Mapping):
        return "unknown"
    name = str(hardware.get("name") or hardware.get("kind") or "unknown")
    if hardware.get("kind") == "cpu":
        return f"{name}, {hardware.get('cpu_cores', '?')} cores"
    return f"{hardware.get('device_count', 1)} x {name}"


@cache
def _user() -> str:
    """Who runs this, as MLflow's own client would say."""
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return "unknown"
