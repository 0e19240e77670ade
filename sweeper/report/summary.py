"""A finished study in the few figures that its MLflow parent run shows. Pure.

docs/metrics.md names each of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sweeper.config.schema import SweeperConfig
from sweeper.pareto.points import latest_attempts
from sweeper.pareto.recommendation import Recommendation
from sweeper.pareto.rule import Row, lasting, limits, misses
from sweeper.pareto.select import SHOWN_METRICS, THROUGHPUT, front_mask, selectable_rows
from sweeper.search.budget import Account
from sweeper.tracking.mlflow_log import StudySummary
from sweeper.trial.outcome import TrialOutcome
from sweeper.verdicts import Verdict

if TYPE_CHECKING:
    import pandas as pd

_BEST = (THROUGHPUT, "output_tokens_per_s")
CONFIRMED, ONCE, MODELLED = "confirmed", "measured once", "predicted"
"""What the gain over the defaults rests on."""


def study_summary(
    cfg: SweeperConfig,
    outcomes: Sequence[TrialOutcome],
    frame: pd.DataFrame,
    recommendation: Recommendation | None,
    ended: str,
    *,
    note: str | None = None,
    artifacts: Sequence[Path] = (),
) -> StudySummary:
    """What the parent run is told.

    Args:
        cfg: of the study.
        outcomes: every attempt, oldest first.
        frame: of `points_frame`.
        recommendation: None if nothing was feasible.
        ended: why the search ended; ``stopped`` at its start marks an interrupted study.
        note: the run's description, Markdown.
        artifacts: files and folders to attach, those that exist.
    """
    mask = front_mask(frame)
    numbers = frozenset(int(number) for number in frame["trial"][mask])
    tags = {"ended": ended}
    # MLflow lists them in this order: first what is decided by.
    metrics = {} if recommendation is None else _recommended(recommendation, tags)
    metrics |= _best(frame, cfg) | {"front_size": float(mask.sum())} | _effort(cfg, outcomes)
    return StudySummary(
        pareto_trials=numbers,
        recommended_trial=None if recommendation is None else recommendation.trial,
        confirmations=_confirmations(recommendation),
        metrics=metrics,
        tags=tags,
        note=note,
        artifacts=tuple(artifacts),
        interrupted=ended.startswith("stopped"),
    )


def _effort(cfg: SweeperConfig, outcomes: Sequence[TrialOutcome]) -> dict[str, float]:
    """What was tried, what it cost, and how the launches that failed ended."""
    account = Account(cfg.hardware.price_per_hour, 1)
    account.update(outcomes)
    spent, latest = account.spent, latest_attempts(outcomes)
    launched = [outcome for outcome in outcomes if outcome.launched]
    failed = [outcome.verdict for outcome in launched if outcome.verdict is not Verdict.OK]
    told = {
        "trials": len(latest),
        "trials_refused": sum(not outcome.launched for outcome in latest),
        "launches": spent.launches,
        "minutes": spent.minutes,
        "failures": len(failed),
        **{f"failures_{v.lower()}": failed.count(v) for v in Verdict if v in failed},
    }
    if spent.money is not None:
        told["money"] = spent.money
    return {name: float(value) for name, value in told.items()}


def _best(frame: pd.DataFrame, cfg: SweeperConfig) -> dict[str, float]:
    """The highest throughput of all deployments, and of all points that keep the SLO."""
    rows, slo = selectable_rows(frame), limits(cfg.select.slo)
    told = _highest(rows, "study_best_")
    if slo:
        keeping = [row for row in rows if not misses(row, slo)]
        told |= _highest(lasting(keeping), "study_best_under_slo_")
    return told


def _highest(rows: Sequence[Row], prefix: str) -> dict[str, float]:
    known = {name: [row[name] for row in rows if name in row] for name in _BEST}
    return {f"{prefix}{name}": float(max(values)) for name, values in known.items() if values}


def _recommended(recommendation: Recommendation, tags: dict[str, str]) -> dict[str, float]:
    """Figures of the recommended point; words about it go into `tags`."""
    point = recommendation.point
    tags |= {
        "recommended_trial": str(recommendation.trial),
        "recommended_level": recommendation.level,
        "headline": recommendation.headline,
        "confirmed": str(recommendation.confirmed).lower(),
        "keeps_slo": str(recommendation.keeps_slo).lower(),
    }
    if "quality_name" in point:
        tags["recommended_quality"] = f"{point['quality_name']} {point['quality_shown']}"
    asked = {
        "recommended_concurrency": recommendation.concurrency,
        "recommended_rate_per_s": recommendation.rate_per_s,
    }
    metrics = _gain(recommendation, tags) | _confirmation(recommendation, tags)
    metrics |= {name: float(value) for name, value in asked.items() if value is not None}
    for name in SHOWN_METRICS:
        if name in point:
            metrics[f"recommended_{name}"] = float(point[name])
        if name in recommendation.ratios:
            metrics[f"ratio_{name}"] = recommendation.ratios[name]
    return metrics


def _gain(recommendation: Recommendation, tags: dict[str, str]) -> dict[str, float]:
    """How much better than the defaults, in per cent, with its interval where one is known."""
    names = ("gain_percent", "gain_low_percent", "gain_high_percent")
    found = recommendation.confirmation
    if found is not None and found.percent is not None:
        tags["gain_basis"] = CONFIRMED if recommendation.confirmed else f"not {CONFIRMED}"
        return dict(zip(names, found.percent, strict=True))
    versus = recommendation.gain
    if versus is None:
        return {}
    tags["gain_basis"] = MODELLED if recommendation.predicted else ONCE
    told = {names[0]: versus.percent}
    ours = _interval(recommendation.point, versus.metric)
    theirs = _interval(_compared(recommendation), versus.metric)
    if ours is not None and theirs is not None and theirs[0] > 0:
        # The outermost quotients: what two launches differ by is not in either interval.
        told[names[1]] = (ours[0] / theirs[1] - 1.0) * 100.0
        told[names[2]] = (ours[1] / theirs[0] - 1.0) * 100.0
    return told


def _compared(recommendation: Recommendation) -> Mapping[str, Any]:
    """The point of the defaults that `Recommendation.gain` is against."""
    under_slo = bool(recommendation.slo) and recommendation.keeps_slo
    row = recommendation.baseline_best if under_slo else recommendation.baseline
    return row or {}


def _interval(row: Mapping[str, Any], metric: str) -> tuple[float, float] | None:
    low, high = row.get(f"{metric}.low"), row.get(f"{metric}.high")
    return None if low is None or high is None else (float(low), float(high))


def _confirmation(recommendation: Recommendation, tags: dict[str, str]) -> dict[str, float]:
    """The verdict of the fresh launches as a tag, how many there were, and their noise."""
    found = recommendation.confirmation
    if found is None:
        return {}
    tags["confirmation"] = found.verdict
    told = {"confirmed_launches": float(found.pairs)}
    if found.noise_share is not None:
        told["noise_percent"] = found.noise_share * 100.0
    return told


def _confirmations(recommendation: Recommendation | None) -> dict[int, str]:
    found = recommendation.confirmations if recommendation is not None else ()
    return {judgement.trial: judgement.verdict for judgement in found}
