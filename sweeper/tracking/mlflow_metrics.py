"""The metrics of a child run: names, values, steps. Pure. docs/metrics.md says what each one is.

Names are those of the journal's points and of `sweeper.pareto.points.points_frame`; what is read
off a whole trial has a prefix: ``best_`` (its point of highest throughput, one value a run, for
plots that compare runs), ``quality_``, ``time_``.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sweeper.load.level import CLOSED
from sweeper.trial.ladder import rungs
from sweeper.trial.outcome import Point, QualityScore, TrialOutcome

SLO_RATE = "slo_rate_per_s"
"""What a search for the highest rate under limits learnt; see `sweeper.load.ladder`."""

THROUGHPUT = "output_tokens_per_s"
BEST_METRICS = (
    "output_tokens_per_s_per_gpu",
    THROUGHPUT,
    "output_tokens_per_s_per_user",
    "e2e_p95_ms",
    "e2e_mean_ms",
    "ttft_p95_ms",
    "tpot_p95_ms",
)
_LEARNT_METRICS = ("model_memory_gib", "kv_cache_tokens", "kv_cache_memory_gib")
OF_CHECKPOINT = ("quality", "checkpoint_gib", "model_memory_gib", "quantize_s", "best_")
"""Beginnings of the names that say something of the checkpoint served, not of one load level."""

Metric = tuple[str, float, int]
"""Name with unit, value, step."""


def trial_metrics(outcome: TrialOutcome) -> list[Metric]:
    """Every figure of a trial that is finite.

    The step is the concurrency of a closed loop, of other loads the level's place in the ladder, 0
    the easiest; 0 for what is of the whole trial.
    """
    return [item for item in _raw(outcome) if math.isfinite(item[1])]


def best_point(points: Sequence[Point]) -> Point | None:
    """The valid point of highest throughput, None if there is none."""
    measured = [p for p in points if p.valid and THROUGHPUT in p.metrics]
    return max(measured, key=lambda p: p.metrics[THROUGHPUT], default=None)


@dataclass
class BestSoFar:
    """The highest throughput known after each launch, for whoever watches a study.

    Launches that were cut short or only confirm another do not raise it: no recommendation rests
    on the one, and the other has no deployment of its own.
    """

    launches: int = 0
    highest: float = -math.inf

    def take(self, outcome: TrialOutcome) -> Metric | None:
        """Where the study stands after a launch, whose count is the step; None without one."""
        best = best_point(outcome.points)
        counts = outcome.verdict == "OK" and outcome.partial is None and outcome.repeats is None
        if best is not None and counts and best.metrics[THROUGHPUT] < math.inf:
            self.highest = max(self.highest, best.metrics[THROUGHPUT])
        if not outcome.launched:
            return None
        self.launches += 1
        if math.isinf(self.highest):
            return None
        return f"best_so_far_{THROUGHPUT}", self.highest, self.launches


def _raw(outcome: TrialOutcome) -> Iterator[Metric]:
    """What compares trials first: MLflow lists, and offers for its plots, in this order."""
    yield from _of_best(best_point(outcome.points))
    yield from _of_quality(outcome.quality)
    slo_rate = outcome.learnt.get(SLO_RATE)
    if isinstance(slo_rate, int | float):
        yield SLO_RATE, float(slo_rate), 0
    yield from _of_memory(outcome)
    for point, rung in zip(outcome.points, rungs(outcome.points), strict=True):
        # Numbers that failed a gate stay visible, but never beside those that may be compared.
        prefix = "" if point.valid else "invalid/"
        step = _step(point, rung)
        for name, value in point.metrics.items():
            yield prefix + name, float(value), step
        for name, value in point.predicted.items():
            yield f"{prefix}predicted.{name}", float(value), step
        yield f"{prefix}n_requests", float(point.n), step
    for phase, seconds in outcome.timings_s.items():
        yield f"time_{phase}_s", seconds, 0


def _of_best(best: Point | None) -> Iterator[Metric]:
    if best is None:
        return
    for name in BEST_METRICS:
        if name in best.metrics:
            yield f"best_{name}", float(best.metrics[name]), 0
    asked = {"best_concurrency": best.concurrency, "best_rate_per_s": best.rate_per_s}
    for name, level in asked.items():
        if level is not None:
            yield name, float(level), 0
    interval = best.intervals.get(THROUGHPUT)
    if interval is not None:
        yield f"best_{THROUGHPUT}.low", float(interval[0]), 0
        yield f"best_{THROUGHPUT}.high", float(interval[1]), 0


def _of_quality(quality: QualityScore | None) -> Iterator[Metric]:
    if quality is None:
        return
    told: dict[str, float | None] = {
        "quality": quality.score,
        "quality_se": quality.score_se,
        "quality_agreement": quality.agreement,
        "quality_agreement_change": quality.agreement_change,
        "quality_loglik_change_nats": quality.loglik_change_nats,
        "quality_perplexity": quality.perplexity.get("perplexity"),
    }
    for name, task in quality.tasks.items():
        told[f"quality_task_{name}"] = task.get("value")
        told[f"quality_task_{name}_change"] = task.get("change")
    for name, value in told.items():
        if value is not None:
            yield name, float(value), 0


def _of_memory(outcome: TrialOutcome) -> Iterator[Metric]:
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
