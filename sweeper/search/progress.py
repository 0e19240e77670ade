"""Where a study stands, for whoever watches it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from sweeper.config.schema import SweeperConfig
from sweeper.pareto.points import points_frame
from sweeper.pareto.select import front_mask
from sweeper.trial.outcome import TrialOutcome
from sweeper.trial.progress import StudyProgress
from sweeper.verdicts import Verdict


def summarise_progress(
    outcomes: Sequence[TrialOutcome], cfg: SweeperConfig, eta_s: float | None
) -> StudyProgress:
    """Front size, best point so far and failures by verdict."""
    frame = points_frame(outcomes)
    front = int(front_mask(frame).sum()) if len(frame) else 0
    failures = Counter(
        str(outcome.verdict) for outcome in outcomes if outcome.verdict is not Verdict.OK
    )
    return StudyProgress(
        front_size=front,
        best=best_so_far(outcomes, cfg),
        failures=dict(failures),
        eta_s=eta_s,
    )


def best_so_far(outcomes: Sequence[TrialOutcome], cfg: SweeperConfig) -> str:
    """The point with the highest throughput, beside the baseline's highest, in one line."""
    metric = cfg.objective.throughput_metric
    reached = [
        (point.metrics[metric], outcome, point)
        for outcome in outcomes
        if outcome.verdict is Verdict.OK
        for point in outcome.valid_points
        if metric in point.metrics
    ]
    if not reached:
        return "nothing measured yet"
    value, outcome, point = max(reached, key=lambda entry: entry[0])
    text = f"trial {outcome.number} at {point.level}: {value:.1f} tokens/s"
    baseline = [value for value, other, _ in reached if other.kind == "baseline"]
    return f"{text} ({value / max(baseline):.2f}x the baseline)" if baseline else text
