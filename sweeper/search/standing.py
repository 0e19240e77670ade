"""Where the launches so far have got to, learnt one outcome at a time. Pure.

It answers two questions: what the next launch must beat (`to_beat`), and whether a launch gained
anything beyond noise (`gains`). An outcome costs the size of the front, never that of the study.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sweeper.config.schema import SweeperConfig
from sweeper.load.ladder import given_levels
from sweeper.metrics.noise import Noise
from sweeper.pareto.rule import Rule, lasting, limits
from sweeper.search.curve import GainCurve
from sweeper.search.front_so_far import Entry, FrontSoFar, pareto_axes
from sweeper.search.level import LevelChoice
from sweeper.search.objective import Objective, slo_excess
from sweeper.trial.outcome import Point, QualityScore, TrialOutcome
from sweeper.trial.to_beat import Axis, Growth, ToBeat
from sweeper.verdicts import Verdict

DEFAULT_MARGIN = math.log(1.05)
"""Noise of a study that has measured none: launches of one deployment rarely differ by more."""
MIN_MARGIN = 1e-3
BASELINE, SEARCH, CONFIRM = "baseline", "search", "confirm"


@dataclass
class _Extreme:
    """The largest and smallest of what was seen."""

    low: float = math.inf
    high: float = -math.inf
    count: int = 0

    def see(self, value: float) -> None:
        self.low, self.high = min(self.low, value), max(self.high, value)
        self.count += 1

    def beyond(self, sign: int) -> float:
        """The end on the side of `sign`, with the room that the next one may need.

        The largest of n even draws lies within a range by 1 / (n + 1) of it, so the seen range is
        widened by its n-th part.
        """
        room = (self.high - self.low) / max(1, self.count - 1)
        return self.high + room if sign > 0 else self.low - room


@dataclass
class Standing:
    """What the study has reached.

    Attributes:
        cfg: of the study.
        objective: anchored once the baseline is known.
        whole: launches measured whole so far, confirmations left out.
        gains: for each launch, oldest first, whether it gained beyond noise; None where it says
            nothing (the surroundings failed).
        curve: what each launch added to the front.
    """

    cfg: SweeperConfig
    objective: Objective
    whole: int = 0
    gains: list[bool | None] = field(default_factory=list)
    _taken: int = 0
    curve: GainCurve = field(init=False)
    _front: FrontSoFar = field(init=False)
    _growth: dict[tuple[str, str, str], _Extreme] = field(default_factory=dict)
    _seen: dict[str, set[Any]] = field(default_factory=dict)
    _ceiling: list[float] = field(default_factory=list)
    _own_quality: QualityScore | None = None
    _best_quality: float | None = None
    _repeated: dict[tuple[str, str], list[Mapping[str, float]]] = field(default_factory=dict)
    _margin: float | None = None

    def __post_init__(self) -> None:
        self._front = FrontSoFar(self._axes)
        self.curve = GainCurve(self.cfg.objective, self.cfg.select.slo)

    def update(self, outcomes: Sequence[TrialOutcome]) -> None:
        """Learn what has come to a journal since the last time; it only grows."""
        for outcome in outcomes[self._taken :]:
            self._learn(outcome)
        self._taken = len(outcomes)

    @property
    def margin(self) -> float:
        """Noise as the log of a ratio: `stop.margin_share`, what was measured, or the default."""
        asked = self.cfg.stop.margin_share
        if asked is not None:
            return max(MIN_MARGIN, math.log1p(asked))
        return max(MIN_MARGIN, DEFAULT_MARGIN if self._margin is None else self._margin)

    @property
    def quiet_launches(self) -> int:
        """Launches since the last that gained anything beyond noise; faults of others left out."""
        count = 0
        for gained in reversed(self.gains):
            if gained:
                break
            count += gained is not None
        return count

    @property
    def noise_share(self) -> float:
        """`margin` as a share."""
        return math.expm1(self.margin)

    def to_beat(
        self, kind: str, deployment: Mapping[str, Any], known: QualityScore | None
    ) -> ToBeat | None:
        """What a launch must beat; None for one that is to be measured whole.

        Args:
            kind: of the trial. Only those of the search are cut: a baseline is what all others are
                measured against, a seed is its user's own wish, a confirmation is for measuring.
            deployment: canonical.
            known: the score of the same output, None if its quality is not known.
        """
        if not self.cfg.stop.early or kind != SEARCH or self.cfg.load.levels != "given":
            return None
        first = self._first_level()
        if first is None:
            return None
        is_of_all = self._kind in {"frontier", "slo"}
        return ToBeat(
            axes=self._axes,
            rivals=tuple(entry.rival for entry in self._front.entries),
            levels=tuple(self._levels) if is_of_all else (first,),
            first=first,
            growth=self._most_favourable(),
            margin=self.margin,
            quality=self._quality_at_most(known),
            limits=self._limits,
            may_cut=self.whole >= max(2, self.cfg.stop.after) and self._is_known(deployment),
            may_skip=is_of_all,
            ceiling=tuple(self._ceiling),
        )

    # What an outcome teaches

    def _learn(self, outcome: TrialOutcome) -> None:
        if outcome.kind in {BASELINE, CONFIRM}:
            self._learn_noise(outcome)
        if not outcome.launched or outcome.kind == CONFIRM:
            return
        if outcome.verdict is not Verdict.OK or outcome.partial is not None:
            says_something = outcome.verdict is Verdict.OK or outcome.verdict.is_config_fault
            self.gains.append(False if says_something else None)
            self.curve.add(None, self.objective.corner)
            return
        self.whole += 1
        if outcome.kind == BASELINE:
            self._own_quality = outcome.quality
        self._learn_values(outcome.deployment)
        self._learn_growth(outcome.valid_points)
        self._learn_ceiling(outcome)
        self.gains.append(self._learn_front(outcome))
        self.curve.add(outcome, self.objective.corner)

    def _learn_noise(self, outcome: TrialOutcome) -> None:
        if outcome.verdict is not Verdict.OK:
            return
        for point in outcome.valid_points:
            key = (outcome.deployment_hash, point.level)
            self._repeated.setdefault(key, []).append(point.metrics)
        noise = Noise.from_repeats(self._repeated.values())
        known = [noise.margin(axis.metric) for axis in self._axes]
        found = [margin for margin in known if margin is not None]
        self._margin = max(found) if len(found) == len(known) and found else None

    def _learn_values(self, deployment: Mapping[str, Any]) -> None:
        for name, value in deployment.items():
            self._seen.setdefault(name, set()).add(value)

    def _learn_growth(self, points: Sequence[Point]) -> None:
        for metric in {*(axis.metric for axis in self._axes), *self._limits}:
            known = [(p.level, p.metrics[metric]) for p in points if p.metrics.get(metric, 0) > 0]
            for start, before in known:
                for end, after in known:
                    if start != end:
                        extreme = self._growth.setdefault((start, end, metric), _Extreme())
                        extreme.see(math.log(after / before))

    def _learn_ceiling(self, outcome: TrialOutcome) -> None:
        told = self.objective.tell(outcome).values
        if told is None:
            return
        signs = [1 if way == "maximize" else -1 for way in self.objective.directions]
        best = self._ceiling or list(told)
        self._ceiling = [s * max(s * a, s * b) for s, a, b in zip(signs, best, told, strict=True)]

    def _learn_front(self, outcome: TrialOutcome) -> bool:
        """Take a trial's points in; True if one of them beats the front beyond noise."""
        settled = outcome.quality.settled(self._own_quality) if outcome.quality else None
        if settled is not None:
            self._best_quality = max(settled, self._best_quality or settled)
        gained = False
        for point in self._counting(outcome):
            gained |= self._front.add(
                outcome.number,
                point,
                settled,
                rank_quality=self._with_quality,
                margin=self.margin,
            )
        return gained

    def _counting(self, outcome: TrialOutcome) -> list[Point]:
        """The points that the objective counts: all, those under the SLO, or one."""
        match self._kind:
            case "frontier":
                return outcome.valid_points
            case "slo":
                slo = self.cfg.select.slo
                return [point for point in outcome.valid_points if slo_excess(point, slo) <= 0]
            case _:
                found = self._choice.point(outcome)
                return [] if found is None else [found]

    # What is asked of it

    @property
    def _kind(self) -> str:
        return self.cfg.objective.kind

    @property
    def _with_quality(self) -> bool:
        named = "+quality" in self.cfg.objective.metrics
        return self.cfg.quality.kind != "none" and (self._kind != "metrics" or named)

    @property
    def _choice(self) -> LevelChoice:
        return LevelChoice(self.cfg.load, self.cfg.objective.concurrency)

    @property
    def _axes(self) -> tuple[Axis, ...]:
        asked = self.cfg.objective
        throughput, latency = pareto_axes(asked.throughput_metric, asked.latency_metric)
        match asked.kind:
            case "frontier" | "point":
                return (throughput, latency)
            case "slo":
                return (throughput,)
            case _:
                signed = [name for name in asked.metrics if name[1:] != "quality"]
                return tuple(Axis(name[1:], -1 if name[0] == "-" else 1) for name in signed)

    @property
    def _limits(self) -> dict[str, float]:
        """Of latencies: what a launch would still have to break for certain to be cut short."""
        promised = limits(self.cfg.select.slo) if self._kind == "slo" else {}
        return {name: limit for name, limit in promised.items() if name.endswith("_ms")}

    @property
    def _levels(self) -> list[str]:
        return list(dict.fromkeys(start for start, _, _ in self._growth))

    def _most_favourable(self) -> Growth:
        signs = {axis.metric: axis.sign for axis in self._axes} | dict.fromkeys(self._limits, -1)
        found: dict[str, dict[str, dict[str, float]]] = {}
        for (start, end, metric), extreme in self._growth.items():
            if extreme.count >= max(2, self.cfg.stop.after):
                told = found.setdefault(start, {}).setdefault(end, {})
                told[metric] = extreme.beyond(signs[metric])
        return found

    def _quality_at_most(self, known: QualityScore | None) -> float | None:
        """Of an output that nobody has judged: as good as the best so far, and not better."""
        if not self._with_quality:
            return None
        return self._best_quality if known is None else known.settled(self._own_quality)

    def _first_level(self) -> str | None:
        """Where the best deployment stands: the level that its recommendation is for."""
        if self._kind not in {"frontier", "slo"}:
            return self._choice.name
        rows = [self._row(entry) for entry in self._front.entries]
        asked, prefer = self.cfg.objective, self.cfg.select.prefer
        throughput, latency = asked.throughput_metric, asked.latency_metric
        rule = Rule(limits(self.cfg.select.slo), prefer, throughput, latency)
        rows = lasting([row for row in rows if throughput in row and latency in row])
        if not rows:
            return next((level.name for level in given_levels(self.cfg.load)), None)
        return str((rule.best(rows) or rule.nearest(rows))["level"])

    def _row(self, entry: Entry) -> dict[str, Any]:
        row: dict[str, Any] = {**entry.point.metrics, "level": entry.point.level}
        row["saturated"] = bool(entry.point.load.get("saturated", False))
        return row if entry.quality is None else row | _qualities(entry.quality)

    def _is_known(self, deployment: Mapping[str, Any]) -> bool:
        """Whether each of its values was measured whole, or lies between two that were."""
        return all(_within(value, self._seen.get(name, ())) for name, value in deployment.items())


def _qualities(settled: float) -> dict[str, float]:
    return {"quality": settled, "quality_settled": settled}


def _within(value: Any, seen: Iterable[Any]) -> bool:
    values = list(seen)
    if value in values:
        return True
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    numbers = [v for v in values if isinstance(v, int | float) and not isinstance(v, bool)]
    return bool(numbers) and min(numbers) < value < max(numbers)
