"""How an outcome looks in MLflow: names it accepts, params, metrics, tags. Pure, without MLflow."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from sweeper.load.level import CLOSED
from sweeper.trial.ladder import rungs
from sweeper.trial.outcome import Point, QualityScore, TrialOutcome

MAX_PARAM_LENGTH = 6000
# Of servers before 2.14; newer ones take 8000.
MAX_TAG_LENGTH = 5000
MAX_NAME_LENGTH = 250
_UNFIT = re.compile(r"[^A-Za-z0-9_\-.:/ ]+")
_LABELS = {"": "unnamed", ".": "dot", "..": "dots"}
SLO_RATE = "slo_rate_per_s"
"""What a search for the highest rate under limits learnt; see `sweeper.load.ladder`."""

_LEARNT_METRICS = ("model_memory_gib", "kv_cache_tokens", "kv_cache_memory_gib")
_BEST_METRICS = (
    "output_tokens_per_s",
    "output_tokens_per_s_per_gpu",
    "e2e_p95_ms",
    "ttft_p95_ms",
    "tpot_p95_ms",
)


@dataclass(frozen=True)
class RunForm:
    """Everything a child run is filled with.

    Attributes:
        name: display name, ``003-search``.
        params: all strings.
        metrics: (name, value, step), finite only; the step is the concurrency of a closed loop,
            of other loads the level's place in the ladder, 0 the easiest.
        tags: all strings.
        finished: True if the run ends as FINISHED, else FAILED.
        timestamp_ms: start of the run and time of every metric; fixed by the outcome, so that
            logging twice changes nothing.
        end_ms: end of the run by the trial's own duration, whatever the clock did meanwhile.
    """

    name: str
    params: dict[str, str]
    metrics: list[tuple[str, float, int]]
    tags: dict[str, str] = field(default_factory=dict)
    finished: bool = True
    timestamp_ms: int = 0
    end_ms: int = 0


def run_form(outcome: TrialOutcome, parameter_names: Sequence[str]) -> RunForm:
    """Form of one trial.

    Args:
        outcome: the trial.
        parameter_names: every parameter of the space; what the deployment leaves to the engine
            is logged as ``default``, so that runs compare column by column.
    """
    suffix = "" if outcome.attempt == 1 else f"-retry{outcome.attempt}"
    start_ms = _timestamp_ms(outcome.started_at)
    return RunForm(
        name=f"{outcome.number:03d}-{outcome.kind}{suffix}",
        params={**params(outcome.deployment, parameter_names), **_made_params(outcome)},
        metrics=list(_metrics(outcome)),
        tags=trial_tags(outcome),
        finished=outcome.verdict == "OK",
        timestamp_ms=start_ms,
        end_ms=start_ms + round(outcome.timings_s.get("total", 0.0) * 1000),
    )


def params(deployment: Mapping[str, Any], parameter_names: Sequence[str]) -> dict[str, str]:
    """Parameter name → text, under names MLflow accepts."""
    names = sorted({*parameter_names, *deployment})
    safe = safe_names(names)
    return {safe[name]: _text(deployment.get(name, "default")) for name in names}


def _made_params(outcome: TrialOutcome) -> dict[str, str]:
    """The recipe as it was carried out: a group size that was left open has its number here.

    Names are those of a recipe's searched fields, whose values these agree with.
    """
    recipe = outcome.made.get("recipe")
    told = dict(recipe) if isinstance(recipe, Mapping) else {}
    told = {"recipe" if key == "name" else key: value for key, value in told.items()}
    if outcome.made.get("key"):
        told["checkpoint_key"] = outcome.made["key"]
    return {f"quantize.{name}": _text(value) for name, value in sorted(told.items())}


def trial_tags(outcome: TrialOutcome) -> dict[str, str]:
    """Tags of a child run; they also find it again."""
    tags = {
        "sweeper.role": "trial",
        "number": str(outcome.number),
        "attempt": str(outcome.attempt),
        "kind": outcome.kind,
        "verdict": str(outcome.verdict),
        "phase": str(outcome.phase),
        "deployment_hash": outcome.deployment_hash,
        "launched": str(outcome.launched).lower(),
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


def safe_names(names: Iterable[str]) -> dict[str, str]:
    """Each name → one that MLflow accepts; two names never become one."""
    result: dict[str, str] = {}
    taken: set[str] = set()
    for name in sorted(set(names), key=lambda name: (sanitise(name) != name, name)):
        safe = sanitise(name)
        if safe in taken:
            digest = hashlib.sha256(name.encode()).hexdigest()[:8]
            safe = f"{safe[: MAX_NAME_LENGTH - 9]}-{digest}"
        taken.add(safe)
        result[name] = safe
    return result


def sanitise(name: str) -> str:
    """A name of letters, digits, ``_ - . : /`` and spaces that is not a path out of its folder."""
    kept = _UNFIT.sub("_", name.replace("%", "pct")).strip()
    parts = [_LABELS.get(part, part) for part in kept.split("/")]
    return "/".join(parts)[:MAX_NAME_LENGTH]


def best_point(points: Sequence[Point]) -> Point | None:
    """The valid point of highest throughput, None if there is none."""
    measured = [p for p in points if p.valid and "output_tokens_per_s" in p.metrics]
    return max(measured, key=lambda p: p.metrics["output_tokens_per_s"], default=None)


def _metrics(outcome: TrialOutcome) -> Iterator[tuple[str, float, int]]:
    raw = [item for item in _raw_metrics(outcome) if math.isfinite(item[1])]
    safe = safe_names(name for name, _, _ in raw)
    return ((safe[name], value, step) for name, value, step in raw)


def _raw_metrics(outcome: TrialOutcome) -> Iterator[tuple[str, float, int]]:
    for point, rung in zip(outcome.points, rungs(outcome.points), strict=True):
        # Numbers that failed a gate stay visible, but never beside those that may be compared.
        prefix = "" if point.valid else "invalid/"
        step = _step(point, rung)
        for name, value in point.metrics.items():
            yield prefix + name, float(value), step
        for name, value in point.predicted.items():
            yield f"{prefix}predicted.{name}", float(value), step
        yield f"{prefix}n_requests", float(point.n), step
    yield from _quality_metrics(outcome.quality)
    yield from _memory_metrics(outcome)
    best = best_point(outcome.points)
    if best is not None:
        asked = {"best_concurrency": best.concurrency, "best_rate_per_s": best.rate_per_s}
        for name, level in asked.items():
            if level is not None:
                yield name, float(level), 0
        for name in _BEST_METRICS:
            if name in best.metrics:
                yield f"best_{name}", best.metrics[name], 0
    slo_rate = outcome.learnt.get(SLO_RATE)
    if isinstance(slo_rate, int | float):
        yield SLO_RATE, float(slo_rate), 0
    for phase, seconds in outcome.timings_s.items():
        yield f"time_{phase}_s", seconds, 0


def _quality_metrics(quality: QualityScore | None) -> Iterator[tuple[str, float, int]]:
    if quality is None:
        return
    told: dict[str, float | None] = {
        "agreement": quality.agreement,
        "agreement_change": quality.agreement_change,
        "loglik_change_nats": quality.loglik_change_nats,
        "perplexity": quality.perplexity.get("perplexity"),
        **{f"task_{name}": task.get("value") for name, task in quality.tasks.items()},
        **{f"task_{name}_change": task.get("change") for name, task in quality.tasks.items()},
    }
    for name, value in told.items():
        if value is not None:
            yield f"quality_{name}", float(value), 0


def _memory_metrics(outcome: TrialOutcome) -> Iterator[tuple[str, float, int]]:
    """What the weights take on disk and on the device, and what room that left."""
    if outcome.checkpoint_gib is not None:
        yield "checkpoint_gib", outcome.checkpoint_gib, 0
    for name in _LEARNT_METRICS:
        value = outcome.learnt.get(name)
        if isinstance(value, int | float):
            yield name, float(value), 0
    seconds = outcome.made.get("made_s")
    if isinstance(seconds, int | float):
        yield "quantize_s", float(seconds), 0


def _step(point: Point, rung: int) -> int:
    """Where a level stands on MLflow's axis, whose steps are whole numbers."""
    if point.load["kind"] == CLOSED and point.concurrency is not None:
        return point.concurrency
    return rung


def _text(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, default=str)
    return text if len(text) <= MAX_PARAM_LENGTH else text[: MAX_PARAM_LENGTH - 1] + "…"


def _timestamp_ms(started_at: str) -> int:
    """Milliseconds since 1970; 0 for a time that is none, or before it (a clock never set)."""
    try:
        return max(0, int(datetime.fromisoformat(started_at).timestamp() * 1000))
    except (ValueError, OverflowError):
        return 0
