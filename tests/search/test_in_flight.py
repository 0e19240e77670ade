"""The note of a launch: it is there while there is something to take up, and no longer."""

from __future__ import annotations

from pathlib import Path

from sweeper.search.in_flight import InFlight, clear, interrupted, note
from tests.factories import outcome

LAUNCH = InFlight(1, 1, "search", {"max_num_seqs": 4})


def test_a_launch_that_was_not_journalled_is_taken_up(tmp_path: Path) -> None:
    path = tmp_path / "in_flight.json"
    note(path, LAUNCH)
    assert interrupted(path, [outcome(0)]) == LAUNCH
    assert path.exists()


def test_a_note_of_what_was_journalled_goes(tmp_path: Path) -> None:
    """Its tuner died between the journal and the note, and nothing may be launched after it."""
    path = tmp_path / "in_flight.json"
    note(path, LAUNCH)
    assert interrupted(path, [outcome(0), outcome(1)]) is None
    assert not path.exists()


def test_no_note_and_one_that_cannot_be_read_are_no_launch(tmp_path: Path) -> None:
    path = tmp_path / "in_flight.json"
    assert interrupted(path, []) is None
    path.write_text("{")
    assert interrupted(path, []) is None
    clear(path)
    assert not path.exists()
