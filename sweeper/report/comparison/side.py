"""One side of a comparison: a trial, or the result file of another client, in one form. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from sweeper.metrics.external.result import ForeignLevel, ForeignRun, present
from sweeper.trial.outcome import Point, QualityScore, TrialOutcome
from sweeper.verdicts import Verdict

_LENGTHS = ("input_tokens", "output_tokens")
_HASHES = ("sha256", "hash", "digest")
_OWN_WINDOW = "steady state"


@dataclass(frozen=True)
class Level:
    """One load level. Fields as in `sweeper.trial.outcome.Point`; `n` is None if not told."""

    name: str
    kind: str
    concurrency: int | None
    metrics: Mapping[str, float]
    intervals: Mapping[str, list[float]]
    n: int | None
    valid: bool = True
    reasons: tuple[str, ...] = ()
    low_confidence: tuple[str, ...] = ()


@dataclass(frozen=True)
class Side:
    """What is compared.

    Attributes:
        label: how the user named it.
        what: what it is, in words.
        study: identity of the study it belongs to, None for a foreign file.
        conditions: what is known, by the names of `sweeper.report.comparison.conditions`; what is
            not known is absent.
        deployment: parameters that were searched; None if not told.
        arguments: effective engine arguments; None if not told.
        levels: the load levels, in their order.
        quality: of the output, None if not measured; the load does not change it.
        notes: what a reader of the figures has to know.
        is_reference: True for the baseline, against which the quality of its study is measured.
    """

    label: str
    what: str
    study: str | None
    conditions: Mapping[str, Any]
    deployment: Mapping[str, Any] | None
    arguments: Mapping[str, Any] | None
    levels: tuple[Level, ...]
    quality: QualityScore | None = None
    notes: tuple[str, ...] = ()
    is_reference: bool = False

    @property
    def foreign(self) -> bool:
        return self.study is None


def side_of_trial(outcome: TrialOutcome, *, label: str, what: str, study: str) -> Side:
    """A trial of a study, whatever its manifest has."""
    manifest = outcome.manifest
    notes = []
    if outcome.verdict is not Verdict.OK:
        notes.append(f"trial {outcome.number} ended {outcome.verdict}: {outcome.cause}")
    arguments = manifest.get("effective_args")
    return Side(
        label=label,
        what=what,
        study=study,
        conditions=_conditions(outcome),
        deployment=dict(outcome.deployment),
        arguments=dict(arguments) if isinstance(arguments, Mapping) and arguments else None,
        levels=tuple(_level(point) for point in outcome.points),
        quality=outcome.quality,
        notes=tuple(notes),
        is_reference=outcome.kind == "baseline",
    )


def side_of_file(run: ForeignRun, *, label: str) -> Side:
    """A result file of another client."""
    conditions, notes = dict(run.conditions), list(run.notes)
    deployment = conditions.pop("deployment", None)
    by_name = {level.name: _foreign_level(level) for level in run.levels}
    if len(by_name) < len(run.levels):
        notes.append("it has several results of one load level: the last of each is compared")
    return Side(
        label=label,
        what=f"result of {run.client}",
        study=None,
        conditions=conditions,
        deployment=deployment,
        arguments=None,
        levels=tuple(by_name.values()),
        notes=tuple(notes),
    )


def _foreign_level(level: ForeignLevel) -> Level:
    return Level(
        name=level.name,
        kind=str(level.load.get("kind", "")),
        concurrency=level.load.get("concurrency"),
        metrics=level.metrics,
        intervals=level.intervals,
        n=level.n,
        valid=not level.reasons,
        reasons=level.reasons,
        low_confidence=level.low_confidence,
    )


def _level(point: Point) -> Level:
    return Level(
        name=point.level,
        kind=str(point.load.get("kind", "")),
        concurrency=point.concurrency,
        metrics=point.metrics,
        intervals=point.intervals,
        n=point.n,
        valid=point.valid,
        reasons=tuple(point.reasons),
        low_confidence=tuple(point.low_confidence),
    )


def _conditions(outcome: TrialOutcome) -> dict[str, Any]:
    manifest = outcome.manifest
    return present(
        {
            "numbers": _numbers(manifest),
            **_model(manifest),
            **_workload(manifest),
            **_engine(manifest, outcome),
            **_hardware(manifest, outcome),
            "decoding": manifest.get("decoding"),
            "load_kind": _at(manifest, "load.kind"),
            "warm_up": _warm_up(manifest),
            "goodput_limits": _goodput_limits(manifest),
            "repeats": _at(manifest, "load.repeats", "repeats"),
            "client": _at(manifest, "client.name"),
            "client_version": _at(manifest, "client.version"),
            "time": outcome.started_at or manifest.get("started_at"),
            "throughput_window": _OWN_WINDOW,
        }
    )


def _numbers(manifest: Mapping[str, Any]) -> str | None:
    predicted = _at(manifest, "engine.predicted")
    measured = manifest.get("measured")
    if predicted is None and measured is None:
        return None
    return "predicted" if predicted or measured is False else "measured"


def _model(manifest: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "model": _at(manifest, "model.name", "model.path"),
        "model_path": _at(manifest, "model.path"),
        "revision": _at(manifest, "model.revision"),
        "digest": _at(manifest, "model.digest"),
        "tokenizer": _at(manifest, "tokenizer.digest", "model.tokenizer", "tokenizer"),
        "checkpoint": manifest.get("checkpoint"),
        **_made(manifest),
    }


def _made(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """How a checkpoint of ours came about: its recipe, apart from the texts it was made with."""
    told = _at(manifest, "made.recipe")
    recipe = dict(told) if isinstance(told, Mapping) else {}
    texts = {name: recipe.pop(name) for name in list(recipe) if name.startswith("calibration")}
    return {
        "recipe": recipe or None,
        "calibration": texts or None,
        "tool_versions": _at(manifest, "made.versions"),
        "checkpoint_digest": _at(manifest, "made.digest"),
    }


def _workload(manifest: Mapping[str, Any]) -> dict[str, Any]:
    asked = manifest.get("workload")
    workload = dict(asked) if isinstance(asked, Mapping) else {}
    told = {
        "input_tokens_asked": workload.pop("input_tokens", None),
        "output_tokens_asked": workload.pop("output_tokens", None),
        "workload_hash": next((workload[name] for name in _HASHES if name in workload), None),
    }
    rest = {k: v for k, v in workload.items() if k not in _HASHES}
    # The name is the user's; what is the same by kind and settings is the same workload.
    if len(rest) > 1:
        rest.pop("name", None)
    return {**told, "workload": rest or None}


def _engine(manifest: Mapping[str, Any], outcome: TrialOutcome) -> dict[str, Any]:
    return {
        "engine": _at(manifest, "engine.name"),
        "engine_version": _at(manifest, "engine.version"),
        "engine_build": _at(manifest, "engine.distribution"),
        "libraries": _at(manifest, "engine.details"),
        "precision": _at(manifest, "effective_args.dtype", "precision"),
        "quantization": _at(manifest, "effective_args.quantization", "quantization")
        or outcome.deployment.get("quantization"),
    }


def _hardware(manifest: Mapping[str, Any], outcome: TrialOutcome) -> dict[str, Any]:
    is_cpu = _at(manifest, "hardware.kind") == "cpu"
    return {
        "gpu": _at(manifest, "hardware.name"),
        "gpu_count": _at(manifest, "hardware.device_count"),
        "devices_used": _at(manifest, "devices") or _devices(outcome.points),
        "cpu_cores": _at(manifest, "hardware.cpu_cores") if is_cpu else None,
        "driver": _at(manifest, "hardware.driver"),
        "cuda": _at(manifest, "hardware.cuda"),
        "memory_gib": _at(manifest, "hardware.memory_gib"),
    }


def _devices(points: Iterable[Point]) -> int | None:
    """How many devices served, from throughput and throughput by device."""
    for point in points:
        total = point.metrics.get("output_tokens_per_s")
        each = point.metrics.get("output_tokens_per_s_per_gpu")
        if total and each:
            return round(total / each)
    return None


def _warm_up(manifest: Mapping[str, Any]) -> Any:
    """What was asked for before the measured requests."""
    asked = _at(manifest, "load.warm_up", "warm_up")
    if asked is None:
        per_stream = _at(manifest, "load.warmup_requests_per_stream")
        return None if per_stream is None else {"requests_per_stream": per_stream}
    return asked


def _goodput_limits(manifest: Mapping[str, Any]) -> dict[str, Any] | None:
    """Limits a single request had to keep to count as good; None if there were none."""
    limits = _at(manifest, "load.goodput")
    if not isinstance(limits, Mapping):
        return None
    return {k: v for k, v in limits.items() if k.endswith("_ms") and v is not None} or None


def _at(data: Mapping[str, Any], *paths: str) -> Any:
    """The first of several dotted paths that leads to something, else None."""
    for path in paths:
        value: Any = data
        for key in path.split("."):
            value = value.get(key) if isinstance(value, Mapping) else None
        is_empty = isinstance(value, str | Mapping) and not value
        if value is not None and not is_empty:
            return value
    return None
