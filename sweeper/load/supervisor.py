"""Ends a load level as soon as going on is of no use, instead of waiting for every timeout."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from sweeper.load.client import Cut
from sweeper.load.records import RequestOutcome, RequestRecord

_LOOK_EVERY_S = 0.2
_MIN_FAILURES_IN_A_ROW = 3


@dataclass
class Supervisor:
    """Watches a level while its workers run.

    It ends the level when the server's process is gone, when it hangs, when the level's deadline
    has passed, or when every stream has failed in a row (connections refused, errors only): one
    whole round without a success.

    Args:
        concurrency: streams of the level.
        deadline_s: `time.perf_counter` at which the level is over, finished or not.
        timeout_s: the same as a duration, for the message.
        is_alive: False once the server's process is gone; None if nobody can tell.
        hung: returns, once the server hangs, how that was seen; None leaves it to the deadlines.

    Attributes:
        has_hung: True if that is why the level was ended.
    """

    concurrency: int
    deadline_s: float
    timeout_s: float
    is_alive: Callable[[], bool] | None = None
    hung: Callable[[], Awaitable[str]] | None = None
    cut: Cut = field(default_factory=Cut)
    has_hung: bool = False
    _tasks: list[asyncio.Task[None]] = field(default_factory=list)
    _failures_in_a_row: int = 0

    @property
    def ended(self) -> bool:
        return self.cut.reason is not None

    async def run(self, tasks: list[asyncio.Task[None]]) -> None:
        """Wait for `tasks`, watching; cancels them if the level must end."""
        self._tasks = tasks
        watches = [asyncio.create_task(self._watch())]
        if self.hung is not None:
            watches.append(asyncio.create_task(self._watch_hang(self.hung)))
        try:
            results = await asyncio.gather(*tasks, return_exceptions=True)
        finally:
            for task in (*watches, *tasks):
                task.cancel()
        for result in results:
            if isinstance(result, Exception):
                raise result
        for watch in watches:
            if watch.done() and not watch.cancelled() and (error := watch.exception()) is not None:
                raise error

    def note(self, record: RequestRecord) -> None:
        """Count `record`; ends the level after one whole round of failures."""
        if record.outcome is RequestOutcome.OK:
            self._failures_in_a_row = 0
            return
        self._failures_in_a_row += 1
        if self._failures_in_a_row >= max(self.concurrency, _MIN_FAILURES_IN_A_ROW):
            died = self.is_alive is not None and not self.is_alive()
            reason = f"{self._failures_in_a_row} requests in a row failed: {record.error}"
            self._end("the server died" if died else reason, record.outcome)

    async def _watch(self) -> None:
        try:
            while not self.ended:
                if self.is_alive is not None and not self.is_alive():
                    self._end("the server died")
                elif time.perf_counter() >= self.deadline_s:
                    reason = f"the level was not done within {self.timeout_s:g} s"
                    self._end(reason, RequestOutcome.TIMEOUT)
                await asyncio.sleep(_LOOK_EVERY_S)
        except Exception:
            self._cancel()  # is_alive itself is broken: do not leave the workers waiting
            raise

    async def _watch_hang(self, hung: Callable[[], Awaitable[str]]) -> None:
        try:
            reason = await hung()
        except Exception:
            self._cancel()  # the watch itself is broken: likewise
            raise
        if not self.ended:
            self.has_hung = True
            self._end(f"the server hangs: {reason}", RequestOutcome.TIMEOUT)

    def _end(self, reason: str, outcome: RequestOutcome = RequestOutcome.ERROR) -> None:
        if not self.ended:
            self.cut.reason, self.cut.outcome = reason, outcome
            self._cancel()

    def _cancel(self) -> None:
        current = asyncio.current_task()
        for task in self._tasks:
            if task is not current:
                task.cancel()
