"""Open loop: requests go out when they are due, whether or not earlier ones have been answered.

Latencies count from the moment a request was due, so a late client or a full server never hides
waiting time (no coordinated omission). Later turns of a conversation are due when their user has
read the answer, and count against the same limit of requests.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

from sweeper.load.arrivals import arrival_times
from sweeper.load.client import Outgoing
from sweeper.load.level import REPLAY, LoadLevel
from sweeper.load.phase import Phase
from sweeper.load.workload.item import WorkItem


async def run_scheduled(phase: Phase, level: LoadLevel, stream: str) -> None:
    """Drive a phase by the clock until its limit is reached or its items end.

    Args:
        phase: whose items are sent.
        level: of a kind in `sweeper.load.level.SCHEDULED`.
        stream: name of the level, seeds the arrivals.
    """
    due = _recorded(phase, level) if level.kind == REPLAY else _drawn(phase, level, stream)
    await phase.run([asyncio.create_task(_dispatch(phase, due))])


def _drawn(phase: Phase, level: LoadLevel, stream: str) -> Iterator[tuple[float, WorkItem]]:
    return zip(arrival_times(level, stream), phase.items, strict=False)


def _recorded(phase: Phase, level: LoadLevel) -> Iterator[tuple[float, WorkItem]]:
    for item in phase.items:
        if item.at_s is None:
            raise ValueError("this workload has no recorded arrivals to replay")
        yield item.at_s / level.time_scale, item


async def _dispatch(phase: Phase, due: Iterator[tuple[float, WorkItem]]) -> None:
    async with asyncio.TaskGroup() as group:
        for at_s, item in due:
            if phase.exhausted or phase.guard.ended:
                break
            request = phase.prepare(item, at_s)  # encoded before it is due, not when it is due
            await asyncio.sleep(max(0.0, at_s - phase.now_s))
            if not phase.first_sends_s:
                phase.first_sends_s.append(phase.now_s)
            group.create_task(_converse(phase, request))


async def _converse(phase: Phase, request: Outgoing) -> None:
    following = await phase.send(request)
    while following is not None and not phase.exhausted:
        following = await phase.send(phase.prepare(following, phase.now_s))
