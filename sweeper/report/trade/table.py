"""What each quantization buys and what it costs: quality, speed, memory. Outcomes → table. Pure.

What can change the output or the memory has a row of its own: the quantization with its settings,
the precision of the weights and of the KV cache. Deployments that differ in scheduling only are one
row, the fastest of them. The baseline is the first row, and every figure is also told as its
multiple of the baseline's.

KV-cache room is compared only between launches under one memory limit on as many devices, and of
those between two that differ in nothing but what has a row of its own, where there are such.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sweeper.pareto.points import is_predicted, latest_attempts
from sweeper.pareto.repeats import CONFIRM
from sweeper.report.quality_words import QualityChange, quality_change
from sweeper.report.trade.against import (
    Figure,
    kv_room,
    model_memory,
    over,
    positive,
    speed,
    tells_kv_room,
)
from sweeper.report.trade.storage import NONE, SETTING, label_of, quantization_of
from sweeper.trial.ladder import pressure
from sweeper.trial.outcome import Point, TrialOutcome
from sweeper.verdicts import Phase, Verdict

THROUGHPUT, SINGLE_STREAM = "output_tokens_per_s", "single_stream_tokens_per_s"
LATENCIES = ("ttft_p95_ms", "tpot_p95_ms", "e2e_p95_ms")
_BEFORE_THE_START = {Phase.PLAN, Phase.QUANTIZE}
_WORKS = {Verdict.OK, Verdict.QUALITY_FAIL}


@dataclass(frozen=True)
class TradeRow:
    """One way to store weights and cache.

    Attributes:
        label: the parameters that set it apart, ``none`` where there are none.
        quantization: its value of `quantization`.
        tool: what made its checkpoint; ``engine`` for an online method, ``published``, empty for
            the model as it is and where it is not known.
        bits, group_size: of the checkpoint's recipe, None where they are not told.
        trial: the number that is shown.
        trials: how many deployments the row stands for.
        is_baseline: the engine's defaults.
        as_baseline: stores as the engine's defaults do, under other settings.
        deployment: of that trial.
        verdict, cause, remedy: of that trial.
        launched: False if it was refused before.
        checkpoint_gib: weight files, over the baseline's.
        model_memory_gib: of the loaded model on a device, over the baseline's.
        kv_cache_tokens: room of the KV cache; a ratio only under the same memory limit.
        kv_other_limit: True if nothing under the same memory limit is there to compare it with.
        speeds: metric → figure at the table's load level.
        single_stream: tokens/s of a single stream.
        quality: None if it was not measured.
        made_s: seconds that the making of its checkpoint took, whenever that was.
        reused: True if it was in the cache already.
        checkpoint_key: of the cache, empty if it was not made here.
    """

    label: str
    quantization: str
    tool: str
    bits: int | None
    group_size: int | None
    trial: int
    trials: int
    is_baseline: bool
    as_baseline: bool
    deployment: Mapping[str, Any]
    verdict: Verdict
    cause: str
    remedy: str
    launched: bool
    checkpoint_gib: Figure | None
    model_memory_gib: Figure | None
    kv_cache_tokens: Figure | None
    kv_other_limit: bool
    speeds: Mapping[str, Figure]
    single_stream: Figure | None
    quality: QualityChange | None
    made_s: float | None
    reused: bool
    checkpoint_key: str


@dataclass(frozen=True)
class Trade:
    """The table.

    Attributes:
        rows: the baseline, then what works by falling throughput, then what is broken, then what
            failed, then what was refused.
        level: load level of the speeds: the highest that the baseline and half of the rows have;
            None if nothing was driven.
        predicted: True if the figures come from a model of an engine.
    """

    rows: tuple[TradeRow, ...]
    level: str | None
    predicted: bool

    @property
    def says_something(self) -> bool:
        """True if there is more than one way to store weights and cache to choose among."""
        return len({row.label for row in self.rows}) > 1


def trade(outcomes: Iterable[TrialOutcome]) -> Trade:
    """The table of a study, whatever became of its trials.

    Args:
        outcomes: every attempt; the last one of each trial counts.
    """
    latest = [outcome for outcome in latest_attempts(outcomes) if outcome.kind != CONFIRM]
    baseline = next((outcome for outcome in latest if outcome.kind == "baseline"), None)
    groups: dict[tuple[str, bool, bool], list[TrialOutcome]] = {}
    for outcome in latest:
        broken = outcome.verdict is Verdict.QUALITY_FAIL
        groups.setdefault((label_of(outcome), broken, outcome is baseline), []).append(outcome)
    level = _common_level(list(groups.values()), baseline)
    bests = [(_best(group, level), group) for group in groups.values()]
    shown = [(best, group) for best, group in bests if not _is_spare(best, latest)]
    rows = [_row(best, group, latest, baseline, level) for best, group in shown]
    return Trade(
        rows=tuple(sorted(rows, key=_order)),
        level=level,
        predicted=any(is_predicted(outcome) for outcome in latest),
    )


def _is_spare(best: TrialOutcome, latest: Sequence[TrialOutcome]) -> bool:
    """True of a failure in scheduling: the same weights and cache work in another deployment."""
    if best.verdict in _WORKS or best.kind == "baseline":
        return False
    label = label_of(best)
    return any(other.verdict in _WORKS and label_of(other) == label for other in latest)


def _common_level(
    groups: Sequence[Sequence[TrialOutcome]], baseline: TrialOutcome | None
) -> str | None:
    """The highest load level that the baseline and half of the groups have.

    One group that failed at the top does not take the top away from all others.
    """
    levels = [_levels(group) for group in groups]
    driven = [found for found in levels if found]
    known = _levels([] if baseline is None else [baseline])
    pressures = {name: hard for found in driven for name, hard in found.items()}

    def rank(name: str) -> tuple[bool, bool, float]:
        count = sum(name in found for found in driven)
        return not known or name in known, 2 * count >= len(driven), pressures[name]

    return max(pressures, key=rank, default=None)


def _levels(group: Iterable[TrialOutcome]) -> dict[str, float]:
    """Level → how hard it drives, of the valid points of a group."""
    points = [point for outcome in group for point in outcome.valid_points]
    return {p.level: pressure(p.load) for p in points if THROUGHPUT in p.metrics}


def _best(group: Sequence[TrialOutcome], level: str | None) -> TrialOutcome:
    """The trial that stands for its group: the fastest that works, else the furthest."""

    def rank(outcome: TrialOutcome) -> tuple[bool, bool, float, bool, int]:
        point = _point(outcome, level)
        speed = point.metrics.get(THROUGHPUT, 0.0) if point is not None else 0.0
        works = outcome.verdict is Verdict.OK and outcome.partial is None
        return works, point is not None, speed, outcome.launched, -outcome.number

    return max(group, key=rank)


def _point(outcome: TrialOutcome | None, level: str | None) -> Point | None:
    points = outcome.valid_points if outcome is not None else []
    return next((point for point in points if point.level == level), None)


def _row(
    best: TrialOutcome,
    group: Sequence[TrialOutcome],
    latest: Sequence[TrialOutcome],
    baseline: TrialOutcome | None,
    level: str | None,
) -> TradeRow:
    made, told = best.made, best.made.get("recipe")
    recipe: Mapping[str, Any] = told if isinstance(told, Mapping) else {}
    plain = _stored_as(baseline, latest)
    room = kv_room([best, *group], plain)
    point, base_point = _point(best, level), _point(baseline, level)
    speeds = {name: speed(name, point, base_point) for name in (THROUGHPUT, *LATENCIES)}
    return TradeRow(
        label=label_of(best),
        quantization=quantization_of(best),
        tool=_tool(best, recipe),
        bits=_whole(recipe.get("bits", best.deployment.get(f"{SETTING}bits"))),
        group_size=_whole(recipe.get("group_size", best.deployment.get(f"{SETTING}group_size"))),
        trial=best.number,
        trials=len(group),
        is_baseline=best is baseline,
        as_baseline=best is not baseline and best in plain,
        deployment=best.deployment,
        verdict=best.verdict,
        cause=best.cause,
        remedy=best.remedy,
        launched=best.launched,
        checkpoint_gib=over(best.checkpoint_gib, baseline.checkpoint_gib if baseline else None),
        model_memory_gib=model_memory(best, baseline),
        kv_cache_tokens=room,
        kv_other_limit=room is not None and room.ratio is None and tells_kv_room(plain),
        speeds={name: figure for name, figure in speeds.items() if figure is not None},
        single_stream=speed(SINGLE_STREAM, _alone(best), _alone(baseline)),
        quality=quality_change(best.quality, baseline.quality if baseline else None),
        made_s=positive(made.get("made_s")),
        reused=all(outcome.made.get("reused", False) for outcome in group),
        checkpoint_key=str(made.get("key", "")),
    )


def _stored_as(
    baseline: TrialOutcome | None, latest: Sequence[TrialOutcome]
) -> Sequence[TrialOutcome]:
    """Launches that store weights and cache as the baseline does, itself first."""
    if baseline is None:
        return ()
    label = label_of(baseline)
    return [baseline, *(outcome for outcome in latest if label_of(outcome) == label)]


def _whole(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _tool(outcome: TrialOutcome, recipe: Mapping[str, Any]) -> str:
    if recipe.get("tool"):
        return str(recipe["tool"])
    model, served = outcome.manifest.get("model"), outcome.manifest.get("checkpoint")
    path = model.get("path") if isinstance(model, Mapping) else None
    # An engine that only plays one is given no checkpoint, whatever the recipe.
    was_served = outcome.phase not in _BEFORE_THE_START and not is_predicted(outcome)
    if quantization_of(outcome) == NONE or None in (path, served) or not was_served:
        return ""
    return "engine" if served == path else "published"


def _alone(outcome: TrialOutcome | None) -> Point | None:
    """Its point at a single stream."""
    points = outcome.valid_points if outcome is not None else []
    return next((p for p in points if SINGLE_STREAM in p.metrics and p.concurrency == 1), None)


def _order(row: TradeRow) -> tuple[bool, int, float, int]:
    place = {Verdict.OK: 0, Verdict.QUALITY_FAIL: 1}.get(row.verdict, 2 if row.launched else 3)
    speed = row.speeds.get(THROUGHPUT)
    return not row.is_baseline, place, -(speed.value if speed else 0.0), row.trial
