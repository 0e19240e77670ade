"""Studies whose best were launched again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sweeper.trial.outcome import Point, TrialOutcome
from sweeper.verdicts import Verdict
from tests.factories import outcome, point


def again(
    number: int, of: TrialOutcome, block: int, points: Sequence[Point] = (), **fields: Any
) -> TrialOutcome:
    """A confirming launch of a trial's deployment."""
    return outcome(
        number,
        kind="confirm",
        deployment=of.deployment,
        points=list(points),
        agreement=None,
        repeats=of.number,
        manifest={"engine": {"name": "vllm"}, "confirmation": {"block": block}},
        **fields,
    )


def confirmed(
    searched: Sequence[TrialOutcome],
    figures: Mapping[int, Sequence[float | Verdict]],
    *,
    level: int = 8,
    latency: float = 1000.0,
) -> list[TrialOutcome]:
    """A study and its confirmation, block by block.

    Args:
        searched: trials of the search.
        figures: trial → throughput of each of its launches, or how one ended.
        level: streams of all of them.
        latency: E2E P95 at a throughput of 100, in ms.
    """
    by_number = {one.number: one for one in searched}
    number, made = max(by_number), list(searched)
    for block in range(max(map(len, figures.values()))):
        for trial, values in figures.items():
            if block >= len(values):
                continue
            number, value = number + 1, values[block]
            if isinstance(value, Verdict):
                made.append(again(number, by_number[trial], block + 1, verdict=value))
                continue
            driven = point(level, throughput=value, e2e_p95_ms=latency * 100 / value)
            made.append(again(number, by_number[trial], block + 1, [driven]))
    return made


def searched(*throughputs: float, level: int = 8, latency: float = 1000.0) -> list[TrialOutcome]:
    """Baseline and others, each measured once at one load."""
    return [
        outcome(
            number,
            deployment={"max_num_seqs": number} if number else {},
            points=[point(level, throughput=value, e2e_p95_ms=latency * 100 / value)],
        )
        for number, value in enumerate(throughputs)
    ]
