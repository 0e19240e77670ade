"""Whether a server under load still gets on: tokens that come, or counters of its own that move.

A first token may take long on a server that is not hung: prompts wait in a queue, or are long.
Meanwhile its counters move, or its queue does. So silence is a hang only where it means something:

    counters are told          nothing of them moves, and no token comes
    none are told              no token comes on a stream that had begun
    told before, now silence   as if they stood still
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sweeper.load.address import ServerAddress
from sweeper.load.server_metrics import scrape
from sweeper.load.stream import StreamState

if TYPE_CHECKING:
    import aiohttp

MAX_ASK_EVERY_S = 10.0
ASKS_IN_A_HANG = 6


@dataclass
class Stillness:
    """Judges silence. Pure: told what is seen, and when.

    Attributes:
        timeout_s: how long silence may last.
        since_s: since when nothing has moved, None before the first look.
        counters: as told last; None if they have never been told.
    """

    timeout_s: float
    since_s: float | None = None
    counters: Mapping[str, float] | None = None
    _tokens: tuple[int, int] = (0, 0)

    def saw_tokens(self, answered: int, chunks: int, now_s: float) -> None:
        """Requests answered, and pieces of text received of those in flight."""
        if self.since_s is None or (answered, chunks) != self._tokens:
            self._tokens, self.since_s = (answered, chunks), now_s

    def saw_counters(self, counters: Mapping[str, float], now_s: float) -> None:
        """What the server counts now; empty if it told nothing."""
        if counters and counters != self.counters:
            self.counters, self.since_s = dict(counters), now_s

    def silent_s(self, now_s: float) -> float:
        """Seconds since anything moved."""
        return 0.0 if self.since_s is None else now_s - self.since_s

    def is_hang(self, now_s: float, *, any_begun: bool) -> bool:
        """Whether this silence is a hang.

        Args:
            now_s: on the clock of the other calls.
            any_begun: True if a request in flight has had its first token.
        """
        means_something = self.counters is not None or any_begun
        return means_something and self.silent_s(now_s) >= self.timeout_s


@dataclass
class HangWatch:
    """Watches the requests in flight of a level, and asks the server when they are silent.

    Args:
        timeout_s: see `Stillness`.
        in_flight: answers that are being read.
        answered: how many requests have ended well so far.
    """

    timeout_s: float
    in_flight: Collection[StreamState]
    answered: Callable[[], int]
    _still: Stillness = field(init=False)

    def __post_init__(self) -> None:
        self._still = Stillness(self.timeout_s)

    async def until_hung(self, session: aiohttp.ClientSession, server: ServerAddress) -> str:
        """Return once the server hangs: what was seen, one line. Otherwise run until cancelled."""
        self._still.since_s = None
        every_s = min(MAX_ASK_EVERY_S, self.timeout_s / ASKS_IN_A_HANG)
        while True:
            await asyncio.sleep(every_s)
            now_s = time.monotonic()
            if not self.in_flight:
                self._still.since_s = now_s  # nothing is asked of it, so nothing is to be seen
                continue
            chunks = sum(answer.chunks for answer in self.in_flight)
            self._still.saw_tokens(self.answered(), chunks, now_s)
            if self._still.silent_s(now_s) < every_s:
                continue
            self._still.saw_counters(await scrape(session, server), time.monotonic())
            begun = any(answer.first_token_s is not None for answer in self.in_flight)
            now_s = time.monotonic()
            if self._still.is_hang(now_s, any_begun=begun):
                return (
                    f"no token for {self._still.silent_s(now_s):.0f} s with "
                    f"{len(self.in_flight)} requests running"
                )
