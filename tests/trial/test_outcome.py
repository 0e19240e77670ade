"""Which quality ranks, how it is named, and when it counts as the reference's own."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweeper.trial.outcome import AGREEMENT, QualityScore, TrialOutcome
from tests.factories import outcome


def agreement(share: float = 0.95, **more: Any) -> QualityScore:
    return QualityScore(share, 0.01, -0.01, 0.01, 192, "k", **more)


def nats(level: float, change: float, se: float = 0.01) -> QualityScore:
    figures = {
        "nats_per_token": level,
        "nats_se": 0.1,
        "perplexity": 2.718**level,
        "tokens": 2000,
        "windows": 16,
        "change_nats": change,
        "change_se_nats": se,
    }
    return agreement(perplexity=figures, ranked_by="perplexity")


def tasks(**scores: tuple[float, float | None]) -> QualityScore:
    found = {
        name: {
            "metric": "acc",
            "value": value,
            "se": 0.03,
            "n": 50,
            "change": change,
            "change_se": None if change is None else 0.02,
        }
        for name, (value, change) in scores.items()
    }
    return agreement(tasks=found, ranked_by="tasks")


def test_agreement_ranks_by_its_paired_change() -> None:
    own = agreement(0.97, agreement_change=0.0, agreement_change_se=0.002, clusters=12)
    near = agreement(0.965, agreement_change=-0.005, agreement_change_se=0.003, clusters=12)
    far = agreement(0.96, agreement_change=-0.010, agreement_change_se=0.003, clusters=12)
    assert (near.is_no_change, far.is_no_change) == (True, False)
    assert (near.settled(own), far.settled(own)) == (0.97, 0.96)
    assert near.settled(None) == 0.965
    assert (near.name, near.shown) == (AGREEMENT, "96.5%")


def test_few_prompts_reach_further() -> None:
    """2.1 errors: a change for very many prompts, none for twelve."""
    few = agreement(agreement_change=-0.021, agreement_change_se=0.01, clusters=12)
    many = agreement(agreement_change=-0.021, agreement_change_se=0.01, clusters=2000)
    assert few.is_no_change and not many.is_no_change


def test_scores_of_earlier_versions_are_judged_as_they_were() -> None:
    own, near, far = agreement(0.97), agreement(0.95), agreement(0.9)
    assert near.is_no_change is None and near.change is None and near.change_se is None
    assert (near.settled(own), far.settled(own)) == (0.97, 0.9)
    line = {key: value for key, value in asdict(near).items() if key in {
        "agreement", "agreement_se", "loglik_change_nats", "loglik_change_se_nats", "tokens", "key",
        "reused",
    }}  # fmt: skip
    old = {**outcome().to_dict(), "quality": line}
    assert TrialOutcome.from_dict(json.loads(json.dumps(old))).quality == near


def test_perplexity_ranks_by_nats_and_is_shown_as_itself() -> None:
    own, worse, same = nats(2.0, 0.0), nats(2.1, 0.1), nats(2.01, 0.01)
    assert (worse.score, worse.change) == (-2.1, -0.1)
    assert worse.settled(own) < own.score
    assert same.settled(own) == own.score
    assert (worse.name, nats(2.0, 0.0).shown) == ("perplexity", "7.39")


def test_tasks_rank_by_their_mean() -> None:
    both = tasks(gsm8k=(0.5, -0.1), mine=(0.7, 0.0))
    assert both.score == pytest.approx(0.6)
    assert both.score_se == pytest.approx(0.03 / 2**0.5)
    assert both.change == pytest.approx(-0.05)
    assert both.change_se == pytest.approx(0.02 / 2**0.5)
    assert both.name == "mean of gsm8k acc, mine acc"
    assert (tasks(gsm8k=(0.5, 0.0)).name, both.shown) == ("gsm8k acc", "60.0%")


def test_a_task_without_error_or_change_is_compared_no_further_than_that_allows() -> None:
    plain, own = tasks(mine=(0.52, None)), tasks(mine=(0.5, None))
    assert plain.change is None
    assert plain.settled(own) == 0.5, "two scores, each with its own error"
    plain.tasks["mine"]["se"] = None
    assert plain.score_se is None
    assert plain.settled(own) == 0.52, "without an error every difference counts"


def test_less_is_better_where_the_metric_says_so() -> None:
    score = tasks(words=(12.0, 3.0))
    score.tasks["words"]["higher_is_better"] = False
    assert (score.score, score.change, score.shown) == (-12.0, -3.0, "12")


@given(st.floats(0, 1), st.floats(-1, 1), st.floats(0, 0.2), st.integers(2, 30))
def test_settled_is_one_of_the_two(share: float, change: float, se: float, prompts: int) -> None:
    score = agreement(share, agreement_change=change, agreement_change_se=se, clusters=prompts)
    own = agreement(0.97)
    assert score.settled(own) == (0.97 if score.is_no_change else share)


def test_another_kind_of_quality_is_no_measure() -> None:
    assert nats(2.0, 0.0).settled(agreement()) == -2.0
