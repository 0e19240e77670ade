"""Closed loop: a fixed number of streams, each sending its next request when the last one ended.

A request is due when its stream is free: scheduled and sent are the same moment. A conversation
stays on its stream until its last turn.
"""

from __future__ import annotations

import asyncio

from sweeper.load.phase import Phase


async def run_closed(phase: Phase, concurrency: int) -> None:
    """Drive a phase with that many streams until its limit is reached or its items end."""
    streams = min(concurrency, phase.limit)
    await phase.run([asyncio.create_task(_stream(phase)) for _ in range(streams)])


async def _stream(phase: Phase) -> None:
    item, sent_any = None, False
    while not phase.exhausted and not phase.guard.ended:
        item = item or next(phase.items, None)
        if item is None:
            break
        request = phase.prepare(item)
        if not sent_any:
            phase.first_sends_s.append(phase.now_s)
            sent_any = True
        item = await phase.send(request)
    if phase.first_idle_s is None and not phase.guard.ended:
        phase.first_idle_s = phase.now_s
