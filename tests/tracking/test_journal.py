from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sweeper.errors import JournalError
from sweeper.tracking.journal import Journal, check_plain
from sweeper.verdicts import Verdict
from tests.factories import outcome, point, study


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    return Journal(tmp_path / "trials.jsonl")


def test_what_is_appended_is_read_back_the_same(journal: Journal) -> None:
    outcomes = study()
    for one in outcomes:
        journal.append(one)
    again = journal.read()
    assert again == outcomes
    assert again[3].verdict is Verdict.CAPACITY
    assert len(journal.path.read_text().splitlines()) == len(outcomes)


def test_missing_file_is_an_empty_journal(journal: Journal) -> None:
    assert journal.read() == []


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), float("-inf")])
def test_non_finite_number_is_refused_by_name_and_nothing_is_written(
    journal: Journal, bad: float
) -> None:
    journal.append(outcome(0))
    before = journal.path.read_bytes()
    with pytest.raises(ValueError, match=r"outcome\.points\[0\]\.metrics\.oops is"):
        journal.append(outcome(1, points=[point(oops=bad)]))
    assert journal.path.read_bytes() == before


def test_value_without_a_place_in_json_is_refused_by_name(journal: Journal) -> None:
    with pytest.raises(TypeError, match=r"outcome\.learnt\.x is a set"):
        journal.append(outcome(1, learnt={"x": {1}}))
    with pytest.raises(TypeError, match="int64"):
        journal.append(outcome(1, learnt={"x": np.int64(1)}))
    assert not journal.path.exists()


@given(cut=st.integers(min_value=1, max_value=600))
@settings(max_examples=60, deadline=None)
def test_a_line_torn_anywhere_is_ignored_put_aside_and_written_over(
    tmp_path_factory: pytest.TempPathFactory, cut: int
) -> None:
    journal = Journal(tmp_path_factory.mktemp("j") / "trials.jsonl")
    journal.append(outcome(0))
    whole = journal.path.stat().st_size
    journal.append(outcome(1))
    content = journal.path.read_bytes()
    kept = content[: min(whole + cut, len(content) - 2)]
    journal.path.write_bytes(kept)

    assert [o.number for o in journal.read()] == [0]
    journal.append(outcome(2))
    assert [o.number for o in journal.read()] == [0, 2]
    assert journal.torn_path.read_bytes() == kept[whole:] + b"\n"


def test_whole_last_line_without_line_break_is_kept(journal: Journal) -> None:
    journal.append(outcome(0))
    journal.path.write_bytes(journal.path.read_bytes().rstrip(b"\n"))
    assert [o.number for o in journal.read()] == [0]
    journal.append(outcome(1))
    assert [o.number for o in journal.read()] == [0, 1]
    assert not journal.torn_path.exists()


def test_garbage_tail_with_line_break_counts_as_torn(journal: Journal) -> None:
    journal.append(outcome(0))
    with journal.path.open("ab") as handle:
        handle.write(b"\x00\x00garbage\n")
    assert [o.number for o in journal.read()] == [0]
    journal.append(outcome(1))
    assert [o.number for o in journal.read()] == [0, 1]


def test_corrupt_middle_line_is_named_with_a_remedy(journal: Journal) -> None:
    for number in range(3):
        journal.append(outcome(number))
    lines = journal.path.read_text().splitlines()
    journal.path.write_text("\n".join([lines[0], lines[1][:50], lines[2]]) + "\n")
    with pytest.raises(JournalError, match="line 2 cannot be read") as caught:
        journal.read()
    assert "delete line 2" in caught.value.remedy


def test_json_that_is_no_trial_is_named(journal: Journal) -> None:
    journal.path.write_text('{"schema_version": 1, "number": 1}\n')
    with pytest.raises(JournalError, match=r"line 1 .*not a trial"):
        journal.read()


def test_newer_schema_is_refused(journal: Journal) -> None:
    data = outcome(0).to_dict() | {"schema_version": 99}
    journal.path.write_text(json.dumps(data) + "\n")
    with pytest.raises(JournalError, match="schema_version 99"):
        journal.read()


def test_unwritable_journal_is_a_journal_error(journal: Journal) -> None:
    journal.path.mkdir()
    with pytest.raises(JournalError, match="cannot append"):
        journal.append(outcome(0))


def test_plain_values_pass() -> None:
    check_plain({"a": [1, 2.5, "x", None, True, ()]}, "x")
