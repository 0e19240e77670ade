"""What is known by number and by deployment, as a journal grows."""

from __future__ import annotations

from sweeper.search.outcome_index import OutcomeIndex
from sweeper.trial.outcome import TrialOutcome
from sweeper.verdicts import Verdict
from tests.factories import outcome


def refused(number: int, seqs: int) -> TrialOutcome:
    made = outcome(
        number,
        deployment={"max_num_seqs": seqs},
        verdict=Verdict.INFEASIBLE_CONFIG,
        points=[],
    )
    made.launched = False
    return made


def nothing_lifted(_: TrialOutcome) -> bool:
    return False


def test_the_last_attempt_of_a_trial_counts_and_confirmations_are_no_deployment() -> None:
    index, journal = OutcomeIndex(), [outcome(0), outcome(1, deployment={"block_size": 16})]
    index.update(journal)
    assert index.next_number == 2
    journal += [outcome(1, attempt=2, deployment={"block_size": 16}), outcome(2, kind="confirm")]
    index.update(journal)
    assert index.latest[1].attempt == 2
    assert index.next_number == 3
    known = index.by_hash(nothing_lifted, None)
    assert [one.number for one in known.values()] == [0, 1]


def test_a_refusal_that_is_taken_back_leaves_its_deployment_open() -> None:
    index, journal = OutcomeIndex(), [outcome(0), refused(1, 4), refused(2, 8)]
    index.update(journal)
    assert len(index.by_hash(nothing_lifted, "a")) == 3
    open_again = index.by_hash(lambda one: one.number == 1, "b")
    assert [one.number for one in open_again.values()] == [0, 2]
    journal.append(outcome(3, deployment={"max_num_seqs": 4}))
    index.update(journal)
    assert [one.number for one in index.by_hash(lambda one: one.number == 1, "b").values()] == [
        0,
        2,
        3,
    ]


def test_what_is_known_is_looked_at_once() -> None:
    index, journal, looked = OutcomeIndex(), [refused(1, 4)], []

    def look(one: TrialOutcome) -> bool:
        looked.append(one.number)
        return False

    for number in (2, 3):
        index.update(journal)
        index.by_hash(look, "same")
        journal.append(refused(number, number))
    assert looked == [1, 2]
