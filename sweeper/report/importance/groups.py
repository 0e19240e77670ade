"""The trials of a study as tables of parameters and results, one a condition. Pure.

A parameter that exists only under a condition (draft tokens, under speculation) says nothing in the
trials where it does not exist. So it is looked at among those trials alone where it does, beside
all other parameters that exist in each of them. What exists everywhere is looked at in all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sweeper.pareto.points import latest_attempts
from sweeper.space.canonical import active, as_raw
from sweeper.space.model import ENGINE_DEFAULT, Space
from sweeper.trial.outcome import TrialOutcome
from sweeper.verdicts import Verdict

Target = Callable[[TrialOutcome], float | None]
"""A trial's figure, larger or smaller the better; None where it has none."""


@dataclass(frozen=True)
class Group:
    """Trials in which the same parameters exist.

    Attributes:
        condition: in words, empty for all trials.
        asked: parameters that are judged in this group.
        columns: parameter → its value in each trial; those with one value alone are left out.
        values: the figure of each trial.
    """

    condition: str
    asked: tuple[str, ...]
    columns: Mapping[str, tuple[Any, ...]]
    values: tuple[float, ...]


def measured(outcomes: Sequence[TrialOutcome], *, cut: bool = False) -> list[TrialOutcome]:
    """Trials that ended OK, one a deployment.

    Args:
        outcomes: every attempt.
        cut: whether launches that were cut short count too. At a level that they were driven at
            they must: leaving out what was slow would hide why.
    """
    found: dict[str, TrialOutcome] = {}
    for outcome in latest_attempts(outcomes):
        counts = outcome.verdict is Verdict.OK and (cut or outcome.partial is None)
        if counts and outcome.kind != "confirm":
            found.setdefault(outcome.deployment_hash, outcome)
    return list(found.values())


def groups(space: Space, outcomes: Sequence[TrialOutcome], target: Target) -> list[Group]:
    """All groups of a study, the one of all trials first.

    Args:
        space: the study's.
        outcomes: of `measured`.
        target: what is to be explained.
    """
    rows = []
    for outcome in outcomes:
        value = target(outcome)
        values = _active(space, outcome)
        if value is not None and values is not None:
            rows.append((values, value))
    made: list[Group] = []
    for condition, names in _by_condition(space).items():
        inside = [(v, y) for v, y in rows if all(name in v for name in names)]
        common = [n for n in space.names if inside and all(n in v for v, _ in inside)]
        columns = {name: tuple(v[name] for v, _ in inside) for name in common}
        varied = {name: column for name, column in columns.items() if len(set(column)) > 1}
        made.append(Group(condition, names, varied, tuple(y for _, y in inside)))
    return made


def _by_condition(space: Space) -> dict[str, tuple[str, ...]]:
    found: dict[str, list[str]] = {"": []}
    for parameter in space.parameters:
        words = " and ".join(
            f"{parent}={'|'.join(str(value) for value in allowed)}"
            for parent, allowed in parameter.when.items()
        )
        found.setdefault(words, []).append(parameter.name)
    return {words: tuple(names) for words, names in found.items() if names}


def _active(space: Space, outcome: TrialOutcome) -> dict[str, Any] | None:
    """The parameters that exist in a trial; None if its deployment is not of this space."""
    try:
        values = active(space, as_raw(space, outcome.deployment))
    except ValueError:
        return None
    return {name: ENGINE_DEFAULT if value is None else value for name, value in values.items()}
