"""How an outcome looks in MLflow: params, metrics, tags, description. Pure, without MLflow."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from sweeper.redaction import shown
from sweeper.tracking.mlflow_metrics import Metric, best_point, trial_metrics
from sweeper.tracking.mlflow_names import (
    MAX_NAME_LENGTH,
    MAX_PARAM_LENGTH,
    MAX_TAG_LENGTH,
    param_text,
    safe_names,
    sanitise,
)
from sweeper.tracking.mlflow_subject import Served, served
from sweeper.trial.outcome import TrialOutcome

__all__ = [
    "FORM",
    "MAX_NAME_LENGTH",
    "MAX_PARAM_LENGTH",
    "MAX_TAG_LENGTH",
    "Columns",
    "RunForm",
    "best_point",
    "params",
    "run_form",
    "safe_names",
    "sanitise",
]

FORM = 2
"""Of a child run. One that was written in an earlier form is completed by the next sync."""

NOTE = "mlflow.note.content"
"""MLflow shows this tag as a run's description, in Markdown."""
NOTE_DIGEST = "sweeper.note"
"""Of the description that was written last: what has another was written by somebody else."""

UNMADE = "none"
"""Value of the ``quantize.*`` params of a trial whose checkpoint was not made here."""
MADE_PARAMS = (
    "recipe",
    "tool",
    "method",
    "bits",
    "group_size",
    "symmetric",
    "act_order",
    "calibration",
    "calibration_samples",
    "calibration_tokens",
    "checkpoint_key",
)


@dataclass(frozen=True)
class Columns:
    """The params that every child of a study has, so that runs compare column by column.

    Attributes:
        parameters: of the space; what a deployment leaves to the engine is logged as ``default``.
        conditions: name → value, the same for all children: model, engine, hardware, workload.
        quantizes: True if the study makes checkpoints: their recipes have columns too.
    """

    parameters: tuple[str, ...] = ()
    conditions: Mapping[str, str] = field(default_factory=dict)
    quantizes: bool = False


@dataclass(frozen=True)
class RunForm:
    """Everything a child run is filled with.

    Attributes:
        name: display name, ``003-search``.
        params: all strings.
        metrics: (name, value, step), finite only; see `sweeper.tracking.mlflow_metrics`.
        tags: all strings.
        finished: True if the run ends as FINISHED, else FAILED.
        timestamp_ms: start of the run and time of every metric; fixed by the outcome, so that
            logging twice changes nothing.
        end_ms: end of the run by the trial's own duration, whatever the clock did meanwhile.
        served: the model that answered, None if no server came so far.
    """

    name: str
    params: dict[str, str]
    metrics: list[Metric]
    tags: dict[str, str] = field(default_factory=dict)
    finished: bool = True
    timestamp_ms: int = 0
    end_ms: int = 0
    served: Served | None = None


def run_form(outcome: TrialOutcome, columns: Columns | Sequence[str] = ()) -> RunForm:
    """Form of one trial.

    Args:
        outcome: the trial.
        columns: of the study; names alone are parameters of its space.
    """
    if not isinstance(columns, Columns):
        columns = Columns(tuple(columns))
    suffix = "" if outcome.attempt == 1 else f"-retry{outcome.attempt}"
    metrics = trial_metrics(outcome)
    safe = safe_names(name for name, _, _ in metrics)
    unmade = {f"quantize.{name}": UNMADE for name in MADE_PARAMS} if columns.quantizes else {}
    return RunForm(
        name=f"{outcome.number:03d}-{outcome.kind}{suffix}",
        params={
            **columns.conditions,
            **unmade,
            **params(outcome.deployment, columns.parameters),
            **_made_params(outcome),
        },
        metrics=[(safe[name], value, step) for name, value, step in metrics],
        tags=trial_tags(outcome),
        finished=outcome.verdict == "OK",
        timestamp_ms=timestamp_ms(outcome.started_at),
        end_ms=end_ms(outcome),
        served=served(outcome),
    )


def params(deployment: Mapping[str, Any], parameter_names: Sequence[str]) -> dict[str, str]:
    """Parameter name → text, under names MLflow accepts."""
    names = sorted({*parameter_names, *deployment})
    safe = safe_names(names)
    return {safe[name]: param_text(deployment.get(name, "default")) for name in names}


def _made_params(outcome: TrialOutcome) -> dict[str, str]:
    """The recipe as it was carried out: a group size that was left open has its number here.

    Names are those of a recipe's searched fields, whose values these agree with.
    """
    recipe = outcome.made.get("recipe")
    told = dict(recipe) if isinstance(recipe, Mapping) else {}
    told = {"recipe" if key == "name" else key: value for key, value in told.items()}
    if outcome.made.get("key"):
        told["checkpoint_key"] = outcome.made["key"]
    return {f"quantize.{name}": param_text(value) for name, value in sorted(told.items())}


def trial_tags(outcome: TrialOutcome) -> dict[str, str]:
    """Tags of a child run; they also find it again. docs/mlflow.md lists them."""
    tags = {
        "sweeper.role": "trial",
        "number": str(outcome.number),
        "attempt": str(outcome.attempt),
        "kind": outcome.kind,
        "verdict": str(outcome.verdict),
        "phase": str(outcome.phase),
        "deployment_hash": outcome.deployment_hash,
        "launch": str(outcome.launched).lower(),
        NOTE: trial_note(outcome),
    }
    if outcome.repeats is not None:
        tags["repeats"] = str(outcome.repeats)
    if outcome.cause:
        tags["cause"] = outcome.cause
    if outcome.partial is not None:
        tags["partial"] = outcome.partial
    if outcome.quality is not None:
        tags["quality"] = outcome.quality.name
    return {name: text[:MAX_TAG_LENGTH] for name, text in tags.items()}


def trial_note(outcome: TrialOutcome) -> str:
    """What became of a trial, in Markdown: its deployment, and its end where that was not OK."""
    words = " ".join(f"{name}={outcome.deployment[name]}" for name in sorted(outcome.deployment))
    parts = [f"Trial {outcome.number} ({outcome.kind}): {_code(words or 'engine defaults')}"]
    if outcome.repeats is not None:
        parts.append(f"Launches trial {outcome.repeats} once more, to confirm it.")
    if outcome.partial is not None:
        parts.append(f"**Cut short**: {_code(outcome.partial)}. What was measured holds.")
    if outcome.verdict != "OK":
        where = "before any launch" if not outcome.launched else f"in phase {outcome.phase}"
        parts.append(f"**{outcome.verdict}** {where}: {_code(outcome.cause)}")
        if outcome.remedy:
            parts.append(f"What to change: {_code(outcome.remedy)}")
    parts += [
        f"At {point.level} the figures are not valid: {_code('; '.join(point.reasons))}"
        for point in outcome.points
        if not point.valid
    ]
    return "\n\n".join(parts)


def note_digest(note: str) -> str:
    """What a description is known by."""
    return hashlib.sha256(note.encode()).hexdigest()[:16]


def _code(text: str) -> str:
    """Words from outside, which are no markup and no links in Markdown."""
    line = " ".join(shown(text).split()).replace("`", "'")
    return f"`{line}`" if line else "(no words)"


def end_ms(outcome: TrialOutcome) -> int:
    """When a trial ended, by its own duration."""
    took_ms = round(outcome.timings_s.get("total", 0.0) * 1000)
    return timestamp_ms(outcome.started_at) + took_ms


def timestamp_ms(started_at: str) -> int:
    """Milliseconds since 1970; 0 for a time that is none, or before it (a clock never set)."""
    try:
        return max(0, int(datetime.fromisoformat(started_at).timestamp() * 1000))
    except (ValueError, OverflowError):
        return 0
