"""Deadlines grow with the start's, and what is given stays."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from sweeper.config import deadlines
from sweeper.config.checks import check
from sweeper.config.schema import SweeperConfig
from sweeper.errors import ConfigError


@pytest.mark.parametrize("of", [deadlines.stall_s, deadlines.hang_s, deadlines.quality_s])
def test_what_is_given_stays_and_what_is_not_grows(
    of: Callable[[float | None, float], float],
) -> None:
    assert of(7.0, 1e6) == 7.0
    assert of(None, 1.0) == of(None, 30.0) >= 120
    assert of(None, 1e5) > of(None, 1e4)


def test_a_checkpoint_is_given_time_by_the_size_of_its_model() -> None:
    hours = [deadlines.quantize_s(None, size) / 3600 for size in (0.0, 0.27e9, 15e9)]
    assert hours[0] == 1.0
    assert 1.0 < hours[1] < 1.2
    assert 4.0 < hours[2] < 8.0
    assert deadlines.quantize_s(60.0, 15e9) == 60.0


def test_a_short_start_ends_by_its_own_deadline_and_not_by_a_stall() -> None:
    assert deadlines.stall_s(None, 30.0) > 30.0
    assert deadlines.stall_s(None, 3000.0) < 3000.0


@pytest.mark.parametrize(
    ("group", "key", "value"),
    [
        ("engine", "stall_timeout_s", 0.0),
        ("engine", "hang_timeout_s", -1.0),
        ("engine", "memory_patience_s", 0.0),
        ("engine", "device_wait_s", -1.0),
        ("quality", "timeout_s", 0.0),
    ],
)
def test_a_deadline_that_is_none_is_refused(group: str, key: str, value: float) -> None:
    cfg = SweeperConfig()
    setattr(getattr(cfg, group), key, value)
    with pytest.raises(ConfigError, match=f"{group}.{key}"):
        check(cfg)
