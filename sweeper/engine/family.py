"""All processes of one launch, however they were started, and how they are ended.

A process belongs to the family if it is known from before, descends from a member, is in the
session that the launch opened, carries the launch's token in its environment, or writes to the
launch's log. Any one of these may fail: a child of a dead leader has lost its descent, a daemon has
left the session, and a worker that renames itself has overwritten its environment. Together they
find what the launch left.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from sweeper.engine import procfs
from sweeper.engine.procfs import Identity, Process

KILL_PATIENCE_S = 10.0
TRACKER_GRACE_S = 2.0
_POLL_S = 0.05


class Family:
    """The processes of one launch.

    Args:
        token: the launch's mark in its processes' environment.
        leader: the process that was started, leader of a session of its own; None if it is not
            known (the tuner died before it could note it).
        known: members seen earlier.
        log_path: the log that its processes write to, which nobody else does; None if not known.
    """

    def __init__(
        self,
        token: str,
        leader: Identity | None = None,
        known: Iterable[Identity] = (),
        log_path: Path | None = None,
    ) -> None:
        self.token = token
        self.log_path = log_path.resolve() if log_path is not None else None
        self.leader = leader
        self.known: set[Identity] = set(known)
        if leader is not None:
            self.known.add(leader)

    def living(self, *, thorough: bool = True) -> set[Identity]:
        """Members that run now; each is remembered.

        Args:
            thorough: also look at the environment and the output of every process of the machine,
                which finds daemons that were never seen as descendants.
        """
        processes = procfs.table()
        members = self._known_now(processes)
        members |= procfs.descendants(processes, members)
        members |= self._same_session(processes, members)
        if thorough:
            carriers = {pid for pid in processes if pid not in members and self._marked(pid)}
            members |= carriers | procfs.descendants(processes, carriers)
        members -= procfs.ancestors(processes, os.getpid())
        self.known |= {processes[pid].identity for pid in members}
        return {processes[pid].identity for pid in members if not processes[pid].is_zombie}

    def end(self, term_patience_s: float) -> set[Identity]:
        """TERM, wait, KILL, until nothing is left.

        Args:
            term_patience_s: how long the family may take to end by itself.

        Returns:
            Members that outlived even KILL (stuck in the kernel); empty in all ordinary cases.
        """
        try:
            _send(self.living(), signal.SIGTERM)
            self._wait_gone(term_patience_s)
        finally:
            # Also on a second Ctrl-C during the wait: nothing may be left behind, and a third one
            # waits until that is done.
            with uninterrupted():
                left = self._kill()
        return left

    def pids(self) -> set[int]:
        """Pids of all members ever seen, but for those that name another process by now."""
        found = {member: procfs.read(member.pid) for member in self.known}
        return {
            member.pid
            for member, process in found.items()
            if process is None or process.identity == member
        }

    def _kill(self) -> set[Identity]:
        def kill_others(members: set[Identity]) -> None:
            _send({m for m in members if not procfs.is_resource_tracker(m.pid)}, signal.SIGKILL)

        # The tracker ends by itself when the others are gone, and takes their shared memory along.
        if self._wait_gone(TRACKER_GRACE_S, kill_others, stop_when=_only_trackers):
            self._wait_gone(TRACKER_GRACE_S)
        return self._wait_gone(KILL_PATIENCE_S, lambda members: _send(members, signal.SIGKILL))

    def _wait_gone(
        self,
        patience_s: float,
        act: Callable[[set[Identity]], None] | None = None,
        stop_when: Callable[[set[Identity]], bool] | None = None,
    ) -> set[Identity]:
        deadline = time.monotonic() + patience_s
        while members := self.living():
            if act is not None:
                act(members)
            if time.monotonic() >= deadline or (stop_when is not None and stop_when(members)):
                return members
            time.sleep(_POLL_S)
        return set()

    def _marked(self, pid: int) -> bool:
        if procfs.launch_token(pid) == self.token:
            return True
        return self.log_path is not None and str(self.log_path) in procfs.outputs(pid)

    def _known_now(self, processes: dict[int, Process]) -> set[int]:
        return {
            identity.pid
            for identity in self.known
            if identity.pid in processes and processes[identity.pid].identity == identity
        }

    def _same_session(self, processes: dict[int, Process], members: set[int]) -> set[int]:
        """Processes of the launch's session, if a certain member proves that it is still the same.

        The kernel does not reuse a session's number while one of its processes lives.
        """
        if self.leader is None:
            return set()
        session = self.leader.pid
        if not any(processes[pid].session == session for pid in members):
            return set()
        return {pid for pid, process in processes.items() if process.session == session}


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Hold back Ctrl-C and requests to end while something short and bounded is finished."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[tuple[int, FrameType | None]] = []
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
    before = {number: signal.getsignal(number) for number in numbers}
    held = {number: handler for number, handler in before.items() if callable(handler)}
    for held_back in held:
        signal.signal(held_back, lambda *told: came.append(told))
    try:
        yield
    finally:
        for held_back, handler in held.items():
            signal.signal(held_back, handler)
        for number, frame in came[:1]:
            held[signal.Signals(number)](number, frame)


def _only_trackers(members: set[Identity]) -> bool:
    return all(procfs.is_resource_tracker(member.pid) for member in members)


def _send(members: set[Identity], number: signal.Signals) -> None:
    for member in members:
        if procfs.is_living(member):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(member.pid, number)
