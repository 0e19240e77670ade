"""Points of an engine that answers a load level with figures instead of being driven.

Nothing is sent to such an engine, so there is no client to judge, no window and no interval: what
its source does not know stays absent, as everywhere.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import astuple
from functools import lru_cache
from itertools import islice

from sweeper.config.schema import WorkloadConfig
from sweeper.engine.levels import LevelAnswer, LevelAsk
from sweeper.load.level import LoadLevel
from sweeper.load.prompts import Bank
from sweeper.load.workload import registry
from sweeper.load.workload.estimate import estimated_tokens
from sweeper.load.workload.item import WorkItem, Workload
from sweeper.trial.outcome import Point

_SAMPLED_REQUESTS = 512
"""Of a workload whose lengths stand in a file: enough for a mean within a few per cent."""

_LENGTHS_ALONE: Bank = [list(range(256))]
"""Tokens that stand for any: nothing is sent, and every length is exact."""


def unsent_workload(workload: WorkloadConfig, seed: int) -> Workload:
    """The workload as it would be sent, for its conditions and lengths.

    Raises:
        ConfigError: a file that cannot be read.
    """
    return registry.create(workload, _LENGTHS_ALONE, seed)


def level_ask(level: LoadLevel, workload: WorkloadConfig, seed: int) -> LevelAsk:
    """What an engine is asked of a level.

    Args:
        level: of the ladder.
        workload: its mean lengths are all of it that such an engine is told.
        seed: of whatever the answer leaves to chance.
    """
    input_tokens, output_tokens = mean_lengths(workload)
    return LevelAsk(
        kind=level.kind,
        concurrency=level.concurrency,
        rate_per_s=level.rate_per_s,
        requests=level.requests,
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        seed=seed,
        arrivals=level.arrivals,
        shared_tokens=shared_tokens(workload),
    )


def answered_point(level: LoadLevel, answer: LevelAnswer, predicted: Mapping[str, float]) -> Point:
    """The point that an answer makes.

    Args:
        level: as it was asked.
        answer: of the engine.
        predicted: the speed of light at the answer's own batch and lengths.

    Returns:
        A point without intervals. It is invalid if the answer says so, or has no finite figure; a
        figure that is not finite is left out.
    """
    metrics = {name: value for name, value in answer.metrics.items() if math.isfinite(value)}
    reasons = list(answer.reasons)
    if not metrics and not reasons:
        reasons = ["the engine has no figures of this level"]
    return Point(
        load={**level.asked(), "repeats": 1},
        metrics=metrics,
        intervals={},
        n=answer.n,
        valid=not reasons,
        reasons=reasons,
        predicted=dict(predicted),
    )


def mean_lengths(workload: WorkloadConfig) -> tuple[float, float]:
    """Mean (input, output) tokens of a request; a whole conversation's requests count each.

    Raises:
        ConfigError: a file that cannot be read.
    """
    turns = workload.turns
    if workload.kind == "conversation":
        # Turn t reads all that was said before: t questions and t - 1 answers.
        read = workload.input_tokens * (turns + 1) + workload.output_tokens * (turns - 1)
        return read / 2, float(workload.output_tokens)
    if workload.kind in {"synthetic", "shared_prefix"}:
        return float(workload.input_tokens), float(workload.output_tokens)
    return _sampled_lengths(astuple(workload))


def shared_tokens(workload: WorkloadConfig) -> float:
    """Of a prompt, in the mean, that was sent before: a common prefix, or what was said so far."""
    if workload.kind == "shared_prefix":
        return float(workload.prefix_tokens)
    if workload.kind == "conversation":
        return (workload.input_tokens + workload.output_tokens) * (workload.turns - 1) / 2
    return 0.0


@lru_cache(maxsize=8)
def _sampled_lengths(fields: tuple[object, ...]) -> tuple[float, float]:
    """Of a workload that has its requests from a file, by the fields of its configuration."""
    workload = unsent_workload(WorkloadConfig(*fields), seed=0)  # type: ignore[arg-type]
    items = list(islice(workload.items("lengths"), _SAMPLED_REQUESTS))
    read = math.fsum(_input_tokens(item) for item in items)
    written = math.fsum(item.output_tokens for item in items)
    return read / len(items), written / len(items)


def _input_tokens(item: WorkItem) -> int:
    """Of a prompt; one that is text is estimated, since nobody has tokenized it."""
    if isinstance(item.prompt, str):
        return estimated_tokens(item.prompt)
    return item.input_tokens or len(item.prompt)
