"""What did not work, by cause: how often, how near the nearest came, and what to change. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sweeper.config.schema import SloConfig
from sweeper.pareto.points import latest_attempts
from sweeper.pareto.repeats import CONFIRM
from sweeper.report.words import METRIC_LABELS, number
from sweeper.search.bounds.learn import refusing_bound
from sweeper.search.faults import masked
from sweeper.trial.outcome import Point, TrialOutcome
from sweeper.verdicts import Verdict

COLUMNS = ("cause", "trials", "nearest", "how near", "what it was", "what to change")


@dataclass(frozen=True)
class Nearness:
    """How near a trial came.

    Attributes:
        excess: what it needed over what there was, less 1; 0 is just missed.
        text: the same in the units of the figures.
    """

    excess: float
    text: str


@dataclass(frozen=True)
class Miss:
    """One kind of cause.

    Attributes:
        kind: the rule that knows it, or the cause itself.
        verdict: of its nearest trial.
        count: trials that ended so.
        launched: how many of them were launched; the others were refused before.
        example: number of the nearest trial.
        cause: of that trial.
        nearness: of that trial, None where no figure tells.
        remedy: what to change.
    """

    kind: str
    verdict: str
    count: int
    launched: int
    example: int
    cause: str
    nearness: Nearness | None
    remedy: str


def misses(outcomes: Iterable[TrialOutcome], slo: SloConfig | None = None) -> list[Miss]:
    """One entry a kind of cause: the nearest first, then what can be changed, then the rest.

    A deployment that was refused because of another trial counts with that trial's kind.

    Args:
        outcomes: every attempt; the last one of each trial counts.
        slo: a promise; trials that worked and keep it at no load are misses too.
    """
    kinds: dict[str, list[TrialOutcome]] = {}
    for outcome in latest_attempts(outcomes):
        kind = _kind(outcome, slo)
        if kind is not None:
            kinds.setdefault(kind, []).append(outcome)
    found = [_miss(kind, group, slo) for kind, group in kinds.items()]
    return sorted(found, key=_usefulness)


def miss_rows(found: Iterable[Miss]) -> list[list[str]]:
    """Cells of a table under `COLUMNS`, the same in terminal and report."""
    return [
        [
            miss.kind.replace("_", " "),
            _count(miss),
            str(miss.example),
            "-" if miss.nearness is None else miss.nearness.text,
            f"{miss.verdict}: {miss.cause}",
            miss.remedy,
        ]
        for miss in found
    ]


def _count(miss: Miss) -> str:
    if miss.launched == miss.count:
        return str(miss.count)
    return f"{miss.count} ({miss.launched} launched)"


def _usefulness(miss: Miss) -> tuple[float, bool, int, int]:
    excess = math.inf if miss.nearness is None else miss.nearness.excess
    is_fault = Verdict(miss.verdict).is_retryable
    return excess, is_fault, -miss.count, miss.example


def _kind(outcome: TrialOutcome, slo: SloConfig | None) -> str | None:
    if outcome.verdict is Verdict.OK:
        missed = _promise_missed(outcome, slo)
        return None if missed is None else f"SLO: {METRIC_LABELS[missed[1]]}"
    if refusing_bound(outcome) is not None:
        return str(outcome.learnt.get("taught_by_rule", outcome.learnt["bound"]))
    return str(outcome.learnt.get("rule") or masked(outcome.cause) or outcome.verdict)


def _miss(kind: str, group: Sequence[TrialOutcome], slo: SloConfig | None) -> Miss:
    def rank(outcome: TrialOutcome) -> tuple[float, bool, int]:
        near = nearness(outcome, slo)
        return (math.inf if near is None else near.excess, not outcome.launched, outcome.number)

    best = min(group, key=rank)
    near = nearness(best, slo)
    return Miss(
        kind=kind,
        verdict=str(best.verdict),
        count=len(group),
        launched=sum(outcome.launched for outcome in group),
        example=best.number,
        cause=best.cause or "measured, and over the promise at every load",
        nearness=near,
        remedy=_remedy(best),
    )


def _remedy(outcome: TrialOutcome) -> str:
    """The diagnosis' advice, with the value that would have fitted where it is known."""
    if outcome.verdict is Verdict.OK:
        return "lower the load, raise the promise of select.slo, or widen the space"
    fits = [
        f"{name} ≤ {number(outcome.learnt[figure])}"
        for figure, name in _FITTING.items()
        if isinstance(outcome.learnt.get(figure), int | float)
    ]
    advice = f" ({' and '.join(fits)} would have fitted)" if fits else ""
    return outcome.remedy + advice


_FITTING = {
    "estimated_max_model_len": "max_model_len",
    "max_gpu_memory_utilization": "gpu_memory_utilization",
    "max_position_embeddings": "max_model_len",
}

_PAIRS: tuple[tuple[str, str, str], ...] = (
    ("needed_kv_gib", "kv_cache_memory_gib", "GiB of KV cache"),
    ("needed_gib", "available_gib", "GiB"),
    ("asked_gib", "free_gib", "GiB"),
    ("tried_gib", "free_gib", "GiB"),
    ("max_model_len", "estimated_max_model_len", "tokens of max_model_len"),
    ("max_model_len", "max_position_embeddings", "tokens of max_model_len"),
    ("max_model_len", "max_num_batched_tokens", "tokens of max_num_batched_tokens"),
    ("max_num_seqs", "max_num_batched_tokens", "tokens of max_num_batched_tokens"),
    ("world_size", "devices", "devices"),
)
"""(figure needed, figure there, unit): the first pair that a diagnosis tells is taken."""


def nearness(outcome: TrialOutcome, slo: SloConfig | None = None) -> Nearness | None:
    """How near a trial came, where its figures tell."""
    if outcome.verdict is Verdict.OK:
        return _promise_nearness(outcome, slo)
    for needed_name, there_name, unit in _PAIRS:
        needed, there = _size(outcome, needed_name), _size(outcome, there_name)
        if needed is not None and there is not None and needed > there:
            share = needed / there - 1 if there > 0 else math.inf
            text = f"{number(needed - there)} {unit} missing ({number(needed)} needed, "
            return Nearness(share, f"{text}{number(there)} there)")
    return None


_PROMISES = ("ttft_p95_ms", "tpot_p95_ms", "e2e_p95_ms")


def _size(outcome: TrialOutcome, figure: str) -> float | None:
    value = outcome.learnt.get(figure)
    is_size = isinstance(value, int | float) and not isinstance(value, bool) and value >= 0
    return value if is_size else None


def _promise_nearness(outcome: TrialOutcome, slo: SloConfig | None) -> Nearness | None:
    missed = _promise_missed(outcome, slo)
    if missed is None or slo is None:
        return None
    excess, metric, point = missed
    measured, limit = point.metrics.get(metric), getattr(slo, metric)
    if measured is None:
        return None
    return Nearness(
        excess,
        f"{number(measured - limit)} ms over {METRIC_LABELS[metric]} {number(limit)} at "
        f"{point.level} (+{100 * excess:.1f} %)",
    )


def _promise_missed(
    outcome: TrialOutcome, slo: SloConfig | None
) -> tuple[float, str, Point] | None:
    """(share over the limit, metric, point) of the point that comes nearest; None if one keeps it.

    A limit whose metric was not measured cannot be said to be kept.
    """
    asked = {name: getattr(slo, name) for name in _PROMISES} if slo else {}
    limits = {name: float(value) for name, value in asked.items() if value is not None}
    if not limits or not outcome.valid_points or outcome.partial is not None:
        return None
    if outcome.kind == CONFIRM:
        return None  # driven at few levels, and judged with the trial that it repeats

    def worst(point: Point) -> tuple[float, str]:
        over = {
            name: point.metrics[name] / limit - 1 if name in point.metrics else math.inf
            for name, limit in limits.items()
        }
        name = max(over, key=over.__getitem__)
        return over[name], name

    nearest = min(outcome.valid_points, key=lambda point: worst(point)[0])
    excess, metric = worst(nearest)
    return (excess, metric, nearest) if excess > 0 else None
