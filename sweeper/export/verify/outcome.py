"""What a verification found: plain data, for a file, a README and a terminal."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from typing import Any

from sweeper.export.verify.files import Pair
from sweeper.export.verify.judge import Figure, LimitCheck, Status
from sweeper.redaction import HIDDEN, carries_secret, printable_data, redact_data

SCHEMA_VERSION = 1


@dataclass(frozen=True)
class Argument:
    """An exported argument beside what is in effect.

    Attributes:
        name: underscored.
        exported: as the file has it.
        in_effect: as the server tells it; None where it tells nothing of it.
        told: whether it tells anything of it.
    """

    name: str
    exported: Any
    in_effect: Any
    told: bool


@dataclass(frozen=True)
class Verification:
    """A started export beside its promise.

    Attributes:
        status: kept, not kept, or cannot tell.
        reasons: why, one line each.
        study, trial, level: the operating point.
        config_sha256: of the YAML that was started; another file was not verified.
        edits: what the YAML says otherwise than what was measured: name → (measured, started).
        changed: conditions that differ from the study's: name → (then, now).
        busy: what else used the machine at the start, a sentence; empty if nothing is known to.
        figures, limits: what was promised, and whether it is kept.
        arguments: exported beside in effect.
        launches: that gave figures.
        promised_launches: that the promised figures are the mean of.
        requests: successful ones behind the figures.
        notes: what a reader must know beside the verdict.
        remedy: what to do about it, empty if it is kept.
        evidence: of a start or a load that failed.
        log: of the last launch.
        verified_at: ISO 8601, UTC.
    """

    status: Status
    reasons: tuple[str, ...]
    study: str
    trial: int
    level: str
    config_sha256: str
    edits: dict[str, Pair] = field(default_factory=dict)
    changed: dict[str, Pair] = field(default_factory=dict)
    busy: str = ""
    figures: tuple[Figure, ...] = ()
    limits: tuple[LimitCheck, ...] = ()
    arguments: tuple[Argument, ...] = ()
    launches: int = 0
    promised_launches: int = 1
    requests: int = 0
    notes: tuple[str, ...] = ()
    remedy: str = ""
    evidence: str = ""
    log: str = ""
    verified_at: str = ""

    @property
    def is_kept(self) -> bool:
        """Whether everything that was promised is kept."""
        return self.status is Status.KEPT

    def without_secrets(self) -> Verification:
        """Itself, with no value that is a secret by its name or in itself."""
        return replace(
            self,
            edits={name: _hidden(name, pair) for name, pair in self.edits.items()},
            changed={name: _hidden(name, pair) for name, pair in self.changed.items()},
            arguments=tuple(
                Argument(one.name, *_hidden(one.name, (one.exported, one.in_effect)), one.told)
                for one in self.arguments
            ),
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON, without secrets."""
        data: dict[str, Any] = redact_data({"schema_version": SCHEMA_VERSION, **asdict(self)})
        plain: dict[str, Any] = printable_data(data)
        return plain


def _hidden(name: str, pair: Pair) -> Pair:
    first, second = (
        HIDDEN if value is not None and carries_secret(name, value) else redact_data(value)
        for value in pair
    )
    return first, second
