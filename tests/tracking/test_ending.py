from __future__ import annotations

import os
from pathlib import Path

import pytest

from sweeper.tracking import ending
from sweeper.tracking.ending import Ending, ending_of, status_of
from sweeper.tracking.paths import StudyPaths


@pytest.fixture
def paths(tmp_path: Path) -> StudyPaths:
    paths = StudyPaths(tmp_path, "s")
    paths.create()
    paths.trials_jsonl.write_text("")
    return paths


@pytest.mark.parametrize(
    ("ended", "status"),
    [
        ("budget of 3 launches used", "FINISHED"),
        ("stopped", "KILLED"),
        ("stopped: KeyboardInterrupt", "KILLED"),
        ("stopped: JournalError", "FAILED"),
    ],
)
def test_the_status_follows_from_the_reason(ended: str, status: str) -> None:
    assert status_of(ended) == status


def test_what_was_noted_is_read_back_until_the_next_run(paths: StudyPaths) -> None:
    noted = Ending("FAILED", "stopped: StudyError")
    ending.note(paths.ended_json, noted)
    assert ending_of(paths) == noted
    ending.clear(paths.ended_json)
    ending.clear(paths.ended_json)
    assert ending_of(paths).status == "KILLED"


def test_a_study_of_an_earlier_version_ended_if_it_wrote_its_report(paths: StudyPaths) -> None:
    paths.report_html.write_text("")
    os.utime(paths.trials_jsonl, (1, 1))
    assert ending_of(paths).status == "FINISHED"
    os.utime(paths.report_html, (0, 0))
    assert ending_of(paths).status == "KILLED"


@pytest.mark.parametrize("content", ["", "{", "[]", '{"status": 1, "odd": 2}'])
def test_a_damaged_note_is_no_note(paths: StudyPaths, content: str) -> None:
    paths.ended_json.write_text(content)
    assert ending_of(paths).status == "KILLED"


def test_a_full_disk_is_no_reason_to_fail(
    paths: StudyPaths, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    ending.note(paths.ended_json, Ending("FINISHED", "x"))
    assert not paths.ended_json.exists()
