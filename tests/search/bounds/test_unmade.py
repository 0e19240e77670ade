"""A checkpoint that could not be made is not tried again beside other settings."""

from __future__ import annotations

from typing import Any

import pytest

from sweeper.search.bounds.bound import Bound
from sweeper.search.bounds.learn import learn, learn_bounds
from sweeper.trial.outcome import TrialOutcome
from sweeper.verdicts import Phase, Verdict
from tests.factories import outcome
from tests.search.bounds.journal import baseline

CAPACITY, INFRA, UNKNOWN = Verdict.CAPACITY, Verdict.INFRA, Verdict.UNKNOWN
Q, G = "quantization", "quantize.group_size"
W4 = {Q: "w4a16", "max_num_seqs": 64}


def unmade(
    number: int = 4,
    verdict: Verdict = CAPACITY,
    rule: str = "quantize_memory",
    deployment: dict[str, Any] = W4,
    **fields: Any,
) -> TrialOutcome:
    learnt = {"rule": rule, **fields.pop("learnt", {})}
    return outcome(
        number,
        deployment=deployment,
        verdict=verdict,
        phase=Phase.QUANTIZE,
        remedy="take other texts",
        learnt=learnt,
        **fields,
    )


def only(*outcomes: TrialOutcome) -> Bound:
    (bound,) = learn_bounds([baseline(), *outcomes])
    return bound


def test_other_settings_do_not_help_and_another_recipe_may() -> None:
    bound = only(unmade())
    for inside in (W4, {Q: "w4a16"}, {Q: "w4a16", "max_model_len": 8, "flag.x": 1}):
        assert bound.excludes(inside), inside
    for outside in ({}, {Q: "w8a8"}, {Q: "w4a16", G: 32}, {Q: "w4a16", "quantize.bits": 8}):
        assert not bound.excludes(outside), outside
    assert bound.verdict == CAPACITY
    assert bound.text == (
        "quantization=w4a16, whatever else is set: trial 4 could not make its checkpoint"
    )


def test_a_recipe_is_known_by_its_fields() -> None:
    bound = only(unmade(deployment={Q: "w4a16", G: 32, "max_num_seqs": 64}))
    assert bound.excludes({Q: "w4a16", G: 32})
    assert not bound.excludes({Q: "w4a16"})
    assert not bound.excludes({Q: "w4a16", G: 64})
    assert "quantize.group_size=32" in bound.region
    assert "max_num_seqs" not in bound.region


@pytest.mark.parametrize("rule", ["no_cuda", "no_environment", "architecture_not_quantizable"])
def test_a_fault_of_the_tool_is_one_of_all_its_values(rule: str) -> None:
    bound = only(unmade(verdict=Verdict.INFEASIBLE_CONFIG, rule=rule))
    assert bound.excludes({Q: "w4a16", G: 32})
    assert not bound.excludes({Q: "w8a8"})


@pytest.mark.parametrize("verdict", [UNKNOWN, INFRA])
def test_what_is_retried_teaches_once_the_retry_has_failed(verdict: Verdict) -> None:
    first = unmade(verdict=verdict, rule="quantize_failed", attempt=1)
    second = unmade(verdict=verdict, rule="quantize_failed", attempt=2)
    assert learn_bounds([baseline(), first]) == []
    bound = only(first, second)
    assert bound.excludes({Q: "w4a16"})
    # The sampler is told of a refusal that is the deployment's; such a fault would be no answer.
    assert bound.verdict == Verdict.INFEASIBLE_CONFIG


def test_a_fault_of_the_machine_teaches_nothing() -> None:
    trials = [
        unmade(verdict=INFRA, rule="disk_full", attempt=attempt, learnt={"scope": "machine"})
        for attempt in (1, 2)
    ]
    assert learn_bounds([baseline(), *trials]) == []


def test_what_worked_once_can_be_made() -> None:
    worked = outcome(3, deployment={Q: "w4a16", "max_num_seqs": 16})
    lessons = learn([baseline(), worked, unmade(verdict=UNKNOWN, rule="x", attempt=2)])
    assert lessons.active == ()
    assert [number for _, number in lessons.contradicted] == [3]


def test_a_dropped_bound_lets_it_be_tried_again() -> None:
    trials = [baseline(), unmade()]
    (bound,) = learn_bounds(trials)
    assert learn(trials, {bound.id}).active == ()
