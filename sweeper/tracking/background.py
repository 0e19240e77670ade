"""Work that may hang, in a thread of its own, and a patience that is spent only on its hanging.

A mirror that computes is worth waiting for: while it works, nothing is measured beside it. One that
waits for a server, a lock or a dead disk is not. Both look the same on a clock on the wall, so the
kernel is asked how long the thread was neither running nor waiting for a processor.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

POLL_S = 0.05


@dataclass(frozen=True)
class Waited:
    """How a wait ended: is all work done, and for how many seconds did the thread just hang."""

    done: bool
    blocked_s: float


class Worker:
    """Calls `work` in a daemon thread, once for every `wake` at least, never twice at a time.

    Args:
        work: does all that is to be done at the moment it is called; must not raise.
        name: of the thread.
    """

    def __init__(self, work: Callable[[], None], name: str) -> None:
        self._work = work
        self._name = name
        self._changed = threading.Condition()
        self._wanted = False
        self._busy = False
        self._ticks = 0
        self._thread: threading.Thread | None = None

    def wake(self) -> None:
        """Ask for the work to be done. Returns at once."""
        with self._changed:
            self._wanted = True
            if self._thread is None:
                # A daemon: a server that never answers must not keep the process from ending.
                self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
                self._thread.start()
            self._changed.notify_all()

    def tick(self) -> None:
        """Called by the work itself: something was answered, it does not hang."""
        self._ticks += 1

    def wait(self, *, blocked_s: float, quiet_s: float | None = None) -> Waited:
        """Wait until all work is done, or until it has hung for too long.

        Args:
            blocked_s: seconds of hanging to put up with in all.
            quiet_s: seconds of hanging without a `tick` to put up with; None means no such limit.
        """
        if self._thread is None:
            return Waited(True, 0.0)
        hung_s, quiet, ticks = 0.0, 0.0, self._ticks
        wall_s, used_s = time.monotonic(), _used_s(self._thread)
        while not self._is_done(POLL_S):
            now_s, now_used_s = time.monotonic(), _used_s(self._thread)
            step_s = max(0.0, (now_s - wall_s) - (now_used_s - used_s))
            wall_s, used_s = now_s, now_used_s
            hung_s += step_s
            quiet = quiet + step_s if self._ticks == ticks else 0.0
            ticks = self._ticks
            if hung_s >= blocked_s or (quiet_s is not None and quiet >= quiet_s):
                return Waited(self._is_done(0.0), hung_s)
        return Waited(True, hung_s)

    def _is_done(self, within_s: float) -> bool:
        with self._changed:
            return self._changed.wait_for(self._is_idle, within_s)

    def _is_idle(self) -> bool:
        alive = self._thread is not None and self._thread.is_alive()
        return not alive or not (self._wanted or self._busy)

    def _run(self) -> None:
        while True:
            with self._changed:
                self._busy = False
                self._changed.notify_all()
                self._changed.wait_for(lambda: self._wanted)
                self._wanted, self._busy = False, True
            self._work()


def _used_s(thread: threading.Thread) -> float:
    """Seconds that a thread of this process ran or waited for a processor; 0 if nobody counts."""
    try:
        text = Path(f"/proc/self/task/{thread.native_id}/schedstat").read_text(encoding="ascii")
        ran_ns, queued_ns = text.split()[:2]
    except (OSError, ValueError):
        return 0.0
    return (int(ran_ns) + int(queued_ns)) / 1e9
