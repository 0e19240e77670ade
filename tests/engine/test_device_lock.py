"""One launch at a time on a device: across processes, in any order, and never after a death."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from sweeper.engine import device_lock
from sweeper.engine.device_lock import DeviceBusyError, DeviceLock, lock_path, owner_of
from sweeper.errors import EngineError

HOLDER = """
import sys, time
from pathlib import Path
from sweeper.engine.device_lock import DeviceLock
DeviceLock(sys.argv[2:], Path(sys.argv[1]), {"study": "theirs"}).acquire(10, print)
print("held", flush=True)
time.sleep(60)
"""


def silent(_: str) -> None: ...


def lock(folder: Path, *devices: str) -> DeviceLock:
    return DeviceLock(devices, folder, {"study": "ours"})


def is_free(folder: Path, *devices: str) -> bool:
    mine = lock(folder, *devices)
    try:
        mine.acquire(0, silent)
    except DeviceBusyError:
        return False
    mine.release()
    return True


@contextmanager
def held_elsewhere(folder: Path, *devices: str) -> Iterator[subprocess.Popen[bytes]]:
    command = [sys.executable, "-c", HOLDER, str(folder), *devices]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        try:
            yield holder
        finally:
            holder.kill()


def test_a_second_tuner_waits_with_a_note_that_names_the_owner(tmp_path: Path) -> None:
    with held_elsewhere(tmp_path, "GPU-b", "GPU-a") as holder:
        told: list[str] = []
        with pytest.raises(DeviceBusyError, match=f"GPU-b is in use by process {holder.pid}"):
            lock(tmp_path, "GPU-c", "GPU-b").acquire(0.3, told.append)
        assert len(told) == 1, "one note, however long the wait"
        assert f"process {holder.pid}, study theirs" in told[0]
        assert is_free(tmp_path, "GPU-c"), "what was taken before is let go"
        holder.kill()
        holder.wait()
        # The kernel drops the lock with its owner.
        lock(tmp_path, "GPU-a", "GPU-b").acquire(30, silent)


def test_overlapping_sets_exclude_each_other_and_others_do_not(tmp_path: Path) -> None:
    mine = lock(tmp_path, "GPU-b", "GPU-a", "GPU-a")
    mine.acquire(0, silent)
    assert not is_free(tmp_path, "GPU-c", "GPU-b")
    assert is_free(tmp_path, "GPU-c", "GPU-d")
    mine.release()
    assert is_free(tmp_path, "GPU-a", "GPU-b")


def test_no_device_takes_no_lock(tmp_path: Path) -> None:
    lock(tmp_path).acquire(0, silent)
    assert list(tmp_path.iterdir()) == []


def test_a_program_that_is_started_does_not_keep_the_lock(tmp_path: Path) -> None:
    mine = lock(tmp_path, "cpu")
    mine.acquire(0, silent)
    command = [sys.executable, "-c", "import time; time.sleep(60)"]
    with subprocess.Popen(command, close_fds=False) as child:
        mine.release()
        # The kernel lets the caller go on a moment before it closes the new program's files.
        deadline = time.monotonic() + 30
        while not is_free(tmp_path, "cpu") and time.monotonic() < deadline:
            time.sleep(0.01)
        assert is_free(tmp_path, "cpu")
        child.kill()


def test_a_lock_file_that_was_removed_is_not_taken_for_the_lock(tmp_path: Path) -> None:
    """Who has opened the old file must not believe that it holds the device."""
    mine = lock(tmp_path, "cpu")
    mine.acquire(0, silent)
    lock_path(tmp_path, "cpu").unlink()
    other = lock(tmp_path, "cpu")
    other.acquire(0, silent)
    mine.release()
    assert not is_free(tmp_path, "cpu")
    other.release()


@pytest.mark.parametrize("kind", ["link", "folder", "second name", "pipe"])
def test_what_is_no_plain_file_of_its_own_is_refused(tmp_path: Path, kind: str) -> None:
    path, victim = lock_path(tmp_path, "cpu"), tmp_path / "victim"
    victim.write_text("mine")
    if kind == "link":
        path.symlink_to(victim)
    elif kind == "folder":
        path.mkdir()
    elif kind == "second name":
        path.hardlink_to(victim)
    else:
        os.mkfifo(path)
    with pytest.raises(EngineError, match="lock file"):
        lock(tmp_path, "cpu").acquire(0, silent)
    assert victim.read_text() == "mine"


def test_all_users_may_lock_the_file_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        lock(tmp_path, "cpu").acquire(0, silent)
    finally:
        os.umask(before)
    assert lock_path(tmp_path, "cpu").stat().st_mode & 0o777 == 0o666


def test_a_name_cannot_leave_the_folder(tmp_path: Path) -> None:
    assert lock_path(tmp_path, "../../etc/passwd").parent == tmp_path


@pytest.mark.parametrize("text", ["", "{", "[]", '{"pid": "x"}', "\x00" * 9000])
def test_an_owner_without_a_readable_note_is_another_process(tmp_path: Path, text: str) -> None:
    path = lock_path(tmp_path, "cpu")
    path.write_text(text)
    assert owner_of(path) == "another process"


def test_a_file_that_is_removed_between_its_opening_and_its_locking_is_opened_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, path, removed = fcntl.flock, lock_path(tmp_path, "cpu"), list[int]()

    def flock(descriptor: int, operation: int) -> None:
        if not removed:
            path.unlink()
            removed.append(descriptor)
        real(descriptor, operation)

    monkeypatch.setattr(device_lock.fcntl, "flock", flock)
    mine = lock(tmp_path, "cpu")
    mine.acquire(5, silent)
    assert not is_free(tmp_path, "cpu"), "the file that others see is the one that is locked"
    mine.release()
