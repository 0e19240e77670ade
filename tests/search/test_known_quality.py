"""What need not be measured again, and what must be."""

from __future__ import annotations

from typing import Any

import pytest

from sweeper.search.known_quality import known_quality
from sweeper.trial.outcome import TrialOutcome
from tests.factories import outcome, quality

NGRAM = "speculative=ngram"


def writing(drafting: str = "", *, stuck: bool = False, mark: str = "a") -> dict[str, Any]:
    return {
        "drafting": drafting,
        "prompts": 12,
        "stuck": 12 if stuck else 0,
        "reference_stuck": 0,
        "newly_stuck": 12 if stuck else 0,
        "reads_back": 1.0,
        "reads_back_change": 0.0,
        "reads_back_change_se": 0.0,
        "digests": [mark] * 12,
    }


def trial(key: str, written: dict[str, Any]) -> TrialOutcome:
    made = outcome()
    made.quality = quality()
    made.quality.key, made.quality.written = key, written
    return made


def test_an_unknown_key_is_read_and_written() -> None:
    known = known_quality([trial("a", writing())], "b", "")
    assert (known.score, known.to_write) == (None, False)


def test_scheduler_only_trials_measure_nothing() -> None:
    known = known_quality([trial("a", writing())], "a", "")
    assert known.score is not None and not known.to_write
    assert known.score.written == writing()


def test_drafting_is_written_once_a_study_and_compared_with_the_same_output_without_it() -> None:
    past = [trial("a", writing(mark="x"))]
    first = known_quality(past, "a", NGRAM)
    assert first.score is not None and first.to_write
    assert first.plain_written == ["x"] * 12
    past.append(trial("a", writing(NGRAM)))
    assert not known_quality(past, "a", NGRAM).to_write
    past.append(trial("b", writing()))
    again = known_quality(past, "b", NGRAM)
    assert again.score is not None and not again.to_write, "judged on another key already"
    assert known_quality(past, "b", "speculative=eagle (e)").to_write


def test_a_pair_is_completed_when_drafting_came_first() -> None:
    past = [trial("a", writing()), trial("b", writing(NGRAM))]
    assert known_quality(past, "b", "").to_write
    past.append(trial("a", writing(NGRAM)))
    assert not known_quality(past, "b", "").to_write, "ngram has been judged on another key"


def test_broken_writing_is_never_taken_over_by_another_way_of_drafting() -> None:
    past = [trial("a", writing()), trial("b", writing()), trial("a", writing(NGRAM, stuck=True))]
    assert known_quality(past, "b", NGRAM).to_write, "ngram may be broken here too"
    assert not known_quality(past, "a", "").to_write, "plain writing is known to be sound"
    past.append(trial("c", writing(NGRAM, stuck=True)))
    plain = known_quality(past, "c", "")
    assert plain.to_write and plain.score is not None and plain.score.written == {}


@pytest.mark.parametrize("drafting", ["", NGRAM])
def test_a_score_of_an_earlier_version_is_taken_over(drafting: str) -> None:
    known = known_quality([trial("a", {})], "a", drafting)
    assert known.score is not None
    assert known.to_write == bool(drafting)
    assert known.plain_written is None
