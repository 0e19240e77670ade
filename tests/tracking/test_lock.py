from __future__ import annotations

import errno
import os
import pwd
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from sweeper.errors import ConfigError, StudyError
from sweeper.tracking.lock import StudyLock, exclusive

HOLDER = """
import sys, time
from pathlib import Path
from sweeper.tracking.lock import StudyLock
with StudyLock(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""


def test_second_tuner_is_refused_naming_the_first(tmp_path: Path) -> None:
    path = tmp_path / "study.lock"
    with StudyLock(path):
        with pytest.raises(StudyError, match=f"in use by process {os.getpid()} on") as caught:
            StudyLock(path).__enter__()
        assert "study=NAME" in caught.value.remedy
    with StudyLock(path) as lock:
        assert lock.owner()["pid"] == os.getpid()
    assert StudyLock(path).owner() == {}


def test_lock_of_a_killed_tuner_is_free(tmp_path: Path) -> None:
    path = tmp_path / "study.lock"
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(path)], stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(StudyError, match=f"process {holder.pid}"):
            StudyLock(path).__enter__()
        holder.kill()
        holder.wait()
        with StudyLock(path):
            pass


def test_a_child_does_not_inherit_the_lock(tmp_path: Path) -> None:
    path = tmp_path / "study.lock"
    with StudyLock(path):
        child = subprocess.Popen(["sleep", "30"], close_fds=False)
    try:
        with StudyLock(path):
            pass
    finally:
        child.kill()
        child.wait()


def test_unwritable_folder_is_a_config_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot make the lock file"):
        StudyLock(tmp_path / "absent" / "study.lock").__enter__()


def test_exclusive_waits_for_the_holder(tmp_path: Path) -> None:
    path = tmp_path / "db.lock"
    script = HOLDER.replace("time.sleep(60)", "time.sleep(0.3)")
    with subprocess.Popen(
        [sys.executable, "-c", script, str(path)], stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        start = time.monotonic()
        with exclusive(path):
            waited = time.monotonic() - start
        assert waited > 0.15


def test_a_suspended_holder_is_said_to_be(tmp_path: Path) -> None:
    path = tmp_path / "study.lock"
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(path)], stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        holder.send_signal(signal.SIGSTOP)
        os.waitpid(holder.pid, os.WUNTRACED)
        with pytest.raises(StudyError, match="which is suspended") as caught:
            StudyLock(path).__enter__()
        assert f"kill -CONT {holder.pid}" in caught.value.remedy
        holder.kill()


def test_a_lock_file_of_somebody_else_is_said_to_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "study.lock"
    path.write_text("")

    def refuse(*_: object) -> int:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(os, "open", refuse)
    monkeypatch.setattr(os, "getuid", lambda: path.stat().st_uid + 1)
    owner = pwd.getpwuid(path.stat().st_uid).pw_name
    with pytest.raises(ConfigError, match=f"Permission denied; it belongs to {owner}"):
        StudyLock(path).__enter__()


LEFT = '{"pid": 7, "host": "elsewhere", "since": "2026-01-01T00:00:00+00:00"}'


@pytest.mark.parametrize("stay", [True, False])
def test_what_another_machine_left_is_believed_where_locks_are_shared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stay: bool
) -> None:
    path = tmp_path / "study.lock"
    path.write_text(LEFT)
    monkeypatch.setattr("sweeper.tracking.lock.locks_stay_here", lambda _: stay)
    if not stay:
        with StudyLock(path):
            pass
        return
    for _ in range(2):
        with pytest.raises(StudyError, match="process 7 on elsewhere") as caught:
            StudyLock(path).__enter__()
    assert f"delete {path}" in caught.value.remedy


def test_a_full_disk_does_not_cost_the_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "pwrite", full)
    with StudyLock(tmp_path / "study.lock") as lock:
        assert lock.is_held()
        with pytest.raises(StudyError, match="another process"):
            StudyLock(tmp_path / "study.lock").__enter__()
