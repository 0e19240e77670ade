"""One score a task, from all that lm-eval tells of it. Pure, standard library only.

Which of a task's metrics is its score: the first of `PREFERRED` that it has; else the first for
which higher is better. Of several filters of that metric, the first of `FILTERS`, else its first.
A task that has none for which higher is better gives no score: a mean of shares and perplexities
means nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

# Multiple choice by likelihood a byte where the task offers it: it does not favour short answers.
PREFERRED = ("acc_norm", "acc", "mc2", "exact_match", "em", "pass@1", "f1")
# The strict filter asks for the format that the examples show; a broken model does not keep it.
FILTERS = ("none", "strict-match")
MAX_PARTS = 8
MAX_ANSWERS = 50_000
"""Of all questions of a name; more would be too long a line for the protocol."""

Metrics = Mapping[str, Any]
Directions = Mapping[str, bool | None]


class NoScoreError(Exception):
    """A task gives no figure that can be a score."""


@dataclass(frozen=True)
class Figure:
    """One metric of one task, as lm-eval names it."""

    metric: str
    filter: str
    value: float
    se: float | None

    @property
    def name(self) -> str:
        return self.metric if self.filter == "none" else f"{self.metric},{self.filter}"


def summary(name: str, results: Mapping[str, Any]) -> dict[str, Any]:
    """The score of `name`, which is a task, a group or a tag.

    Args:
        name: as asked for.
        results: what lm-eval tells of a run that had been asked for `name` alone.

    Returns:
        ``metric``; ``value`` and ``se`` (None if lm-eval tells none); ``n`` questions; ``parts``,
        the values of a group's tasks if they are few; ``answers``, what each question gave, by
        task, empty if there are too many.

    Raises:
        NoScoreError: see the module.
    """
    told: Mapping[str, Metrics] = results["results"]
    ways: Mapping[str, Directions] = results.get("higher_is_better", {})
    groups = {group for group, members in results.get("group_subtasks", {}).items() if members}
    leaves = [task for task in told if task not in groups]
    if _figures(told.get(name, {})):
        own = chosen(told[name], ways.get(name, {}))
        used = {task: figure for task in leaves if (figure := _same(told[task], own)) is not None}
    else:
        used = {task: chosen(told[task], ways.get(task, {})) for task in leaves}
        own = mean_of(used.values())
    few = len(used) <= MAX_PARTS and list(used) != [name]
    return {
        "metric": own.name,
        "value": own.value,
        "se": own.se,
        "n": sum(int(results["n-samples"][task]["effective"]) for task in used),
        "parts": {task: figure.value for task, figure in used.items()} if few else {},
        "answers": _answers(used, results.get("samples", {})),
    }


def chosen(metrics: Metrics, ways: Directions) -> Figure:
    """The figure that is the score, see the module. Raises NoScoreError."""
    rising = [figure for figure in _figures(metrics) if ways.get(figure.metric) is not False]
    if not rising:
        names = ", ".join(key for key in metrics if "," in key and "_stderr" not in key)
        raise NoScoreError(f"no metric for which higher is better (it has: {names or 'none'})")
    metric = next(
        name
        for name in (*PREFERRED, *(figure.metric for figure in rising))
        if any(figure.metric == name for figure in rising)
    )
    by_filter = {figure.filter: figure for figure in rising if figure.metric == metric}
    return by_filter[next(name for name in (*FILTERS, *by_filter) if name in by_filter)]


def mean_of(figures: Iterable[Figure]) -> Figure:
    """The mean of tasks that name no mean of their own, each counting the same.

    Raises:
        NoScoreError: there are none.
    """
    parts = list(figures)
    if not parts:
        raise NoScoreError("no task")
    names = {(part.metric, part.filter) for part in parts}
    metric, filter_name = names.pop() if len(names) == 1 else ("score", "none")
    errors = [part.se for part in parts if part.se is not None]
    return Figure(
        f"mean {metric}",
        filter_name,
        math.fsum(part.value for part in parts) / len(parts),
        math.hypot(*errors) / len(parts) if len(errors) == len(parts) else None,
    )


def _figures(metrics: Metrics) -> list[Figure]:
    """All that are numbers, in the task's own order."""
    found = []
    for key, value in metrics.items():
        metric, comma, filter_name = key.partition(",")
        if comma and not metric.endswith("_stderr") and _is_number(value):
            se = metrics.get(f"{metric}_stderr,{filter_name}")
            known = se if _is_number(se) else None
            found.append(Figure(metric, filter_name, float(value), known))
    return found


def _same(metrics: Metrics, own: Figure) -> Figure | None:
    """A member's figure of the same kind as its group's."""
    kind = (own.metric, own.filter)
    return next((f for f in _figures(metrics) if (f.metric, f.filter) == kind), None)


def _answers(
    used: Mapping[str, Figure], samples: Mapping[str, list[Mapping[str, Any]]]
) -> dict[str, list[float]]:
    """What each question gave in the metric that counts, in the order of the questions."""
    found = {}
    for task, figure in used.items():
        mine = [sample for sample in samples.get(task, []) if sample["filter"] == figure.filter]
        values = [sample.get(figure.metric) for sample in sorted(mine, key=_place)]
        if not values or not all(map(_is_number, values)):
            return {}
        found[task] = [_short(value) for value in values]
    return found if sum(map(len, found.values())) <= MAX_ANSWERS else {}


def _place(sample: Mapping[str, Any]) -> int:
    return int(sample["doc_id"])


def _short(value: Any) -> float:
    """Right and wrong as 1 and 0, which are shorter to send than 1.0 and 0.0."""
    number = float(value)
    return int(number) if number in (0.0, 1.0) else round(number, 6)


def _is_number(value: Any) -> bool:
    return isinstance(value, bool | int | float) and math.isfinite(value)
