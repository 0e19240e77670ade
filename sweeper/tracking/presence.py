"""Does somebody work on a study now? Asked by whoever only looks, also from another machine.

lock held                                   RUNNING    by whom, the lock file says
not held, ended.json is there               ENDED      how, it says
not held, no ended.json, no trial           NEW        nothing was measured yet
not held, no ended.json, trials             KILLED     the tuner did not live to write it; ENDED
                                                       where the lock file names none
locks stay on each machine of this disk,
and the lock file names another machine     UNKNOWN    it may run there
the lock file cannot be opened              UNKNOWN    another user's
"""

from __future__ import annotations

import os
import socket
import time
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from sweeper.tracking.ending import ending_of
from sweeper.tracking.lock import StudyLock, is_suspended
from sweeper.tracking.paths import StudyPaths
from sweeper.tracking.shared_disk import locks_stay_here


class State(StrEnum):
    """Where the life of a study stands."""

    NEW = "new"
    RUNNING = "running"
    ENDED = "ended"
    KILLED = "killed"
    UNKNOWN = "cannot tell"


@dataclass(frozen=True)
class Presence:
    """Who works on a study, or how the last run ended.

    Attributes:
        state: see `State`.
        said: one line: who runs it, or how it ended.
        host: the tuner's machine, empty if it is not known.
        pid: the tuner's process, None if it is not known.
        since: when it began, ISO 8601, empty if it is not known.
        suspended: whether the tuner was stopped by a signal; only seen on its own machine.
        alive_s: seconds since something of the study last changed, None if nothing tells. By the
            clock of this machine; that of a shared disk may differ.
    """

    state: State
    said: str
    host: str = ""
    pid: int | None = None
    since: str = ""
    suspended: bool = False
    alive_s: float | None = None

    @property
    def runs(self) -> bool:
        """Whether a tuner is known to work on it."""
        return self.state is State.RUNNING


def presence(paths: StudyPaths, trial: int | None = None) -> Presence:
    """Whether somebody works on a study.

    Args:
        paths: the study's paths.
        trial: the one under way, whose log is a sign of life.
    """
    lock = StudyLock(paths.lock)
    owner = lock.owner()
    alive_s = _alive_s(paths, trial)
    if lock.is_held():
        return _running(owner, alive_s)
    if (doubt := _doubt(paths, owner)) is not None:
        return Presence(State.UNKNOWN, doubt, **_owner(owner), alive_s=alive_s)
    if paths.ended_json.exists():
        return Presence(State.ENDED, ending_of(paths).reason, alive_s=alive_s)
    if not paths.trials_jsonl.exists():
        return Presence(State.NEW, "nothing was measured yet", alive_s=alive_s)
    if not owner:
        # Sweeper 0.1 left no note of its end.
        return Presence(State.ENDED, "nobody works on it", alive_s=alive_s)
    said = f"{_who(owner)} was killed; resume goes on"
    return Presence(State.KILLED, said, **_owner(owner), alive_s=alive_s)


def _doubt(paths: StudyPaths, owner: dict[str, Any]) -> str | None:
    """Why a lock that is not held proves nothing; None if it does."""
    if paths.lock.exists() and not os.access(paths.lock, os.R_OK):
        return f"{paths.lock} belongs to another user and cannot be opened"
    if str(owner.get("host") or "") in {"", socket.gethostname()}:
        return None
    if locks_stay_here(paths.lock):
        return f"the lock file names {_who(owner)}, and locks on this disk stay on each machine"
    return None


def _running(owner: dict[str, Any], alive_s: float | None) -> Presence:
    suspended = owner.get("host") == socket.gethostname() and is_suspended(owner.get("pid"))
    said = _who(owner) if owner else "a process that did not say who it is"
    return Presence(
        State.RUNNING,
        said + (", which is suspended (kill -CONT lets it go on)" if suspended else ""),
        **_owner(owner),
        suspended=suspended,
        alive_s=alive_s,
    )


def _owner(owner: dict[str, Any]) -> dict[str, Any]:
    pid = owner.get("pid")
    return {
        "host": str(owner.get("host") or ""),
        "pid": pid if isinstance(pid, int) else None,
        "since": str(owner.get("since") or ""),
    }


def _who(owner: dict[str, Any]) -> str:
    since = str(owner.get("since") or "")
    return f"process {owner.get('pid')} on {owner.get('host')}" + (
        f" since {_local(since)}" if since else ""
    )


def _local(since: str) -> str:
    """A time as a clock on the wall shows it; as it is, if it is none."""
    try:
        return datetime.fromisoformat(since).astimezone().strftime("%Y-%m-%d %H:%M:%S")
    except ValueError:
        return since


def _alive_s(paths: StudyPaths, trial: int | None) -> float | None:
    """How long ago the newest of the files changed that a running study writes."""
    files = [paths.now_json, paths.trials_jsonl, paths.in_flight_json]
    if trial is not None:
        files.append(paths.server_log(trial))
    times = []
    for file in files:
        try:
            times.append(file.stat().st_mtime)
        except OSError:
            continue
    return max(0.0, time.time() - max(times)) if times else None
