"""What is watched while a level runs: the server's gauges, and the client's own punctuality."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sweeper.load.address import ServerAddress
from sweeper.load.records import Gauges
from sweeper.load.server_metrics import scrape_gauges

if TYPE_CHECKING:
    import aiohttp

_LAG_EVERY_S = 0.02
# A shorter watch says nothing: among a few dozen wake-ups the 95th percentile is one bad moment.
MIN_WATCH_S = 2.0


@dataclass
class Watch:
    """Looks at gauges and lag side by side with a phase; see `run`.

    Args:
        session: for `/metrics`.
        server: whose gauges.
        every_s: between two looks at the gauges; 0 never looks.
    """

    session: aiohttp.ClientSession
    server: ServerAddress
    every_s: float
    gauges: list[Gauges] = field(default_factory=list)
    _lags_s: list[float] = field(default_factory=list)
    _watched_s: float = 0.0

    @property
    def lag_p95_s(self) -> float | None:
        """How late the event loop woke up, 95th percentile; None if it was not watched for long."""
        if self._watched_s < MIN_WATCH_S:
            return None
        ordered = sorted(self._lags_s)
        return ordered[min(len(ordered) - 1, int(0.95 * len(ordered)))]

    def start(self, epoch_s: float) -> list[asyncio.Task[None]]:
        """Tasks that run until they are cancelled. Times count from `epoch_s`."""
        tasks = [asyncio.create_task(self._watch_lag())]
        if self.every_s > 0:
            tasks.append(asyncio.create_task(self._watch_gauges(epoch_s)))
        return tasks

    async def _watch_lag(self) -> None:
        started_s = time.perf_counter()
        while True:
            due_s = time.perf_counter() + _LAG_EVERY_S
            await asyncio.sleep(_LAG_EVERY_S)
            now_s = time.perf_counter()
            self._lags_s.append(max(0.0, now_s - due_s))
            self._watched_s = now_s - started_s

    async def _watch_gauges(self, epoch_s: float) -> None:
        while True:
            await asyncio.sleep(self.every_s)
            values = await scrape_gauges(self.session, self.server)
            if not values:
                return  # a server that tells nothing now will not tell anything later
            self.gauges.append(Gauges(time.perf_counter() - epoch_s, values))
