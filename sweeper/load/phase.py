"""Requests driven to their end, whatever decides when they are sent."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from sweeper.load.client import Client, Outgoing
from sweeper.load.decoding import Decoding
from sweeper.load.records import RequestOutcome, RequestRecord
from sweeper.load.supervisor import Supervisor
from sweeper.load.workload.item import WorkItem

Progress = Callable[[int, int], None]
TextSink = Callable[[int, WorkItem, str], None]


@dataclass
class Phase:
    """One run of requests: the warm-up's rounds, or what is measured.

    Args:
        client, guard, decoding: shared by all phases of a level.
        items: what is sent, in this order.
        limit: requests to send at most, later turns of conversations counted.
        on_record: called with each record as it comes.
        on_text: called with (index, item, output text); None lets no text be kept.

    Attributes:
        sent: requests begun.
        records: those ended, in the order of their ends.
        first_sends_s: when each stream sent its first request.
        first_idle_s: when the first stream found nothing left to send, None if none did.
        duration_s, cpu_s: of the phase, once it is over.
    """

    client: Client
    guard: Supervisor
    decoding: Decoding
    items: Iterator[WorkItem]
    limit: int
    on_record: Callable[[RequestRecord], None] | None = None
    on_text: TextSink | None = None
    epoch_s: float = field(default_factory=time.perf_counter)
    sent: int = 0
    records: list[RequestRecord] = field(default_factory=list)
    first_sends_s: list[float] = field(default_factory=list)
    first_idle_s: float | None = None
    duration_s: float = 0.0
    cpu_s: float = 0.0

    @property
    def exhausted(self) -> bool:
        return self.sent >= self.limit

    @property
    def now_s(self) -> float:
        return time.perf_counter() - self.epoch_s

    def prepare(self, item: WorkItem, scheduled_s: float | None = None) -> Outgoing:
        """Encode the phase's next request. Counts it as sent."""
        index, self.sent = self.sent, self.sent + 1
        return Outgoing(
            index,
            item,
            self.decoding.body(self.client.model, item),
            self.epoch_s,
            scheduled_s,
            keep_text=item.next_turn is not None or self.on_text is not None,
            streamed=self.decoding.streamed,
        )

    async def send(self, request: Outgoing) -> WorkItem | None:
        """Send it, note how it ended, and answer with the conversation's next turn, if any.

        The user's pause before that turn has passed when it is returned.
        """
        answer = await self.client.complete(request)
        record, item = answer.record, request.item
        self.records.append(record)
        self.guard.note(record)
        if self.on_record is not None:
            self.on_record(record)
        if answer.text is not None and self.on_text is not None:
            self.on_text(record.index, item, answer.text)
        if item.next_turn is None or record.outcome is not RequestOutcome.OK or self.guard.ended:
            return None
        following = item.next_turn(answer.text or "")
        if item.think_time_s > 0:
            await asyncio.sleep(item.think_time_s)
        return following

    async def run(self, tasks: list[asyncio.Task[None]]) -> None:
        """Wait for the tasks that send, and take the time."""
        started_cpu_s = time.process_time()
        await self.guard.run(tasks)
        self.duration_s = self.now_s
        self.cpu_s = time.process_time() - started_cpu_s
