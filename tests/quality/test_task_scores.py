"""Scores of tasks and their change against the reference."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweeper.quality.floor import binomial_se, share_change
from sweeper.quality.task_scores import TaskScore, change


def score(*tasks: list[float], metric: str = "acc", by_task: bool = False) -> TaskScore:
    """Of tasks `t0`, `t1` ...; the mean over their questions, or over the tasks."""
    values = [value for task in tasks for value in task]
    means = [sum(task) / len(task) for task in tasks]
    value = sum(means) / len(means) if by_task else sum(values) / len(values)
    answers = {f"t{number}": list(task) for number, task in enumerate(tasks)}
    return TaskScore(metric, value, 0.05, len(values), answers=answers)


def told(value: float, se: float | None, n: int = 50) -> dict[str, object]:
    return {"metric": "acc", "value": value, "se": se, "n": n, "parts": {}, "answers": {}}


def test_what_is_kept_is_read_again() -> None:
    made = TaskScore("acc", 0.5, 0.1, 2, {"a": 0.5}, {"a": [0.0, 1.0]})
    assert TaskScore.read(json.loads(json.dumps(made.kept()))) == made


@pytest.mark.parametrize("told_se", [None, 0.0])
@pytest.mark.parametrize("value", [0.0, 0.5, 1.0])
def test_no_share_is_without_error(value: float, told_se: float | None) -> None:
    assert TaskScore.read(told(value, told_se)).se == binomial_se(round(value * 50), 50) > 0


def test_lm_evals_own_error_stays() -> None:
    assert TaskScore.read(told(0.74, 0.0626)).se == 0.0626
    assert TaskScore.read(told(31.4, 0.5)).se == 0.5


@pytest.mark.parametrize(("value", "n"), [(31.4, 50), (0.5, 0)])
def test_a_score_without_any_error_is_refused(value: float, n: int) -> None:
    with pytest.raises(ValueError, match="no standard error"):
        TaskScore.read(told(value, None, n))


def test_the_journal_gets_no_answers() -> None:
    ours, own = score([1, 0, 1, 0]), score([1, 1, 1, 0])
    found = ours.found(own)
    assert set(found) == {"metric", "value", "se", "n", "change", "change_se"}
    assert found["change"] == pytest.approx(-0.25)
    assert set(ours.found(None)) == {"metric", "value", "se", "n"}
    grouped = TaskScore("acc", 0.5, 0.1, 2, {"a": 0.4, "b": 0.6})
    assert grouped.found(None)["parts"] == {"a": 0.4, "b": 0.6}


def test_questions_are_paired() -> None:
    own = score([1.0] * 70 + [0.0] * 30)
    ours = score([1.0] * 68 + [0.0] * 32)
    found = change(ours, own)
    assert found is not None
    assert found == share_change(
        [[bool(v)] for v in ours.answers["t0"]], [[bool(v)] for v in own.answers["t0"]]
    )
    unpaired = math.hypot(binomial_se(70, 100), binomial_se(68, 100))
    assert found.value == pytest.approx(-0.02) and found.se < unpaired / 2


def test_the_same_answers_are_no_change_with_an_error() -> None:
    own = score([1.0, 0.0] * 25)
    found = change(own, own)
    assert found is not None and found.value == 0 and found.se > 0 and found.is_none


def test_a_group_is_weighed_as_its_score_is() -> None:
    big, small = [1.0] * 30 + [0.0] * 10, [1.0, 0.0, 0.0, 0.0]
    better = [1.0, 1.0, 1.0, 1.0]
    by_question = change(score(big, better), score(big, small))
    by_task = change(score(big, better, by_task=True), score(big, small, by_task=True))
    assert by_question is not None and by_question.value == pytest.approx(3 / 44)
    assert by_task is not None and by_task.value == pytest.approx(0.375)
    assert by_task.se > by_question.se


def test_partial_credit_is_paired_too() -> None:
    own = score([0.2, 0.4, 0.6, 0.9])
    found = change(score([0.1, 0.3, 0.5, 0.8]), own)
    assert found is not None and found.value == pytest.approx(-0.1)
    assert found.se == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize(
    "own",
    [
        score([1.0, 0.0]),  # fewer questions
        TaskScore("acc", 0.75, 0.05, 4),  # answers not kept
        TaskScore("acc", 0.9, 0.05, 4, answers={"t0": [1.0, 0.0, 1.0, 1.0]}),  # no mean of them
    ],
)
def test_what_cannot_be_paired_counts_as_independent(own: TaskScore) -> None:
    ours = score([1.0, 0.0, 1.0, 0.0])
    found = change(ours, own)
    assert found is not None
    assert found.value == pytest.approx(ours.value - own.value)
    assert found.se == pytest.approx(math.hypot(0.05, 0.05))


def test_two_metrics_have_no_difference() -> None:
    assert change(score([1.0]), score([1.0], metric="f1")) is None
    assert "change" not in score([1.0]).found(score([1.0], metric="f1"))


@given(
    pairs=st.lists(st.tuples(st.sampled_from([0.0, 1.0]), st.sampled_from([0.0, 1.0])), min_size=2)
)
def test_a_change_turns_its_sign_with_its_sides(pairs: list[tuple[float, float]]) -> None:
    ours, own = score([a for a, _ in pairs]), score([b for _, b in pairs])
    there, back = change(ours, own), change(own, ours)
    assert there is not None and back is not None
    assert there.value == pytest.approx(-back.value) and there.se == pytest.approx(back.se)
    assert there.value == pytest.approx(ours.value - own.value)
