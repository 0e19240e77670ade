"""Settings of the replay engine alone: `engine.options`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from sweeper.engine.replay.silicon import LEVEL, PARAMETER
from sweeper.errors import ConfigError


@dataclass(frozen=True)
class ReplayOptions:
    """Which part of a table is searched, and what it costs where the table does not say.

    Attributes:
        group: of a CSV of measured rows: the rows that may be compared, by their name.
        batch: of such a CSV: ``level`` makes a batch a load level, ``parameter`` a deployment of
            its own.
        baseline: parameters of the deployment to begin with and compare with; empty takes what the
            table's source began with, or else the most usual one.
        quality: whether quality that the table has is searched for too.
        start_s: seconds of a start that the table does not tell.
    """

    group: str = ""
    batch: str = LEVEL
    baseline: dict[str, Any] = field(default_factory=dict)
    quality: bool = True
    start_s: float = 60.0

    def __post_init__(self) -> None:
        if self.batch not in {LEVEL, PARAMETER}:
            raise ConfigError(
                f"engine.options.batch={self.batch} is not known",
                f"use {LEVEL} (a load level) or {PARAMETER} (a parameter of the deployment)",
            )
        if self.start_s < 0:
            raise ConfigError(
                f"engine.options.start_s={self.start_s} is negative", "give seconds, 0 or more"
            )
