"""Who works on a study, seen by somebody who only looks."""

from __future__ import annotations

import fcntl
import json
import os
import socket
from pathlib import Path

import pytest

from sweeper.tracking import lock
from sweeper.tracking import presence as module
from sweeper.tracking.ending import Ending, note
from sweeper.tracking.lock import StudyLock
from sweeper.tracking.paths import StudyPaths
from sweeper.tracking.presence import State, presence


@pytest.fixture
def paths(tmp_path: Path) -> StudyPaths:
    made = StudyPaths(tmp_path, "s")
    made.create()
    return made


def owned_by(paths: StudyPaths, host: str, pid: int = 77) -> None:
    owner = {"pid": pid, "host": host, "since": "2026-11-30T10:00:00+00:00"}
    paths.lock.write_text(json.dumps(owner))


def test_nobody_has_begun(paths: StudyPaths) -> None:
    assert presence(paths).state is State.NEW


def test_a_tuner_works_on_it(paths: StudyPaths) -> None:
    paths.trials_jsonl.touch()
    with StudyLock(paths.lock):
        seen = presence(paths)
    assert seen.runs
    assert (seen.host, seen.pid) == (socket.gethostname(), os.getpid())
    assert f"process {os.getpid()} on {socket.gethostname()} since 2" in seen.said
    assert seen.alive_s is not None
    assert seen.alive_s < 60


def test_a_lock_held_from_another_machine(paths: StudyPaths) -> None:
    """Where locks reach over the disk, only the kernel's word counts, and the file says who."""
    owned_by(paths, "far", 77)
    descriptor = os.open(paths.lock, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        seen = presence(paths)
    finally:
        os.close(descriptor)
    assert (seen.state, seen.host, seen.pid) == (State.RUNNING, "far", 77)


def test_it_ended(paths: StudyPaths) -> None:
    paths.trials_jsonl.touch()
    paths.lock.touch()
    note(paths.ended_json, Ending("FINISHED", "budget used up"))
    seen = presence(paths)
    assert (seen.state, seen.said) == (State.ENDED, "budget used up")


def test_its_tuner_was_killed(paths: StudyPaths) -> None:
    paths.trials_jsonl.touch()
    owned_by(paths, socket.gethostname())
    seen = presence(paths)
    assert (seen.state, seen.pid) == (State.KILLED, 77)
    assert "resume goes on" in seen.said


def test_locks_that_stay_on_another_machine_tell_nothing(
    paths: StudyPaths, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths.trials_jsonl.touch()
    owned_by(paths, "far")
    assert presence(paths).state is State.KILLED
    monkeypatch.setattr(module, "locks_stay_here", lambda path: True)
    seen = presence(paths)
    assert (seen.state, seen.host) == (State.UNKNOWN, "far")


def test_a_study_of_an_earlier_version(paths: StudyPaths) -> None:
    paths.trials_jsonl.touch()
    assert presence(paths).state is State.ENDED


def test_the_log_of_the_trial_is_a_sign_of_life(paths: StudyPaths) -> None:
    paths.trials_jsonl.touch()
    os.utime(paths.trials_jsonl, (1, 1))
    log = paths.server_log(3)
    log.parent.mkdir(parents=True)
    log.touch()
    old, new = presence(paths).alive_s, presence(paths, 3).alive_s
    assert old is not None
    assert new is not None
    assert new < 60 < old


def test_to_look_does_not_keep_a_tuner_out(
    paths: StudyPaths, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who looks in the very instant holds the lock, and has let it go when it is tried again."""
    onlooker = os.open(paths.lock, os.O_RDONLY | os.O_CREAT)
    fcntl.flock(onlooker, fcntl.LOCK_SH)
    monkeypatch.setattr(lock.time, "sleep", lambda _: os.close(onlooker))
    with StudyLock(paths.lock):
        assert presence(paths).runs


def test_many_may_look_at_once(paths: StudyPaths) -> None:
    onlooker = os.open(paths.lock, os.O_RDONLY | os.O_CREAT)
    fcntl.flock(onlooker, fcntl.LOCK_SH)
    try:
        assert not StudyLock(paths.lock).is_held()
    finally:
        os.close(onlooker)
