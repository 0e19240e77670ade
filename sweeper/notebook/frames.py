"""Trials and launches as tables. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sweeper.pareto.points import is_predicted, latest_attempts
from sweeper.pareto.repeats import CONFIRM
from sweeper.pareto.select import THROUGHPUT, front_mask, latency_of
from sweeper.trial.outcome import TrialOutcome
from sweeper.verdicts import Phase

if TYPE_CHECKING:
    import pandas as pd

MEASURED, PREDICTED, REPLAYED = "measured", "predicted", "replayed"

_WHAT_IT_IS = {
    "trial": "Int64",
    "kind": "object",
    "verdict": "object",
    "phase": "object",
    "cause": "object",
    "remedy": "object",
    "source": "object",
    "deployment_hash": "object",
    "deployment": "object",
}
TRIAL_COLUMNS = {
    **_WHAT_IT_IS,
    "launches": "Int64",
    "points": "Int64",
    "valid_points": "Int64",
    "on_front": "bool",
    "partial": "object",
    "peak_output_tokens_per_s_per_gpu": "float64",
    "peak_level": "object",
    "lowest_e2e_p95_ms": "float64",
    "quality": "float64",
    "quality_se": "float64",
    "quality_change": "float64",
    "quality_change_se": "float64",
    "quality_name": "object",
    "checkpoint_gib": "float64",
    "total_s": "float64",
}
"""Column of `trials_frame` → its pandas type; ``param.<name>`` columns follow."""

LAUNCH_COLUMNS = {
    **_WHAT_IT_IS,
    "attempt": "Int64",
    "repeats": "Int64",
    "launched": "bool",
    "partial": "object",
    "started_at": "datetime64[ns, UTC]",
    "total_s": "float64",
    **{f"{phase}_s": "float64" for phase in Phase if phase is not Phase.PLAN},
    "ready_s": "float64",
    "real_s": "float64",
    "levels": "Int64",
    "valid_levels": "Int64",
    "requests_ok": "Int64",
    "evidence": "object",
    "learnt": "object",
    "folder": "object",
}
"""Column of `launches_frame` → its pandas type."""


def source_of(outcome: TrialOutcome) -> str:
    """Where the figures of a trial come from: `MEASURED`, `PREDICTED` or `REPLAYED`."""
    if is_predicted(outcome):
        return PREDICTED
    engine = outcome.manifest.get("engine")
    name = engine.get("name") if isinstance(engine, dict) else None
    return REPLAYED if name == "replay" else MEASURED


def trials_frame(outcomes: Sequence[TrialOutcome], points: pd.DataFrame) -> pd.DataFrame:
    """One row a deployment that was tried, in the order of their numbers.

    Launches that only repeat another trial to confirm it are no rows of their own. Their figures
    are in ``points`` already, and they count in ``launches`` and ``total_s``.

    Args:
        outcomes: every attempt.
        points: `sweeper.pareto.points.points_frame` of the same.
    """
    best = _best_of(points)
    counted: Counter[int] = Counter()
    spent_s: dict[int, float] = {}
    for outcome in outcomes:
        number = outcome.number if outcome.repeats is None else outcome.repeats
        counted[number] += outcome.launched
        if (total_s := outcome.timings_s.get("total")) is not None:
            spent_s[number] = spent_s.get(number, 0.0) + total_s
    rows = []
    for outcome in latest_attempts(outcomes):
        if outcome.kind == CONFIRM:
            continue
        found = best.get(outcome.number, {})
        rows.append(
            {
                **_identity(outcome),
                "launches": counted[outcome.number],
                "points": len(outcome.points),
                "valid_points": len(outcome.valid_points),
                "on_front": False,
                "partial": outcome.partial,
                **_quality(outcome),
                "checkpoint_gib": outcome.checkpoint_gib,
                "total_s": spent_s.get(outcome.number),
                **found,
                **{f"param.{name}": value for name, value in outcome.deployment.items()},
            }
        )
    frame = _typed(rows, TRIAL_COLUMNS)
    settings = [name for name in frame.columns if name not in TRIAL_COLUMNS]
    # Where one deployment leaves a parameter out, the others' numbers stay whole: 64, not 64.0.
    return frame.assign(**{name: frame[name].convert_dtypes() for name in settings})


def launches_frame(
    outcomes: Iterable[TrialOutcome], folder_of: Callable[[int, int], Path]
) -> pd.DataFrame:
    """One row a line of the journal: first attempts, retries, and what confirmed another trial.

    Args:
        outcomes: every attempt.
        folder_of: (trial, attempt) → where the launch left its files.
    """
    rows = [
        {
            **_identity(outcome),
            "attempt": outcome.attempt,
            "repeats": outcome.repeats,
            "launched": outcome.launched,
            "partial": outcome.partial,
            "started_at": outcome.started_at or None,
            **{f"{phase}_s": seconds for phase, seconds in outcome.timings_s.items()},
            "levels": len(outcome.points),
            "valid_levels": len(outcome.valid_points),
            "requests_ok": sum(point.n for point in outcome.points),
            "evidence": outcome.evidence,
            "learnt": dict(outcome.learnt),
            "folder": str(folder_of(outcome.number, outcome.attempt)),
        }
        for outcome in outcomes
    ]
    return _typed(rows, LAUNCH_COLUMNS)


def _identity(outcome: TrialOutcome) -> dict[str, Any]:
    return {
        "trial": outcome.number,
        "kind": outcome.kind,
        "verdict": str(outcome.verdict),
        "phase": str(outcome.phase),
        "cause": outcome.cause,
        "remedy": outcome.remedy,
        "source": source_of(outcome),
        "deployment_hash": outcome.deployment_hash,
        "deployment": dict(outcome.deployment),
    }


def _quality(outcome: TrialOutcome) -> dict[str, Any]:
    quality = outcome.quality
    if quality is None:
        return {}
    return {
        "quality": quality.score,
        "quality_se": quality.score_se,
        "quality_change": quality.change,
        "quality_change_se": quality.change_se,
        "quality_name": quality.name,
    }


def _best_of(points: pd.DataFrame) -> dict[int, dict[str, Any]]:
    """Trial → what its valid points come to, of trials that have any."""
    latency = latency_of(points)
    if points.empty or THROUGHPUT not in points:
        return {}
    found: dict[int, dict[str, Any]] = {}
    front = points.loc[front_mask(points), "trial"]
    on_front = {int(trial) for trial in front}
    valid = points[points["valid"].astype(bool) & points[THROUGHPUT].notna()]
    for trial, rows in valid.groupby("trial"):
        top = rows.iloc[int(rows[THROUGHPUT].to_numpy(dtype=float).argmax())]
        number = int(str(trial))
        found[number] = {
            "on_front": number in on_front,
            "peak_output_tokens_per_s_per_gpu": float(top[THROUGHPUT]),
            "peak_level": str(top["level"]),
        }
        if latency == "e2e_p95_ms" and latency in rows and rows[latency].notna().any():
            found[number]["lowest_e2e_p95_ms"] = float(rows[latency].min())
    return found


def _typed(rows: Sequence[dict[str, Any]], kinds: dict[str, str]) -> pd.DataFrame:
    """A table with at least the named columns, each of its type, and the rest after them."""
    import pandas as pd

    frame = pd.DataFrame(list(rows))
    others = sorted(set(frame.columns) - set(kinds))
    frame = frame.reindex(columns=[*kinds, *others])
    for name, kind in kinds.items():
        if kind.startswith("datetime"):
            frame[name] = pd.to_datetime(frame[name], utc=True, errors="coerce")
        frame[name] = frame[name].astype(kind)  # type: ignore[call-overload]
    return frame
