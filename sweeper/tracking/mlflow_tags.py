"""Tags by which a study's runs are known, and found again. Pure, but for the host's name."""

from __future__ import annotations

import hashlib
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import sweeper
from sweeper.config.identity import identity_hash
from sweeper.tracking.paths import StudyPaths

ROLE = "sweeper.role"


@dataclass(frozen=True)
class StudyTags:
    """What a study's runs are tagged with."""

    study: str
    identity: str
    engine: str
    model: str
    predicted: bool = False

    @classmethod
    def of(cls, identity: Mapping[str, Any], study_name: str) -> StudyTags:
        return cls(
            study=study_name,
            identity=identity_hash(dict(identity)),
            engine=_label(identity.get("engine")),
            model=_label(identity.get("model")),
            predicted=_is_predicted(identity.get("engine")),
        )

    def of_run(self) -> dict[str, str]:
        """Tags of every run of the study."""
        return {
            "sweeper.study": self.study,
            "sweeper.identity": self.identity,
            "sweeper.version": sweeper.__version__,
            "sweeper.numbers": "predicted" if self.predicted else "measured",
        }

    def of_parent(self, paths: StudyPaths) -> dict[str, str]:
        """Tags of the parent run."""
        return {
            **self.of_run(),
            **self.finding(paths),
            "sweeper.engine": self.engine,
            "sweeper.model": self.model,
        }

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


def _is_predicted(engine: object) -> bool:
    return isinstance(engine, Mapping) and engine.get("predicted") is True


def _label(part: object) -> str:
    """One readable word or two for an identity's part: its name and version."""
    if isinstance(part, Mapping):
        words = [str(part[key]) for key in ("name", "version") if part.get(key)]
        return " ".join(words) or "unknown"
    return str(part) if part else "unknown"
