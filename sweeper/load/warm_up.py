"""Requests before the measured ones: rounds at the level's own load until they take equally long.

The first requests of a server find cold caches, kernels not yet compiled and pools not yet
grown. Warm-up prompts are its own, so that they warm nothing that the measured ones could use.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sweeper.load.closed import run_closed
from sweeper.load.phase import Phase
from sweeper.load.records import RequestOutcome, WarmUp


async def warm_up(
    phase_of: Callable[[int], Phase],
    *,
    streams: int,
    requests: int,
    max_rounds: int,
    tolerance_share: float,
) -> WarmUp:
    """Drive rounds until two in a row agree, or there have been enough.

    Args:
        phase_of: makes the phase of a round (0, 1, ...), with prompts of its own.
        streams: in flight.
        requests: of a round; 0 for no warm-up at all.
        max_rounds: 1 drives one round and does not look at it.
        tolerance_share: how far two rounds may differ.
    """
    paces: list[float] = []
    sent = 0
    for number in range(max_rounds if requests else 0):
        phase = phase_of(number)
        await run_closed(phase, streams)
        sent += len(phase.records)
        if phase.guard.ended:
            break
        paces.append(_seconds_per_token(phase))
        if is_stable(paces, tolerance_share):
            break
    stable = is_stable(paces, tolerance_share) if max_rounds > 1 else None
    return WarmUp(sent, len(paces), stable)


def is_stable(paces: Sequence[float], tolerance_share: float) -> bool:
    """True if the last two of `paces` (any unit) differ by at most that share of the larger."""
    if len(paces) < 2:
        return False
    before, last = paces[-2:]
    return abs(last - before) <= tolerance_share * max(last, before)


def _seconds_per_token(phase: Phase) -> float:
    """By token, because rounds of a workload with mixed lengths have different amounts of work."""
    written = sum(
        record.output_tokens or 0 for record in phase.records if record.outcome is RequestOutcome.OK
    )
    return phase.duration_s / max(1, written)
