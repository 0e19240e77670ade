from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from sweeper.report.comparison.quality import compare_quality
from sweeper.report.comparison.results import Judgement, Result
from sweeper.report.comparison.side import Side
from tests.report.comparison.sides import foreign, trial
from tests.report.traded import score


def side(change: float = 0.0, study: str = "one", **fields: Any) -> Side:
    return replace(trial(study), quality=score(change, **{"key": str(change), **fields}))


def compared(a: Side, b: Side) -> Result:
    result = compare_quality(a, b)
    assert result is not None
    return result


def read(nats: float, change: float) -> dict[str, Any]:
    figures = {"nats_per_token": nats, "nats_se": 0.01, "perplexity": 2.718281828**nats}
    kept = {"windows": 400, "change_nats": change, "change_se_nats": 0.005}
    return {"ranked_by": "perplexity", "perplexity": {**figures, **kept}, "key": str(nats)}


def test_a_paired_change_tells_what_two_scores_cannot() -> None:
    result = compared(side(se=0.0), side(-0.008, se=0.002))
    assert result.judgement is Judgement.WORSE
    assert result.word == "b worse by 0.8 % ± 0.4 % (paired)"
    assert result.change_interval == pytest.approx([-0.01192, -0.00408])
    assert result.metric.label == "agreement with the reference"


def test_the_references_own_noise_is_counted_once() -> None:
    baseline = replace(side(se=0.004), is_reference=True)
    other = side(-0.008, se=0.002)
    assert compared(baseline, other).word == "b worse by 0.8 % ± 0.4 % (paired)"
    assert compared(other, baseline).word == "b better by 0.8 % ± 0.4 % (paired)"
    assert compared(side(se=0.004), other).judgement is Judgement.NO_DIFFERENCE


def test_exchanging_the_sides_exchanges_the_judgement() -> None:
    result = compared(side(-0.008, se=0.002), side(se=0.0))
    assert result.word == "b better by 0.8 % ± 0.4 % (paired)"


def test_inside_the_error_there_is_no_difference() -> None:
    result = compared(side(-0.001), side(-0.002))
    assert result.judgement is Judgement.NO_DIFFERENCE
    assert result.word == "no difference that its error allows (-0.1 % ± 0.6 %, paired)"


def test_journals_without_pairs_are_compared_by_their_scores() -> None:
    result = compared(trial(agreement=0.97), trial(agreement=0.80))
    assert result.judgement is Judgement.WORSE
    assert "not paired" in result.word
    near = compared(trial(agreement=0.97), trial(agreement=0.965))
    assert near.judgement is Judgement.NO_DIFFERENCE


def test_one_measurement_for_both_is_said() -> None:
    result = compared(side(), side())
    assert "measured once" in result.word
    assert result.change == 0.0


def test_perplexity_is_named_and_less_is_better() -> None:
    ours, theirs = side(**read(2.0, 0.0)), side(**read(2.1, 0.1))
    result = compared(ours, theirs)
    assert (result.metric.label, result.metric.more_is_better) == ("perplexity", False)
    assert (result.a, result.b) == pytest.approx((7.389, 8.166), abs=1e-3)
    assert result.word == "b worse by 0.100 ± 0.014 nats a token (paired)"
    assert result.a_interval == pytest.approx([7.246, 7.535], abs=1e-3)


def test_two_kinds_of_quality_are_compared_by_what_both_have() -> None:
    result = compared(side(se=0.0), side(-0.05, **{**read(2.1, 0.1), "key": "x"}))
    assert result.metric.label == "agreement with the reference"
    assert result.word == "b worse by 5.0 % ± 0.4 % (paired)"


def test_a_task_without_an_error_cannot_be_judged() -> None:
    told = {"t": {"metric": "acc", "value": 0.5, "se": None, "n": 50}}
    other = {"t": {**told["t"], "value": 0.1}}
    result = compared(
        side(tasks=told, ranked_by="tasks", key="a"), side(tasks=other, ranked_by="tasks", key="b")
    )
    assert result.judgement is Judgement.CANNOT_TELL
    assert result.a_interval is None
    assert result.metric.label == "t acc"


def test_scores_with_two_references_are_not_compared() -> None:
    result = compared(side(), side(-0.5, study="two"))
    assert result.ratio is None
    assert result.change is None
    assert result.word == "cannot tell (each against a reference of its own)"


def test_quality_that_nobody_has_is_left_out() -> None:
    assert compare_quality(foreign(), foreign()) is None
    assert compared(trial(), foreign()).word == "cannot tell (b does not have it)"
