"""The outcome of a trial: one line of `trials.jsonl`. Serializable, and read back the same."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from typing import Any

from sweeper.load.level import level_name
from sweeper.redaction import printable_data, redact_data, shown
from sweeper.verdicts import Verdict

SCHEMA_VERSION = 1


@dataclass
class Point:
    """One operating point: the trial at one load level.

    Attributes:
        load: what was asked (`LoadLevel.asked`: ``{"kind": "closed", "concurrency": 8}``), and what
            came of it (window, repeats).
        metrics: name with unit → value; a metric that was not measured is absent.
        intervals: metric → [low, high], 95 % bootstrap.
        n: successful requests behind the metrics.
        valid: False if a gate failed; an invalid point is recorded but never selected.
        reasons: the gates that failed, one line each.
        low_confidence: metrics with too few samples for their percentile.
        predicted: the speed of light at this point and how near it came, see
            `sweeper.estimate.speed`; predicted figures, never measured ones.
    """

    load: dict[str, Any]
    metrics: dict[str, float]
    intervals: dict[str, list[float]]
    n: int
    valid: bool
    reasons: list[str] = field(default_factory=list)
    low_confidence: list[str] = field(default_factory=list)
    predicted: dict[str, float] = field(default_factory=dict)

    @property
    def level(self) -> str:
        """What the load level is called, see `sweeper.load.level.level_name`."""
        return level_name(self.load)

    @property
    def concurrency(self) -> int | None:
        """Streams asked for, None where requests arrived by the clock."""
        asked = self.load.get("concurrency")
        return None if asked is None else int(asked)

    @property
    def rate_per_s(self) -> float | None:
        """Requests a second offered, None in a closed loop."""
        asked = self.load.get("rate_per_s")
        return None if asked is None else float(asked)


@dataclass
class QualityScore:
    """Agreement with the reference, and whatever else of the output was measured.

    Attributes:
        agreement: share of the reference's greedy tokens that the candidate also ranks first.
        agreement_se: its binomial standard error.
        loglik_change_nats: mean change of log-likelihood a token against the reference.
        loglik_change_se_nats: its standard error.
        tokens: reference tokens scored.
        key: hash of what can change the output; scores are reused by it.
        reused: True if taken from an earlier trial with the same key.
        agreement_change: agreement minus the reference's own, over the same tokens; None in
            journals of earlier versions.
        agreement_change_se: its standard error from paired differences, clustered by prompt.
        written: what it wrote itself, see `sweeper.quality.written`; empty if it wrote nothing.
        perplexity: on a text, see `sweeper.quality.perplexity`; empty if not measured.
        tasks: name → ``{"metric", "value", "se", "n"}``, from lm-eval; empty if not measured.
        ranked_by: agreement | perplexity | tasks: which of them is "the quality".
    """

    agreement: float
    agreement_se: float
    loglik_change_nats: float
    loglik_change_se_nats: float
    tokens: int
    key: str
    reused: bool = False
    agreement_change: float | None = None
    agreement_change_se: float | None = None
    written: dict[str, Any] = field(default_factory=dict)
    perplexity: dict[str, float] = field(default_factory=dict)
    tasks: dict[str, dict[str, Any]] = field(default_factory=dict)
    ranked_by: str = "agreement"


@dataclass
class TrialOutcome:
    """Everything known of a trial.

    Attributes:
        number: the trial's number in the journal.
        kind: baseline | seed | search | confirm.
        deployment: canonical parameters (active, not the engine's default).
        deployment_hash: of the canonical parameters.
        verdict, phase, cause, remedy, evidence, learnt: see `sweeper.verdicts.Diagnosis`.
        launched: False if it was judged without starting a server.
        points: one a load level that was driven.
        quality: None if not measured.
        timings_s: seconds by phase, and ``total``.
        manifest: the conditions, see `sweeper.trial.manifest`.
        started_at: ISO 8601, UTC.
        attempt: 1, or 2 for a retry.
    """

    number: int
    kind: str
    deployment: dict[str, Any]
    deployment_hash: str
    verdict: Verdict
    phase: str
    cause: str = ""
    remedy: str = ""
    evidence: str = ""
    learnt: dict[str, Any] = field(default_factory=dict)
    launched: bool = True
    points: list[Point] = field(default_factory=list)
    quality: QualityScore | None = None
    timings_s: dict[str, float] = field(default_factory=dict)
    manifest: dict[str, Any] = field(default_factory=dict)
    started_at: str = ""
    attempt: int = 1
    schema_version: int = SCHEMA_VERSION

    def to_dict(self) -> dict[str, Any]:
        """As written down: plain data without secrets."""
        plain: dict[str, Any] = redact_data(asdict(self))
        return plain

    def without_secrets(self) -> TrialOutcome:
        """Itself, its texts without secrets and unable to steer a terminal: what all others see."""
        return replace(
            self,
            cause=shown(self.cause),
            remedy=shown(self.remedy),
            evidence=shown(self.evidence),
            learnt=printable_data(redact_data(self.learnt)),
            manifest=printable_data(redact_data(self.manifest)),
        )

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> TrialOutcome:
        """Read one line of the journal. Raises KeyError or TypeError if it is not an outcome.

        A journal may come from anywhere: nothing in its texts steers a terminal.
        """
        fields: dict[str, Any] = printable_data(dict(data))
        fields["verdict"] = Verdict(fields["verdict"])
        fields["points"] = [Point(**point) for point in fields.get("points", [])]
        if fields.get("quality") is not None:
            fields["quality"] = QualityScore(**fields["quality"])
        return cls(**fields)

    @property
    def valid_points(self) -> list[Point]:
        return [point for point in self.points if point.valid]
