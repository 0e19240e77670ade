"""What a running study is doing now, kept in a file."""

from __future__ import annotations

from pathlib import Path

from sweeper.tracking.bulletin import Bulletin, Now, read
from sweeper.trial.progress import (
    LevelDone,
    Note,
    PhaseChanged,
    PhaseProgress,
    TrialEnded,
    TrialStarted,
)
from tests.factories import outcome


class Clock:
    """A clock that is set by hand."""

    now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


def started(tmp_path: Path) -> tuple[Bulletin, Clock, Path]:
    clock, path = Clock(), tmp_path / "now.json"
    bulletin = Bulletin(path, clock)
    bulletin.observe(TrialStarted(3, "search", {"max_num_seqs": 64}, 2, 20))
    return bulletin, clock, path


def test_a_trial_from_start_to_end(tmp_path: Path) -> None:
    bulletin, clock, path = started(tmp_path)
    assert read(path) == [
        Now(3, "search", {"max_num_seqs": 64}, 3, 20, 1000.0, "plan", "", 1000.0, [])
    ]
    clock.now_s = 1030.0
    bulletin.observe(PhaseChanged(3, "load", "concurrency 8"))
    bulletin.observe(LevelDone(3, "concurrency 8", {}))
    clock.now_s = 1040.0
    bulletin.observe(PhaseProgress(3, "load", "12 of 64"))
    (now,) = read(path)
    assert (now.phase, now.detail, now.phase_since_s) == ("load", "12 of 64", 1030.0)
    assert now.levels_done == ["concurrency 8"]
    bulletin.observe(TrialEnded(outcome(3)))
    assert read(path) == []
    bulletin.clear()
    assert not path.exists()
    bulletin.clear()


def test_a_phase_of_no_trial_and_a_note_change_nothing(tmp_path: Path) -> None:
    bulletin, _, path = started(tmp_path)
    before = path.stat().st_mtime_ns
    bulletin.observe(PhaseChanged(9, "load"))
    bulletin.observe(Note("hello"))
    assert path.stat().st_mtime_ns == before


def test_trials_side_by_side(tmp_path: Path) -> None:
    bulletin, _, path = started(tmp_path)
    bulletin.observe(TrialStarted(4, "search", {}, 2, None))
    assert [now.number for now in read(path)] == [3, 4]


def test_a_secret_is_not_written(tmp_path: Path) -> None:
    bulletin, _, path = started(tmp_path)
    bulletin.observe(PhaseChanged(3, "start", "token hf_abcdefghijklmnopqrstuvwxyz012345"))
    assert "hf_abc" not in path.read_text()


def test_a_disk_that_refuses_stops_nothing(tmp_path: Path) -> None:
    Bulletin(tmp_path / "gone" / "now.json").observe(TrialStarted(0, "baseline", {}, 0, 1))
    assert read(tmp_path / "gone" / "now.json") == []


def test_a_file_that_is_none_of_ours(tmp_path: Path) -> None:
    path = tmp_path / "now.json"
    for text in ("{", "[{}]", '{"number": 1}', "null", '"x"'):
        path.write_text(text)
        assert read(path) == []
