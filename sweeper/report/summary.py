"""A finished study in the few figures that its MLflow parent run shows."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from sweeper.pareto.recommendation import Recommendation
from sweeper.pareto.select import SHOWN_METRICS, front_mask
from sweeper.tracking.mlflow_log import StudySummary

if TYPE_CHECKING:
    import pandas as pd


def _confirmation(recommendation: Recommendation, tags: dict[str, str]) -> dict[str, float]:
    """The verdict of the fresh launches: a tag, and the gain with its interval in per cent."""
    found = recommendation.confirmation
    if found is None:
        return {}
    tags["confirmation"] = found.verdict
    told = {"confirmed_launches": float(found.pairs)}
    if found.noise_share is not None:
        told["noise_percent"] = found.noise_share * 100.0
    if found.percent is not None:
        names = ("confirmed_gain_percent", "confirmed_gain_low", "confirmed_gain_high")
        told |= dict(zip(names, found.percent, strict=True))
    return told


def study_summary(
    frame: pd.DataFrame,
    recommendation: Recommendation | None,
    ended: str,
    artifacts: Sequence[Path] = (),
) -> StudySummary:
    """What the parent run is told.

    Args:
        frame: of `points_frame`.
        recommendation: None if nothing was feasible.
        ended: why the search ended; ``stopped`` at its start marks an interrupted study.
        artifacts: files to attach, those that exist.
    """
    mask = front_mask(frame)
    numbers = frozenset(int(number) for number in frame["trial"][mask])
    metrics: dict[str, float] = {"front_size": float(mask.sum())}
    tags = {"ended": ended}
    if recommendation is not None:
        tags |= {
            "recommended_trial": str(recommendation.trial),
            "recommended_level": recommendation.level,
            "headline": recommendation.headline,
            "confirmed": str(recommendation.confirmed).lower(),
            "keeps_slo": str(recommendation.keeps_slo).lower(),
        }
        metrics |= _confirmation(recommendation, tags)
        if "quality_name" in recommendation.point:
            told = [str(recommendation.point[f"quality_{word}"]) for word in ("name", "shown")]
            tags["recommended_quality"] = " ".join(told)
        asked = {
            "recommended_concurrency": recommendation.concurrency,
            "recommended_rate_per_s": recommendation.rate_per_s,
        }
        metrics |= {name: float(value) for name, value in asked.items() if value is not None}
        for name in SHOWN_METRICS:
            if name in recommendation.point:
                metrics[f"recommended_{name}"] = float(recommendation.point[name])
            if name in recommendation.ratios:
                metrics[f"ratio_{name}"] = recommendation.ratios[name]
    return StudySummary(
        pareto_trials=numbers,
        metrics=metrics,
        tags=tags,
        artifacts=tuple(artifacts),
        interrupted=ended.startswith("stopped"),
    )
