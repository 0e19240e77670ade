from __future__ import annotations

from typing import Any

import pytest

from sweeper.search.faults import masked, persistent
from sweeper.trial.outcome import TrialOutcome
from sweeper.verdicts import Verdict
from tests.factories import outcome

INFRA = Verdict.INFRA


def launch(number: int, attempt: int = 1, verdict: Verdict = INFRA, **fields: Any) -> TrialOutcome:
    deployment = {"max_num_seqs": number}
    return outcome(number, deployment=deployment, verdict=verdict, attempt=attempt, **fields)


def rule(number: int, attempt: int, name: str, **learnt: Any) -> TrialOutcome:
    return launch(number, attempt, learnt={"rule": name, **learnt}, cause=f"text of {number}")


OK = launch(9, verdict=Verdict.OK)


def test_the_same_rule_three_launches_in_a_row_stops() -> None:
    row = [rule(1, 1, "nccl"), rule(1, 2, "nccl"), rule(2, 1, "nccl")]
    assert persistent(row[:2]) is None
    found = persistent(row)
    assert found is not None
    assert "(nccl) 3 launches in a row, in trial 1, 2" in found.message
    assert found.last is row[-1]


def test_a_cause_that_no_rule_knows_is_recognised_without_its_numbers() -> None:
    def nameless(number: int, attempt: int, cause: str) -> TrialOutcome:
        return launch(number, attempt, cause=cause)

    same = [nameless(1, 1, "at 0x7ffe: 12 of 1,024"), nameless(1, 2, "at 0x1: 13 of 2"),
            nameless(2, 1, "at 0xab: 7 of 9.5")]  # fmt: skip
    assert persistent(same) is not None
    assert persistent([*same[:2], nameless(2, 1, "something else")]) is None
    assert masked("port 8000 of 0xff") == "port # of #"


@pytest.mark.parametrize(
    "between",
    [OK, launch(5, verdict=Verdict.CAPACITY), rule(5, 1, "another")],
)
def test_what_says_something_else_ends_a_row(between: TrialOutcome) -> None:
    row = [rule(1, 1, "nccl"), rule(1, 2, "nccl"), between, rule(2, 1, "nccl")]
    assert persistent(row) is None


def test_a_fault_of_the_machine_stops_at_its_second_occurrence() -> None:
    first, again = (rule(1, attempt, "shared_memory", scope="machine") for attempt in (1, 2))
    assert persistent([first]) is None
    assert persistent([first, again]) is not None
    assert persistent([first, OK, again]) is None
    crashed = launch(2, verdict=Verdict.CRASH_UNDER_LOAD,
                     learnt={"rule": "shared_memory", "scope": "machine"})  # fmt: skip
    assert persistent([first, crashed]) is not None


def test_different_faults_stop_after_three_trials_and_their_retries() -> None:
    row = [rule(n, attempt, f"rule {n}.{attempt}") for n in (1, 2, 3) for attempt in (1, 2)]
    for length in range(len(row)):
        assert persistent(row[:length]) is None
    found = persistent(row)
    assert found is not None
    assert "3 trials in a row" in found.message


@pytest.mark.parametrize(
    "verdict", [Verdict.UNKNOWN, Verdict.STARTUP_TIMEOUT, Verdict.MEASUREMENT_INVALID]
)
def test_what_may_be_the_deployments_counts_by_trials(verdict: Verdict) -> None:
    row = [launch(n, attempt, verdict, cause="slow") for n in (1, 2, 3) for attempt in (1, 2)]
    assert persistent(row[:-1]) is None
    assert persistent(row) is not None


def test_failures_of_deployments_never_stop_a_study() -> None:
    full = [launch(n, verdict=Verdict.CAPACITY, learnt={"rule": "no_kv_memory"}) for n in range(9)]
    assert persistent(full) is None


def test_what_a_bound_fences_off_does_not_count() -> None:
    row = [rule(1, 1, "nccl"), rule(1, 2, "nccl"), rule(2, 1, "nccl"), rule(2, 2, "nccl")]
    assert persistent(row, lambda _: True) is None
