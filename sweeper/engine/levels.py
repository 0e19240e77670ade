"""A load level as a question to an engine that is not driven, and its answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class LevelAsk:
    """A load level that an engine answers with figures instead of being driven.

    Attributes:
        kind: of the level, as `sweeper.load.level.LoadLevel` has it.
        concurrency: streams of a closed loop, None otherwise.
        rate_per_s: of an open loop, None otherwise.
        requests: how many would be sent.
        input_tokens, output_tokens: mean lengths of a request.
        seed: of whatever the answer leaves to chance.
        arrivals: of an open loop: constant | poisson; empty otherwise.
        shared_tokens: of the prompt, in the mean, that a prefix cache has seen before.
    """

    kind: str
    concurrency: int | None
    rate_per_s: float | None
    requests: int
    input_tokens: float
    output_tokens: float
    seed: int
    arrivals: str = ""
    shared_tokens: float = 0.0


@dataclass(frozen=True)
class LevelAnswer:
    """Figures of a load level. What the source does not know is absent.

    Attributes:
        metrics: by this product's names and in their units.
        n: requests they stand for.
        virtual_s: what driving the level would have taken.
        reasons: why the point is not valid; empty if it is.
    """

    metrics: Mapping[str, float]
    n: int
    virtual_s: float
    reasons: tuple[str, ...] = ()
