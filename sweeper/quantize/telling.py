"""How far the making of a checkpoint is, in one line at a time."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

EVERY_S = 3.0
"""A line more often than this is read by nobody."""

OWN = "quantize"
"""The worker's name for what the whole trial phase is called: the reader has just been told."""


class Telling:
    """Turns a worker's events into lines for a reader.

    Args:
        tell: gets the lines.
        clock: seconds on a monotonic clock.
    """

    def __init__(
        self, tell: Callable[[str], None], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._tell = tell
        self._clock = clock
        self._phase = ""
        self._began_s = clock()
        self._began_at = self._done = 0
        self._told_s = float("-inf")

    def __call__(self, event: Mapping[str, Any]) -> None:
        """Take an event in; what is not understood says nothing."""
        if event.get("event") == "phase":
            name = str(event.get("name", ""))
            self._phase = "" if name == OWN else name
            self._begin(0)
            self._say(self._phase, always=True)
        elif event.get("event") == "progress":
            done, of = event.get("done"), event.get("of")
            if isinstance(done, int) and isinstance(of, int) and 0 <= done <= of and of > 0:
                self._progress(done, of, str(event.get("what", "")))

    def _progress(self, done: int, of: int, what: str) -> None:
        if done < self._done:
            self._begin(done)  # something new is counted
        self._done = done
        counted = f"{what} {done} of {of}".strip()
        said = ": ".join(part for part in (self._phase, counted) if part)
        self._say(said + self._left(done, of), always=done == of)

    def _begin(self, done: int) -> None:
        self._began_s, self._began_at, self._done = self._clock(), done, done

    def _left(self, done: int, of: int) -> str:
        """Time left at the pace so far; nothing before there is one."""
        gone = done - self._began_at
        if gone <= 0 or done == of:
            return ""
        left_s = (self._clock() - self._began_s) / gone * (of - done)
        shown = f"{left_s / 60:.0f} min" if left_s >= 90 else f"{left_s:.0f} s"
        return f", about {shown} left"

    def _say(self, text: str, *, always: bool) -> None:
        now = self._clock()
        if text and (always or now - self._told_s >= EVERY_S):
            self._told_s = now
            self._tell(text)
