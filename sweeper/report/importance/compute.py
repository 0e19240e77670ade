"""Importance of parameters: shares of what a forest explains, against shuffled copies of them.

The shares are Optuna's mean decrease of impurity over a forest of trees (its fANOVA gives the same
order, and takes ten times as long on a few hundred trials). Every forest is grown on resampled
trials, which gives the interval, and beside each parameter on a shuffled copy of it, which cannot
matter (Kursa and Rudnicki, J. Stat. Softw. 36, 2010). A parameter matters if it beats the best of
the copies in nearly all forests; one that does not is within noise, whatever its share.
"""

from __future__ import annotations

import random
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Any

from sweeper.report.importance.groups import Group

if TYPE_CHECKING:
    import optuna

MIN_TRIALS = 8
"""Measured trials below which nothing is said."""
FORESTS = 20
TREES = 8
MOST_TRIALS = 400
"""Of a longer study as many are looked at, evenly spread: more tell no more, and take longer."""
SURE = 0.9
"""Share of the forests in which a parameter must beat every copy."""
_COPY = "copy of "


@dataclass(frozen=True)
class Importance:
    """How much a parameter mattered to one figure.

    Attributes:
        parameter: its name.
        share: of what the parameters explain, median over the forests.
        low, high: of 9 in 10 forests.
        matters: whether it did better than a shuffled parameter.
        condition: under which it exists, in words; empty for always.
        trials: that were looked at.
        best: the value with the best mean among those of two trials or more; None if none has.
    """

    parameter: str
    share: float
    low: float
    high: float
    matters: bool
    condition: str
    trials: int
    best: Any = None


def importances(group: Group, sign: int, seed: int = 0) -> list[Importance]:
    """Of the parameters that are judged in a group, the most important first.

    Args:
        group: trials.
        sign: +1 if more of the figure is better, -1 if less is.
        seed: of resampling.

    Returns:
        Empty with fewer than `MIN_TRIALS` trials, or where all figures are alike.
    """
    group = _thinned(group)
    if len(group.values) < MIN_TRIALS or len(set(group.values)) == 1 or not group.columns:
        return []
    chance = random.Random(seed)
    drawn = [_forest(group, chance) for _ in range(FORESTS)]
    found = []
    for name in group.asked:
        if name not in group.columns:
            continue
        shares = sorted(shares[name] for shares, _ in drawn)
        wins = sum(shares[name] > rival for shares, rival in drawn)
        found.append(
            Importance(
                name,
                median(shares),
                shares[round(0.05 * (FORESTS - 1))],
                shares[round(0.95 * (FORESTS - 1))],
                wins >= SURE * FORESTS,
                group.condition,
                len(group.values),
                _best(group, name, sign),
            )
        )
    return sorted(found, key=lambda one: (-one.matters, -one.share))


def _thinned(group: Group) -> Group:
    count = len(group.values)
    if count <= MOST_TRIALS:
        return group
    places = [round(i * (count - 1) / (MOST_TRIALS - 1)) for i in range(MOST_TRIALS)]
    columns = {name: tuple(column[i] for i in places) for name, column in group.columns.items()}
    return Group(group.condition, group.asked, columns, tuple(group.values[i] for i in places))


def _forest(group: Group, chance: random.Random) -> tuple[dict[str, float], float]:
    """(share of each parameter, the copies left out; the best share of a copy) of one forest."""
    import optuna
    from optuna.importance import MeanDecreaseImpurityImportanceEvaluator, get_param_importances

    count = len(group.values)
    places = [chance.randrange(count) for _ in range(count)]
    columns = {name: [column[i] for i in places] for name, column in group.columns.items()}
    for name in group.columns:
        copied = list(columns[name])
        chance.shuffle(copied)
        columns[_COPY + name] = copied
    values = [group.values[i] for i in places]
    if len(set(values)) == 1:
        return dict.fromkeys(group.columns, 0.0), 0.0
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # experimental; pinned by optuna < 6
        study.add_trials(_trials(columns, values))
        evaluator = MeanDecreaseImpurityImportanceEvaluator(
            n_trees=TREES, seed=chance.randrange(2**31)
        )
        told = get_param_importances(study, evaluator=evaluator, normalize=False)
    raw = {name: float(told.get(name, 0.0)) for name in columns}
    whole = sum(raw[name] for name in group.columns) or 1.0
    shares = {name: raw[name] / whole for name in group.columns}
    return shares, max(raw[_COPY + name] for name in group.columns) / whole


def _trials(
    columns: dict[str, list[Any]], values: Sequence[float]
) -> list[optuna.trial.FrozenTrial]:
    from optuna.trial import create_trial

    kinds = {name: _distribution(column) for name, column in columns.items()}
    texts = {name for name, kind in kinds.items() if hasattr(kind, "choices")}
    return [
        create_trial(
            params={
                name: str(column[place]) if name in texts else float(column[place])
                for name, column in columns.items()
            },
            distributions=kinds,
            value=value,
        )
        for place, value in enumerate(values)
    ]


def _distribution(column: Sequence[Any]) -> optuna.distributions.BaseDistribution:
    """Numbers keep their order; anything else, the word for the engine's default too, has none."""
    from optuna.distributions import CategoricalDistribution, FloatDistribution

    numbers = [v for v in column if isinstance(v, int | float) and not isinstance(v, bool)]
    if len(numbers) == len(column) and len(set(numbers)) > 1:
        return FloatDistribution(float(min(numbers)), float(max(numbers)))
    return CategoricalDistribution(sorted({str(value) for value in column}))


def _best(group: Group, name: str, sign: int) -> Any:
    """The value with the best mean of the figure; means of one trial do not count."""
    by_value: dict[Any, list[float]] = {}
    for value, figure in zip(group.columns[name], group.values, strict=True):
        by_value.setdefault(value, []).append(figure)
    means = {v: sum(f) / len(f) for v, f in by_value.items() if len(f) > 1}
    return max(means, key=lambda value: sign * means[value], default=None)
