"""The front as a spreadsheet takes it: every row with the conditions of its numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sweeper.pareto.points import latest_attempts, row_dict
from sweeper.pareto.recommendation import Recommendation
from sweeper.pareto.repeats import BASELINE
from sweeper.pareto.select import THROUGHPUT, latency_of
from sweeper.report.quality_words import unit_of
from sweeper.report.text import front_csv, front_frame
from sweeper.trial.outcome import TrialOutcome

if TYPE_CHECKING:
    import pandas as pd

_CONDITIONS: Mapping[str, tuple[str, ...]] = {
    "model": ("model", "name"),
    "model_revision": ("model", "revision"),
    "model_digest": ("model", "digest"),
    "engine": ("engine", "name"),
    "engine_version": ("engine", "version"),
    "hardware": ("hardware", "name"),
    "devices": ("devices",),
    "driver": ("hardware", "driver"),
    "precision": ("precision",),
    "quantization": ("quantization",),
    "workload": ("workload", "name"),
    "workload_sha256": ("workload", "sha256"),
    "input_tokens_asked": ("workload", "input_tokens"),
    "output_tokens_asked": ("workload", "output_tokens"),
    "temperature": ("decoding", "temperature"),
    "client_version": ("client", "version"),
    "started_at": ("started_at",),
}
"""Column → where a trial's manifest has it."""
_OVER = "_over_baseline"


def pareto_csv(
    frame: pd.DataFrame,
    outcomes: Sequence[TrialOutcome],
    recommendation: Recommendation | None,
    study: str,
) -> str:
    """The front with its conditions, one row an operating point.

    Beside the columns of `points_frame` there are ``study``, ``recommended``, ``quality_unit``, the
    conditions of each row's own launch, and throughput and latency as multiples of the baseline's
    at the same load. What was not measured is an empty cell.

    Args:
        frame: of `points_frame`.
        outcomes: every attempt.
        recommendation: None if nothing was feasible.
        study: its name.
    """
    import pandas as pd

    front = front_frame(frame, recommendation)
    if not len(front):
        return front_csv(front)
    by_trial = {outcome.number: outcome for outcome in latest_attempts(outcomes)}
    base = frame[frame["kind"] == BASELINE].to_dict("records")
    own = {row["level"]: row_dict(row) for row in base}
    told = [
        _told(row_dict(row), by_trial[int(row["trial"])], own, latency_of(frame))
        for row in front.to_dict("records")
    ]
    chosen = None if recommendation is None else (recommendation.trial, recommendation.level)
    places = zip(front["trial"], front["level"], strict=True)
    columns = {
        "study": [study] * len(front),
        "recommended": [(int(trial), str(level)) == chosen for trial, level in places],
        **{name: [one.get(name) for one in told] for name in told[0]},
    }
    # As objects: beside an empty cell a whole number would turn into a fraction.
    added = pd.DataFrame(columns, index=front.index, dtype=object)
    return front_csv(pd.concat([added, front], axis=1))


def _told(
    row: Mapping[str, Any],
    outcome: TrialOutcome,
    own: Mapping[str, Mapping[str, Any]],
    latency: str,
) -> dict[str, Any]:
    """Every row has the same names, in the same order."""
    base = own.get(row["level"], {})
    return {
        **{name: _at(outcome.manifest, path) for name, path in _CONDITIONS.items()},
        "quality_unit": _unit(outcome),
        **{f"{metric}{_OVER}": _over(row, base, metric) for metric in (THROUGHPUT, latency)},
    }


def _at(manifest: Mapping[str, Any], path: Sequence[str]) -> Any:
    found: Any = manifest
    for name in path:
        found = found.get(name) if isinstance(found, Mapping) else None
    return found


def _unit(outcome: TrialOutcome) -> str | None:
    """``share`` of 0 to 1, ``-nats a token`` (more is better) or nothing, of the quality column."""
    if outcome.quality is None:
        return None
    unit = unit_of(outcome.quality)
    return {"%": "share", "": None}.get(unit, f"-{unit}")


def _over(row: Mapping[str, Any], base: Mapping[str, Any], metric: str) -> float | None:
    value, reference = row.get(metric), base.get(metric)
    return value / reference if value is not None and reference else None
