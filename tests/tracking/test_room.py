"""Room on the disk before a launch, the reserve, and lines that go elsewhere."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from sweeper.errors import JournalError, StudyError
from sweeper.search import in_flight
from sweeper.search.in_flight import InFlight
from sweeper.tracking import room
from sweeper.tracking.journal import Journal
from sweeper.tracking.rescue import Mark, Rescue, default_folders
from tests.factories import outcome

LAUNCH = InFlight(0, 1, "baseline", {})


@pytest.fixture
def study(tmp_path: Path) -> Path:
    folder = tmp_path / "s"
    folder.mkdir()
    return folder


def journal(study: Path, *places: Path, identity: str = "i") -> Journal:
    rescue = Rescue(study, identity, places or [study.parent / "rescued"])
    return Journal(study / "trials.jsonl", reserve=study / ".reserve", rescue=rescue)


def refusing(monkeypatch: pytest.MonkeyPatch, number: int, *, after_bytes: int = 0) -> None:
    """Every write into a journal fails, perhaps after a part of it was written."""

    def write(self: Journal, data: bytes) -> None:
        if after_bytes:
            with self.path.open("ab") as handle:
                handle.write(data[:after_bytes])
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(Journal, "_write", write)


def test_a_launch_needs_room_and_makes_the_reserve(study: Path) -> None:
    in_flight.note(study / "in_flight.json", LAUNCH)
    reserve = (study / ".reserve").stat()
    assert reserve.st_size == room.RESERVE_BYTES
    assert reserve.st_blocks * 512 >= room.RESERVE_BYTES
    room.give_back(study / ".reserve")
    assert not (study / ".reserve").exists()
    room.give_back(study / ".reserve")


@pytest.mark.parametrize(
    ("free", "said"), [({"f_bavail": 1}, "free, 64 needed"), ({"f_favail": 0}, "no more files")]
)
def test_a_full_disk_is_refused_before_the_launch(
    study: Path, monkeypatch: pytest.MonkeyPatch, free: dict[str, int], said: str
) -> None:
    disk = {"f_bavail": 1 << 30, "f_frsize": 4096, "f_files": 9, "f_favail": 9, **free}
    monkeypatch.setattr(os, "statvfs", lambda _: type("Disk", (), disk))
    with pytest.raises(StudyError, match=said) as caught:
        in_flight.note(study / "in_flight.json", LAUNCH)
    assert "mlflow-artifacts" in caught.value.remedy
    assert not (study / "in_flight.json").exists()


@pytest.mark.parametrize("number", [errno.EDQUOT, errno.EROFS, errno.EIO, errno.EACCES])
def test_a_folder_that_takes_nothing_is_refused_before_the_launch(
    study: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def refuse(*_: Any) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "posix_fallocate", refuse)
    with pytest.raises(StudyError, match=r"nothing more is launched"):
        in_flight.note(study / "in_flight.json", LAUNCH)


def test_a_folder_that_is_gone_is_refused_before_the_launch(study: Path) -> None:
    study.rmdir()
    with pytest.raises(StudyError, match="is gone"):
        in_flight.note(study / "in_flight.json", LAUNCH)
    assert not study.exists()


@pytest.mark.parametrize("after_bytes", [0, 40])
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EROFS])
def test_a_refused_line_is_kept_elsewhere_and_taken_up(
    study: Path, monkeypatch: pytest.MonkeyPatch, number: int, after_bytes: int
) -> None:
    first, second = outcome(0), outcome(1)
    journal(study).append(first)
    with monkeypatch.context() as patch:
        refusing(patch, number, after_bytes=after_bytes)
        broken = journal(study)
        assert broken.read() == [first]
        with pytest.raises(JournalError, match=r"trial 1 was measured and is kept in"):
            broken.append(second)
    again = journal(study)
    assert again.take_up() == [second]
    assert again.read() == [first, second]
    assert again.take_up() == []
    assert list((study.parent / "rescued").iterdir()) == []


def test_the_reserve_makes_room_for_the_line(study: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    original, reserve = Journal._write, study / ".reserve"

    def write(self: Journal, data: bytes) -> None:
        if reserve.exists():
            raise OSError(errno.ENOSPC, "No space left on device")
        original(self, data)

    room.secure_room(reserve)
    monkeypatch.setattr(Journal, "_write", write)
    journal(study).append(outcome(0))
    assert journal(study).read() == [outcome(0)]
    assert not reserve.exists()


@pytest.mark.parametrize("other", ["identity", "journal", "place"])
def test_a_rescued_line_of_another_study_is_left_where_it_is(
    study: Path, monkeypatch: pytest.MonkeyPatch, other: str
) -> None:
    journal(study).append(outcome(0))
    with monkeypatch.context() as patch:
        refusing(patch, errno.EIO)
        broken = journal(study)
        broken.read()
        with pytest.raises(JournalError):
            broken.append(outcome(1))
    if other == "journal":
        (study / "trials.jsonl").unlink()
        journal(study).append(outcome(0, agreement=0.5))
    if other == "place":
        study.rename(study.with_name("moved"))
        study = study.with_name("moved")
    late = journal(study, identity="another" if other == "identity" else "i")
    assert late.take_up() == []
    assert len(late.read()) == 1
    assert len(list((study.parent / "rescued").iterdir())) == 1


def test_a_journal_that_vanished_or_was_replaced_gets_no_line(study: Path) -> None:
    running = journal(study)
    running.append(outcome(0))
    running.path.unlink()
    with pytest.raises(JournalError, match="not the file that this study has written"):
        running.append(outcome(1))
    assert not running.path.exists()
    running.path.parent.rmdir()
    with pytest.raises(JournalError, match="kept in"):
        running.append(outcome(2))


def test_a_line_goes_to_the_first_place_that_takes_it(
    study: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (study.parent / "file").write_text("")
    bad, good = study.parent / "file" / "below", study.parent / "good"
    refusing(monkeypatch, errno.EIO)
    with pytest.raises(JournalError, match=f"kept in {good}"):
        journal(study, bad, good).append(outcome(0))
    with pytest.raises(JournalError, match=r"nor anywhere else .*trial 0 is lost"):
        journal(study, bad).append(outcome(0))


def test_a_mark_knows_its_journal() -> None:
    mark = Mark.of(b"one\n")
    assert mark.is_start_of(b"one\n")
    assert mark.is_start_of(b"one\ntwo\n")
    assert not mark.is_start_of(b"one")
    assert not mark.is_start_of(b"two\none\n")
    assert Mark.of(b"").is_start_of(b"anything")


def test_damaged_rescue_files_are_passed_over(study: Path) -> None:
    rescue = Rescue(study, "i", [study.parent])
    rescue.paths[0].write_bytes(b'{"study": 1}\n\xff\n')
    assert rescue.lines() == []


def test_rescued_lines_go_to_the_users_own_folders(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SWEEPER_CACHE_DIR", "/somewhere")
    first, second = default_folders()
    assert first == Path("/somewhere/rescued")
    assert str(os.getuid()) in str(second)


FULL = """
import json, os, sys
from pathlib import Path
from sweeper.errors import JournalError
from sweeper.tracking import room
from sweeper.tracking.journal import Journal
from sweeper.tracking.rescue import Rescue
from tests.factories import outcome
disk, elsewhere = Path(sys.argv[1]), Path(sys.argv[2])
room.MIN_FREE_BYTES = 0
journal = Journal(disk / "trials.jsonl", reserve=disk / ".reserve",
                  rescue=Rescue(disk, "i", [elsewhere]))
room.secure_room(disk / ".reserve")
with (disk / "foreign").open("wb", buffering=0) as foreign:
    try:
        while True:
            foreign.write(bytes(4096))
    except OSError:
        pass
journal.append(outcome(0, evidence="x" * 100_000))
said = []
for number in range(1, 40):
    try:
        journal.append(outcome(number, evidence="x" * 100_000))
    except JournalError as error:
        said.append(error.message)
        break
journal.path.with_name("foreign").unlink()
taken = journal.take_up()
print(json.dumps([number, said, [o.number for o in taken], len(journal.read())]))
"""


@pytest.mark.skipif(os.getuid() != 0, reason="only root may mount a small disk")
def test_a_disk_that_is_really_full(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c",
         'mount -t tmpfs -o size=3m none "$1" && exec "$0" -c "$2" "$1" "$3"',
         sys.executable, str(disk), FULL, str(tmp_path / "elsewhere")],
        capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[2])},
    )  # fmt: skip
    if "mount:" in done.stderr or "unshare" in done.stderr:
        pytest.skip("mounting is not allowed here")
    assert done.returncode == 0, done.stderr
    number, said, taken, lines = json.loads(done.stdout)
    assert number > 1, "the reserve made room for some lines"
    assert "No space left on device" in said[0]
    assert taken == [number]
    assert lines == number + 1
