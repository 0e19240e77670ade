"""Settings of the simulated engine (`engine.options`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sweeper.engine.options import read_options
from sweeper.errors import ConfigError
from sweeper.estimate.simulator.ask import MEASURED, TABLES


@dataclass(frozen=True)
class SimulateOptions:
    """What a prediction assumes.

    Attributes:
        tables: measured: only operators that were timed; with_gaps: estimates where none was.
        ngram_acceptance: chance that a draft token of n-gram speculation is accepted after the one
            before it, 0 to 1. It depends on the text, so that nothing predicts it; None searches
            no speculation.
        start_s: what a start costs on the virtual clock, in seconds. An assumption: only budgets
            in minutes or money go by it.
    """

    tables: str = MEASURED
    ngram_acceptance: float | None = None
    start_s: float = 60.0


def simulate_options(options: Mapping[str, Any]) -> SimulateOptions:
    """Read `engine.options` of the simulated engine. Raises ConfigError for what is wrong."""
    read = read_options(SimulateOptions, options)
    if read.tables not in TABLES:
        raise ConfigError(
            f"engine.options.tables={read.tables!r} is not known",
            f"use one of: {', '.join(TABLES)}",
        )
    rate = read.ngram_acceptance
    if rate is not None and (
        isinstance(rate, bool) or not isinstance(rate, int | float) or not 0.0 <= rate <= 1.0
    ):
        raise ConfigError(
            f"engine.options.ngram_acceptance is {rate!r}, which is no share",
            "give a number between 0 and 1: of draft tokens, those that are accepted",
        )
    if read.start_s < 0:
        raise ConfigError(
            f"engine.options.start_s={read.start_s} is negative", "give seconds, 0 or more"
        )
    return read
