"""What a study teaches beyond its winner: why it wins, and which parameters mattered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from sweeper.config.schema import SweeperConfig
from sweeper.pareto.explain import explain
from sweeper.pareto.recommendation import Recommendation
from sweeper.report.importance.compute import MIN_TRIALS, Importance, importances
from sweeper.report.importance.groups import Target, groups, measured
from sweeper.report.words import metric_label
from sweeper.search.objective import Objective
from sweeper.space.model import Space
from sweeper.trial.outcome import TrialOutcome

OBJECTIVE_WORDS = {
    "log_hypervolume": "area under the load curve",
    "throughput_under_slo": "throughput under the SLO",
    "quality": "quality",
}


@dataclass(frozen=True)
class Insight:
    """What there is to say.

    Attributes:
        why: one paragraph on the winner, empty without one.
        trials: measured whole, that importance rests on.
        tables: figure, in words → the parameters that it was looked at for.
    """

    why: str = ""
    trials: int = 0
    tables: Mapping[str, Sequence[Importance]] = field(default_factory=dict)

    @property
    def too_few(self) -> bool:
        return self.trials < MIN_TRIALS

    @property
    def verdict(self) -> str:
        """What mattered and what did nothing, in sentences."""
        if self.too_few:
            return (
                f"Too few trials to say which parameters mattered: {self.trials} measured whole, "
                f"{MIN_TRIALS} are needed."
            )
        if not self.tables:
            return "Nothing differs enough to say which parameters mattered."
        told = []
        for name, found in self.tables.items():
            mattered = [one.parameter for one in found if one.matters]
            text = ", ".join(mattered) if mattered else "nothing that can be told from noise"
            told.append(f"For {name}: {text}.")
        idle = self.idle
        if idle:
            told.append(f"Within noise everywhere: {', '.join(idle)}.")
        return " ".join(told)

    @property
    def idle(self) -> list[str]:
        """Parameters that mattered to no figure."""
        names = dict.fromkeys(one.parameter for found in self.tables.values() for one in found)
        mattered = {o.parameter for found in self.tables.values() for o in found if o.matters}
        return [name for name in names if name not in mattered]


def understand(
    cfg: SweeperConfig,
    space: Space,
    outcomes: Sequence[TrialOutcome],
    recommendation: Recommendation | None,
) -> Insight:
    """Explain the winner and weigh the parameters.

    Args:
        cfg: of the study.
        space: what it searched.
        outcomes: every attempt.
        recommendation: None if nothing was feasible.
    """
    whole = measured(outcomes)
    why = "" if recommendation is None else explain(recommendation)
    tables: dict[str, list[Importance]] = {}
    if len(whole) >= MIN_TRIALS:
        driven = measured(outcomes, cut=True)
        for name, (target, sign) in _targets(cfg, whole, recommendation).items():
            made = groups(space, driven, target)
            found = [one for group in made for one in importances(group, sign)]
            if found:
                tables[name] = sorted(found, key=lambda one: (-one.matters, -one.share))
    return Insight(why, len(whole), tables)


def _targets(
    cfg: SweeperConfig, whole: Sequence[TrialOutcome], recommendation: Recommendation | None
) -> dict[str, tuple[Target, int]]:
    """The objectives, and for an area the two figures behind it at the recommended load."""
    objective = Objective(cfg.objective, cfg.select.slo, cfg.load, cfg.quality.kind != "none")
    baseline = next((o for o in whole if o.kind == "baseline"), None)
    if baseline is None:
        return {}
    objective.anchor(baseline)
    found: dict[str, tuple[Target, int]] = {}
    for place, (name, way) in enumerate(zip(objective.names, objective.directions, strict=True)):
        words = OBJECTIVE_WORDS.get(name) or metric_label(name, [])
        found[words] = (_told(objective, place), 1 if way == "maximize" else -1)
    if cfg.objective.kind == "frontier" and recommendation is not None:
        level = recommendation.level
        for metric, sign in (
            (cfg.objective.throughput_metric, 1),
            (cfg.objective.latency_metric, -1),
        ):
            found[f"{metric_label(metric, [])} at {level}"] = (_at(level, metric), sign)
    return found


def _told(objective: Objective, place: int) -> Target:
    def target(outcome: TrialOutcome) -> float | None:
        # Of a launch that was cut short the objective has a bound, which is no measurement.
        values = objective.tell(outcome).values if outcome.partial is None else None
        return None if values is None else values[place]

    return target


def _at(level: str, metric: str) -> Target:
    def target(outcome: TrialOutcome) -> float | None:
        points = (point for point in outcome.valid_points if point.level == level)
        return next((p.metrics[metric] for p in points if metric in p.metrics), None)

    return target
