"""Outcomes as a table: one row an operating point. The shape every later question starts from."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from sweeper.metrics.noise import Noise
from sweeper.pareto.repeats import CONFIRM, Repeats, noise_of, pooled, repeats_by_trial
from sweeper.trial.ladder import rungs
from sweeper.trial.outcome import Point, QualityScore, TrialOutcome

if TYPE_CHECKING:
    import pandas as pd

FIXED_COLUMNS = (
    "trial",
    "attempt",
    "kind",
    "deployment_hash",
    "verdict",
    "level",
    "load_kind",
    "rung",
    "concurrency",
    "rate_per_s",
    "saturated",
    "valid",
    "partial",
    "launches",
    "unstable",
    "n",
    "predicted",
    "quality",
    "quality_se",
    "quality_settled",
    "quality_name",
    "quality_shown",
    "loglik_change_nats",
    "deployment",
)


def points_frame(outcomes: Iterable[TrialOutcome]) -> pd.DataFrame:
    """Table of all operating points, in the order of trial and rung of the ladder.

    What was launched again to confirm it makes one row with its repeats, see
    `sweeper.pareto.repeats`: a confirmation is no deployment of its own.

    A row is known by ``trial`` and ``level``, the level's name; ``concurrency`` and ``rate_per_s``
    are what was asked, None where the kind of load has none; ``rung`` counts from the easiest;
    ``saturated`` says that requests came faster than they were served; ``partial`` that the
    launch was cut short, so that the row is on no front and never chosen; ``launches`` how many
    launches its figures are the mean of; ``unstable`` how the deployment failed when it was
    launched again (its ``verdict`` is then that failure's), empty if it did not.

    Columns: `FIXED_COLUMNS` (``quality`` is `QualityScore.score`, ``quality_name`` and
    ``quality_shown`` say it in words, ``quality_settled`` is what to rank by: the baseline's own
    where the two cannot be told apart); one a metric (units in its name); ``<metric>.low`` and
    ``<metric>.high``, its 95 % interval; ``predicted.<figure>``, what arithmetic says of the
    point; ``low_confidence``, names joined by a space; and ``param.<name>``, the deployment's own
    words, absent where the engine's default rules. Where a point was confirmed, ``repeats`` lists
    its launches (`Repeat.told`), and ``searched`` holds what the search had measured.
    A retried trial appears with its last attempt only. What was not measured is NaN.

    Args:
        outcomes: any order.

    Returns:
        A frame with at least `FIXED_COLUMNS`, empty if nothing was driven.
    """
    import pandas as pd

    latest = latest_attempts(outcomes)
    own = next((o.quality for o in latest if o.kind == "baseline"), None)
    again = repeats_by_trial(latest)
    noise = noise_of(latest) if again else Noise()
    rows = [
        row
        for outcome in latest
        if outcome.kind != CONFIRM
        for row in _rows(outcome, own, again.get(outcome.number), noise)
    ]
    if not rows:
        return pd.DataFrame(columns=list(FIXED_COLUMNS))
    frame = pd.DataFrame(rows)
    for asked in ("concurrency", "rate_per_s"):
        if frame[asked].isna().any():
            # As numbers, those that are there would turn into fractions: 8 streams into 8.0.
            frame[asked] = pd.Series([row[asked] for row in rows], dtype=object)
    order = sorted(c for c in frame.columns if c not in FIXED_COLUMNS)
    frame = frame[[*FIXED_COLUMNS, *order]]
    return frame.sort_values(["trial", "rung"], kind="stable", ignore_index=True)


def latest_attempts(outcomes: Iterable[TrialOutcome]) -> list[TrialOutcome]:
    """One outcome a trial: that of its last attempt, in the order of the numbers."""
    latest: dict[int, TrialOutcome] = {}
    for outcome in outcomes:
        known = latest.get(outcome.number)
        if known is None or outcome.attempt >= known.attempt:
            latest[outcome.number] = outcome
    return [latest[number] for number in sorted(latest)]


def row_dict(row: Mapping[Any, Any]) -> dict[str, Any]:
    """A row as a plain mapping without what was not measured and without ``param.*`` copies.

    NumPy scalars become Python's, so that the result can be written as JSON.
    """
    result: dict[str, Any] = {}
    for key, value in row.items():
        name = str(key)
        plain = value.item() if hasattr(value, "item") else value
        is_missing = plain is None or (isinstance(plain, float) and math.isnan(plain))
        if not is_missing and not name.startswith("param."):
            result[name] = plain
    return result


def _rows(
    outcome: TrialOutcome, own: QualityScore | None, again: Repeats | None, noise: Noise
) -> list[dict[str, Any]]:
    """A row a level; a level that only the repeats were driven at is one too."""
    points = list(outcome.points)
    driven = {point.level for point in points}
    if again is not None:
        points += [point for level, point in again.extra_points if level not in driven]
    rows = [
        _row(outcome, point, own) | {"rung": rung}
        for point, rung in zip(points, rungs(points), strict=True)
    ]
    if again is None:
        return rows
    return [_with_repeats(row, again, noise, row["level"] in driven) for row in rows]


def _with_repeats(
    row: dict[str, Any], again: Repeats, noise: Noise, was_searched: bool
) -> dict[str, Any]:
    if again.unstable and row["kind"] != "baseline":
        row |= {"unstable": again.unstable, "verdict": str(again.verdict)}
    found = again.by_level.get(row["level"])
    if not found:
        return row
    measured = {*found[0].point.metrics, *(name for name in row if name.endswith(_ENDS))}
    searched = {name: row[name] for name in row if name in measured or name in _OF_A_LAUNCH}
    kept = {name: value for name, value in row.items() if not name.endswith(_ENDS)}
    return {
        **kept,
        **pooled(found, noise),
        **({"searched": searched} if was_searched else {}),
    }


_ENDS = (".low", ".high")
_OF_A_LAUNCH = ("n", "valid", "saturated", "low_confidence")


def _row(outcome: TrialOutcome, point: Point, baseline: QualityScore | None) -> dict[str, Any]:
    quality = outcome.quality
    row: dict[str, Any] = {
        "trial": outcome.number,
        "attempt": outcome.attempt,
        "kind": outcome.kind,
        "deployment_hash": outcome.deployment_hash,
        "verdict": str(outcome.verdict),
        "level": point.level,
        "load_kind": point.load["kind"],
        "concurrency": point.concurrency,
        "rate_per_s": point.rate_per_s,
        "saturated": bool(point.load.get("saturated", False)),
        "valid": point.valid,
        "partial": outcome.partial is not None,
        "launches": 1,
        "unstable": "",
        "n": point.n,
        "predicted": is_predicted(outcome),
        "quality": quality.score if quality else None,
        "quality_se": quality.score_se if quality else None,
        "quality_settled": quality.settled(baseline) if quality else None,
        "quality_name": quality.name if quality else None,
        "quality_shown": quality.shown if quality else None,
        "loglik_change_nats": quality.loglik_change_nats if quality else None,
        "deployment": dict(outcome.deployment),
        "low_confidence": " ".join(point.low_confidence),
    }
    for name, value in point.metrics.items():
        row.setdefault(name, value)
    for name, (low, high) in point.intervals.items():
        row[f"{name}.low"], row[f"{name}.high"] = low, high
    for name, value in point.predicted.items():
        row[f"predicted.{name}"] = value
    for name, value in outcome.deployment.items():
        row[f"param.{name}"] = value
    return row


def is_predicted(outcome: TrialOutcome) -> bool:
    """True if the numbers come from a model of an engine, as the manifest says."""
    engine = outcome.manifest.get("engine")
    return bool(engine.get("predicted", False)) if isinstance(engine, Mapping) else False
