"""What priors predicted beside what was measured, from the journal alone. Pure.

A trial's manifest keeps under `prior` what each kind predicted of it, as it came from its source:
kind → level → metric → value. Everything told here is derived from that.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sweeper.config.schema import SweeperConfig
from sweeper.pareto.points import latest_attempts
from sweeper.search.priors.guide import MANIFEST
from sweeper.search.priors.prior import PredictedPoint, Prediction
from sweeper.search.priors.trust import TRUST, spearman, weight
from sweeper.search.priors.worth import Worth, as_points, ratios
from sweeper.trial.outcome import TrialOutcome
from sweeper.verdicts import Verdict

LEAST_AT_A_LEVEL = 3
"""Trials at one level below which no rank correlation is told of it."""

Pair = tuple[float, float, float]
"""Predicted, predicted and calibrated by the baseline, measured."""


@dataclass(frozen=True)
class PriorError:
    """How well one prior predicted one metric in a study.

    Attributes:
        kind: of the prior.
        metric: its name.
        points: operating points that were predicted and measured, the baseline's not counted.
        error_share: median of abs(predicted / measured - 1), as the source predicted it.
        calibrated_error_share: the same after calibration by the baseline; None if that has no
            such figure.
        rank_correlation: Spearman's, within each load level, the mean over levels by their trials;
            None below `LEAST_AT_A_LEVEL` trials.
    """

    kind: str
    metric: str
    points: int
    error_share: float
    calibrated_error_share: float | None
    rank_correlation: float | None


def predictions_of(outcome: TrialOutcome) -> dict[str, Prediction]:
    """Kind → what it predicted of a trial, as the manifest kept it; no figures are left out."""
    told = outcome.manifest.get(MANIFEST)
    loads = {point.level: point.load for point in outcome.points}
    found: dict[str, Prediction] = {}
    for kind, levels in told.items() if isinstance(told, Mapping) else ():
        if isinstance(levels, Mapping):
            points = (
                PredictedPoint(loads[level], _figures(metrics))
                for level, metrics in levels.items()
                if level in loads and isinstance(metrics, Mapping)
            )
            found[str(kind)] = Prediction(tuple(points))
    return found


def prior_errors(outcomes: Iterable[TrialOutcome], metrics: Sequence[str]) -> list[PriorError]:
    """Predicted against measured, one entry a prior and metric that have points.

    Args:
        outcomes: every attempt.
        metrics: those asked for, in the order wanted.
    """
    measured = _measured(outcomes)
    base = next((one for one in measured if one.kind == "baseline"), None)
    found = []
    for kind in TRUST:
        for metric in metrics:
            pairs = _pairs(measured, base, kind, metric)
            if pairs:
                found.append(_error(kind, metric, pairs))
    return found


def prior_weights(outcomes: Iterable[TrialOutcome], cfg: SweeperConfig) -> dict[str, float]:
    """How far each prior that predicts is followed now, 0 to 1: as the guide has it."""
    measured = [one for one in _measured(outcomes) if one.partial is None]
    base = next((one for one in measured if one.kind == "baseline"), None)
    if base is None:
        return {}
    worth = Worth(cfg, base)
    kinds = [kind for kind in TRUST if kind in predictions_of(base)]
    return {kind: _weight(kind, measured, base, worth) for kind in kinds}


def _weight(kind: str, measured: Sequence[TrialOutcome], base: TrialOutcome, worth: Worth) -> float:
    scale = ratios(predictions_of(base).get(kind), base)
    guesses, values = [], []
    for outcome in measured:
        prediction = predictions_of(outcome).get(kind)
        guess = None if prediction is None else worth.of(as_points(prediction, scale))
        value = worth.of(outcome.valid_points)
        if guess is not None and value is not None:
            guesses.append(guess)
            values.append(value)
    return weight(TRUST[kind], guesses, values)


def _measured(outcomes: Iterable[TrialOutcome]) -> list[TrialOutcome]:
    """Trials with a measured curve; repeats of one are left out."""
    return [
        outcome
        for outcome in latest_attempts(outcomes)
        if outcome.verdict is Verdict.OK and outcome.valid_points and outcome.repeats is None
    ]


def _pairs(
    measured: Sequence[TrialOutcome], base: TrialOutcome | None, kind: str, metric: str
) -> dict[str, list[Pair]]:
    """Level → pairs of all trials but the baseline."""
    scale = {} if base is None else ratios(predictions_of(base).get(kind), base)
    found: dict[str, list[Pair]] = {}
    for outcome in measured:
        prediction = predictions_of(outcome).get(kind)
        if prediction is None or outcome is base:
            continue
        seen = {point.level: point.metrics for point in outcome.valid_points}
        for raw, calibrated in zip(
            as_points(prediction, {}), as_points(prediction, scale), strict=True
        ):
            value = seen.get(raw.level, {}).get(metric)
            if value and value > 0 and metric in raw.metrics:
                known = (raw.level, metric) in scale
                guess = calibrated.metrics[metric] if known else math.nan
                found.setdefault(raw.level, []).append((raw.metrics[metric], guess, value))
    return found


def _error(kind: str, metric: str, pairs: Mapping[str, Sequence[Pair]]) -> PriorError:
    every = [pair for level in pairs.values() for pair in level]
    calibrated = [abs(guess / value - 1) for _, guess, value in every if not math.isnan(guess)]
    told = [
        (len(level), found)
        for level in pairs.values()
        if len(level) >= LEAST_AT_A_LEVEL
        and (found := spearman([raw for raw, _, _ in level], [value for _, _, value in level]))
        is not None
    ]
    trials = sum(count for count, _ in told)
    return PriorError(
        kind=kind,
        metric=metric,
        points=len(every),
        error_share=statistics.median(abs(raw / value - 1) for raw, _, value in every),
        calibrated_error_share=statistics.median(calibrated) if calibrated else None,
        rank_correlation=sum(count * rho for count, rho in told) / trials if trials else None,
    )


def _figures(metrics: Mapping[Any, Any]) -> dict[str, float]:
    return {
        str(name): float(value)
        for name, value in metrics.items()
        if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    }
