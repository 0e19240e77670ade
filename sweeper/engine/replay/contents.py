"""What a reader makes of a file, and the fields that all readers check alike. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from sweeper.config.schema import SpaceConfig
from sweeper.engine.replay.rows import Deployment, Level, Row, key_of


@dataclass(frozen=True)
class Contents:
    """A file's rows and what it says of all of them.

    Attributes:
        rows: a row a deployment, in the order of the file.
        source: where the figures come from, a few words.
        is_predicted: True if a model gave them and no launch did.
        model: name of the model, None if not said.
        hardware: likewise.
        input_tokens, output_tokens: lengths of the requests, None if not said.
        engine: name and version of the engine that was measured or modelled, None if not said.
        space: as the source states it; None derives it from the rows.
        notes: what was left out, one line each.
    """

    rows: tuple[Row, ...]
    source: str
    is_predicted: bool = False
    model: str | None = None
    hardware: str | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    engine: str | None = None
    space: SpaceConfig | None = None
    notes: tuple[str, ...] = field(default_factory=tuple)


def finite(metrics: Mapping[str, Any]) -> dict[str, float]:
    """The metrics that are numbers; whatever else stands there was not measured."""
    return {
        name: float(value)
        for name, value in metrics.items()
        if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    }


def rows_of_points(points: Iterable[tuple[Deployment, Level, int]]) -> tuple[Row, ...]:
    """Rows from single points; of two points of a deployment at the same level the later one holds.

    Args:
        points: deployment, level and the devices it occupies, in the order of the file.
    """
    levels: dict[frozenset[tuple[str, Any]], dict[Any, Level]] = {}
    first: dict[frozenset[tuple[str, Any]], tuple[Deployment, int]] = {}
    for deployment, level, devices in points:
        key = key_of(deployment)
        first.setdefault(key, (deployment, devices))
        levels.setdefault(key, {})[level.key] = level
    return tuple(
        Row(deployment, levels=in_order(levels[key].values()), devices=devices)
        for key, (deployment, devices) in first.items()
    )


def in_order(levels: Iterable[Level]) -> tuple[Level, ...]:
    """From light load to heavy."""
    return tuple(sorted(levels, key=lambda one: (one.concurrency or 0, one.rate_per_s or 0.0)))
