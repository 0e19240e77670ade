"""Scores of tasks: what a worker tells, and the change against the reference. Pure.

The same questions are put to all deployments, so a change is taken question by question (paired)
where what each question gave is known. Otherwise the two errors are taken as independent, which
makes the error of the change too large: "no change" is then said too often, never too rarely.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from sweeper.quality.floor import Change, binomial_se, mean_change, share_change

# Answers come rounded to six digits.
_SAME = 1e-5
Answers = Mapping[str, list[float]]


@dataclass(frozen=True)
class TaskScore:
    """The score of a task, or of a group of tasks under one name. Higher is better.

    Attributes:
        metric: what is counted, for example ``acc_norm`` or ``exact_match,strict-match``.
        value: as lm-eval tells it; a share for most metrics.
        se: its standard error.
        n: questions.
        parts: values of a group's tasks, where they are few.
        answers: what each question gave, by task, in a fixed order; empty if that is not known.
    """

    metric: str
    value: float
    se: float
    n: int
    parts: Mapping[str, float] = field(default_factory=dict)
    answers: Answers = field(default_factory=dict)

    @classmethod
    def read(cls, told: Mapping[str, Any]) -> TaskScore:
        """From a worker's result, or from what was kept of the reference.

        Raises:
            ValueError: it has no standard error and none can be given for it.
            KeyError, TypeError: it is no score.
        """
        value, n = float(told["value"]), int(told["n"])
        return cls(
            metric=str(told["metric"]),
            value=value,
            se=_error(value, n, told["se"]),
            n=n,
            parts={str(name): float(part) for name, part in dict(told["parts"]).items()},
            answers={str(t): list(map(float, a)) for t, a in dict(told["answers"]).items()},
        )

    def kept(self) -> dict[str, Any]:
        """Plain data, to be read again."""
        return dict(vars(self))

    def found(self, own: TaskScore | None) -> dict[str, Any]:
        """What the journal gets: without the answers, with the change.

        Args:
            own: the reference's, None if it is not known.
        """
        plain: dict[str, Any] = {
            "metric": self.metric,
            "value": self.value,
            "se": self.se,
            "n": self.n,
        }
        if self.parts:
            plain["parts"] = dict(self.parts)
        against = None if own is None else change(self, own)
        if against is not None:
            plain |= {"change": against.value, "change_se": against.se}
        return plain


def change(ours: TaskScore, own: TaskScore) -> Change | None:
    """Candidate minus reference; None if the two count different things."""
    if ours.metric != own.metric:
        return None
    return _paired(ours, own) or Change(ours.value - own.value, math.hypot(ours.se, own.se))


def _error(value: float, n: int, told: float | None) -> float:
    """lm-eval's standard error; where it tells none, or all questions went one way, our own.

    Nothing between 0 and 1 varies more than a share does, so the error of a share is an upper
    bound.
    """
    if told is not None and told > 0:
        return float(told)
    if n < 1 or not 0 <= value <= 1:
        raise ValueError("lm-eval tells no standard error")
    return binomial_se(round(value * n), n)


def _paired(ours: TaskScore, own: TaskScore) -> Change | None:
    """From what each question gave; None if that does not make up the scores."""
    sizes = {task: len(values) for task, values in own.answers.items()}
    if not sizes or {task: len(values) for task, values in ours.answers.items()} != sizes:
        return None
    if _is_mean_of_questions(ours) and _is_mean_of_questions(own):
        return _pairs_change(_all(ours, sizes), _all(own, sizes))
    if _is_mean_of_tasks(ours) and _is_mean_of_tasks(own):
        changes = [_pairs_change(ours.answers[task], own.answers[task]) for task in sizes]
        return Change(
            math.fsum(part.value for part in changes) / len(changes),
            math.hypot(*(part.se for part in changes)) / len(changes),
        )
    return None


def _all(score: TaskScore, tasks: Iterable[str]) -> list[float]:
    return [value for task in tasks for value in score.answers[task]]


def _pairs_change(ours: list[float], own: list[float]) -> Change:
    """Each question is one draw."""
    if {*ours, *own} <= {0.0, 1.0}:
        return share_change([[bool(v)] for v in ours], [[bool(v)] for v in own])
    return mean_change([[mine - theirs] for mine, theirs in zip(ours, own, strict=True)])


def _is_mean_of_questions(score: TaskScore) -> bool:
    values = _all(score, score.answers)
    return math.isclose(score.value, math.fsum(values) / len(values), abs_tol=_SAME)


def _is_mean_of_tasks(score: TaskScore) -> bool:
    means = [math.fsum(answers) / len(answers) for answers in score.answers.values()]
    return math.isclose(score.value, math.fsum(means) / len(means), abs_tol=_SAME)
