"""The outcome of a trial: one line of `trials.jsonl`. Serializable, and read back the same."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from sweeper.load.level import level_name
from sweeper.quality.floor import Change, settled
from sweeper.redaction import printable_data, redact_data, shown
from sweeper.verdicts import Phase, Verdict

SCHEMA_VERSION = 1
AGREEMENT = "agreement with the reference"
"""Name of the quality that ranks unless another is asked for."""


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
        tasks: name → ``{"metric", "value", "se", "n"}``, from lm-eval, ``change`` with
            ``change_se`` against the reference where that is known, and ``higher_is_better``;
            empty if not measured.
        ranked_by: agreement | perplexity | tasks: which of them is "the quality".
        clusters: prompts that the changes of agreement and log-likelihood rest on; None in
            journals of earlier versions.
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
    clusters: int | None = None

    @property
    def score(self) -> float:
        """The quality that ranks; higher is better.

        A share for agreement, minus nats a token for perplexity, the mean score for tasks.
        """
        match self.ranked_by:
            case "perplexity":
                return -self.perplexity["nats_per_token"]
            case "tasks":
                return _mean([_sign(task) * task["value"] for task in self.tasks.values()])
            case _:
                return self.agreement

    @property
    def score_se(self) -> float | None:
        """Standard error of `score`; None if a task's metric has none."""
        match self.ranked_by:
            case "perplexity":
                return self.perplexity["nats_se"]
            case "tasks":
                return _combined_se([task["se"] for task in self.tasks.values()])
            case _:
                return self.agreement_se

    @property
    def against_reference(self) -> Change | None:
        """`score` minus the reference's own, paired where that was measured; None if unknown."""
        match self.ranked_by:
            case "perplexity":
                figures = self.perplexity
                windows = int(figures["windows"])
                return Change(-figures["change_nats"], figures["change_se_nats"], windows)
            case "tasks":
                return self.tasks_change
            case _:
                if self.agreement_change is None or self.agreement_change_se is None:
                    return None
                return Change(self.agreement_change, self.agreement_change_se, self.clusters)

    @property
    def change(self) -> float | None:
        """`score` minus the reference's own, None if it is not known."""
        against = self.against_reference
        return None if against is None else against.value

    @property
    def change_se(self) -> float | None:
        """Standard error of `change`."""
        against = self.against_reference
        return None if against is None else against.se

    @property
    def is_no_change(self) -> bool | None:
        """True if `change` cannot be told from zero at 95 %; None if it is not known."""
        against = self.against_reference
        return None if against is None else against.is_none

    @property
    def tasks_change(self) -> Change | None:
        """Mean task score minus the reference's, None if it is not known of every task."""
        tasks = list(self.tasks.values())
        if not tasks or any(task.get("change") is None for task in tasks):
            return None
        se = _combined_se([task.get("change_se") for task in tasks])
        if se is None:
            return None
        return Change(_mean([_sign(task) * task["change"] for task in tasks]), se)

    @property
    def tasks_name(self) -> str:
        """The tasks and what is counted, for example ``gsm8k exact_match``."""
        return ", ".join(f"{name} {task['metric']}" for name, task in self.tasks.items())

    @property
    def name(self) -> str:
        """What `score` is, in words for a user."""
        match self.ranked_by:
            case "perplexity":
                return "perplexity"
            case "tasks":
                mean = "mean of " if len(self.tasks) > 1 else ""
                return f"{mean}{self.tasks_name}"
            case _:
                return AGREEMENT

    @property
    def shown(self) -> str:
        """`score` as people write it: a share in per cent, a perplexity as such."""
        if self.ranked_by == "perplexity":
            return f"{self.perplexity['perplexity']:.2f}"
        return f"{self.score:.1%}" if 0.0 <= self.score <= 1.0 else f"{abs(self.score):.4g}"

    def settled(self, own: QualityScore | None) -> float:
        """`score` for ranking: the reference's own where the two cannot be told apart.

        Args:
            own: the baseline's; None if it is not known.
        """
        if own is None or own.ranked_by != self.ranked_by:
            return self.score
        no_change = self.is_no_change
        if no_change is None:
            if self.score_se is None or own.score_se is None:
                return self.score
            return settled(self.score, self.score_se, own.score, own.score_se)
        return own.score if no_change else self.score


def _mean(values: list[float]) -> float:
    return math.fsum(values) / len(values)


def _combined_se(errors: list[float | None]) -> float | None:
    """Standard error of the mean of independent figures, None if one of them is not known."""
    known = [error for error in errors if error is not None]
    if len(known) < len(errors):
        return None
    return math.sqrt(math.fsum(error**2 for error in known)) / len(known)


def _sign(task: dict[str, Any]) -> float:
    """-1 for a metric of which less is better."""
    return -1.0 if task.get("higher_is_better") is False else 1.0


@dataclass
class TrialOutcome:
    """Everything known of a trial.

    Attributes:
        number: the trial's number in the journal.
        kind: baseline | seed | search | confirm.
        deployment: canonical parameters (active, not the engine's default).
        deployment_hash: of the canonical parameters.
        verdict, phase, cause, remedy, evidence, learnt: see `sweeper.verdicts.Diagnosis`.
        launched: False if it was judged without trying it. One whose checkpoint could not be made
            counts as launched: no server was started, but the attempt took a launch's time.
        points: one a load level that was driven.
        quality: None if not measured.
        timings_s: seconds by phase, and ``total``.
        manifest: the conditions, see `sweeper.trial.manifest`.
        started_at: ISO 8601, UTC.
        attempt: 1, or 2 for a retry.
        repeats: of a confirmation: number of the trial whose deployment it launches again.
        partial: why the launch was cut short, None if it went its whole way. Its points are real.
        skipped: load level → why it was left out, of a launch that was not cut.
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
    repeats: int | None = None
    partial: str | None = None
    skipped: dict[str, str] = field(default_factory=dict)
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

    @property
    def made(self) -> dict[str, Any]:
        """What the manifest says of a checkpoint that was made here; empty without one."""
        told = self.manifest.get("made")
        return told if isinstance(told, dict) else {}

    @property
    def checkpoint_gib(self) -> float | None:
        """Weight files that were served, in GiB; None if none were, or they are not here."""
        size = self.manifest.get("checkpoint_bytes")
        was_served = self.phase not in {Phase.PLAN, Phase.QUANTIZE}
        return size / 2**30 if was_served and isinstance(size, int) and size > 0 else None
