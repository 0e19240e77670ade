"""Faults of the `load` group are found before anything starts, and name the way out."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from sweeper.config import load_checks
from sweeper.config.checks import check
from sweeper.config.location import options
from sweeper.config.schema import GoodputConfig, LoadConfig, ObjectiveConfig, SweeperConfig
from sweeper.errors import ConfigError
from sweeper.load import level

LIMITS = GoodputConfig(ttft_ms=500.0)
CLOSED: dict[str, Any] = {}
OPEN = {"kind": "open", "rate_per_s": [0.5, 2.0]}
RAMP = {"kind": "ramp", "rate_per_s": [4.0], "start_rate_per_s": 0.5}
FOUND = {"levels": "found", "concurrency": [1]}
SLO = {"kind": "open", "levels": "slo", "rate_per_s": [1.0], "goodput": LIMITS}


def config(load: dict[str, Any], **objective: Any) -> SweeperConfig:
    return SweeperConfig(load=LoadConfig(**load), objective=ObjectiveConfig(**objective))


def refused(cfg: SweeperConfig) -> str:
    with pytest.raises(ConfigError) as caught:
        check(cfg)
    assert caught.value.remedy
    return caught.value.message


@pytest.mark.parametrize(
    ("load", "told"),
    [
        ({"kind": "spiral"}, "load.kind=spiral"),
        ({"levels": "guessed"}, "load.levels=guessed"),
        ({**OPEN, "arrivals": "weibull"}, "load.arrivals=weibull"),
        ({"concurrency": []}, "load.concurrency is empty"),
        ({"concurrency": [0, 1]}, "below 1"),
        ({"concurrency": [4, 1]}, "increasing"),
        ({"kind": "open"}, "load.rate_per_s is empty"),
        ({**OPEN, "rate_per_s": [2.0, 1.0]}, "load.rate_per_s=[2.0, 1.0] is not strictly"),
        ({**OPEN, "rate_per_s": [0.0, 1.0]}, "not above 0"),
        ({**OPEN, "rate_per_s": [1.0, 1.0]}, "increasing"),
        ({**FOUND, "concurrency": []}, "empty"),
        ({**SLO, "rate_per_s": []}, "empty"),
        ({**OPEN, "arrivals": "gamma", "burstiness": 0.0}, "load.burstiness=0"),
        ({**OPEN, "burstiness": 0.5}, "no effect on load.arrivals=poisson"),
        ({"arrivals": "gamma"}, "no effect on load.kind=closed"),
        ({**RAMP, "start_rate_per_s": 0.0}, "start_rate_per_s=0"),
        ({**RAMP, "start_rate_per_s": 4.0}, "not below the end of the ramp"),
        ({"repeats": 0}, "load.repeats=0"),
        ({**OPEN, "duration_s": 0.0}, "load.duration_s=0"),
        ({**OPEN, "duration_s": 1800.0}, "broken off"),
        ({"min_requests": 0}, "load.min_requests=0"),
        ({"warmup_max_rounds": 0}, "warmup_max_rounds"),
        ({"warmup_tolerance_share": 1.0}, "not a share"),
        ({"gauges_every_s": -1.0}, "gauges_every_s"),
        ({"min_growth_share": 0.0}, "min_growth_share"),
        ({"rate_tolerance_share": 1.5}, "rate_tolerance_share"),
        ({**FOUND, "max_levels": 2}, "no room"),
        ({**SLO, "goodput": GoodputConfig()}, "no limit"),
        ({"levels": "slo"}, "request rate"),
        ({**RAMP, "levels": "found"}, "cannot search with load.kind=ramp"),
        ({**SLO, "goodput": replace(LIMITS, share=0.0)}, "load.goodput.share=0"),
        ({**SLO, "goodput": replace(LIMITS, e2e_ms=-5.0)}, "load.goodput.e2e_ms=-5"),
    ],
)
def test_faults_of_the_load_are_refused(load: dict[str, Any], told: str) -> None:
    assert told in refused(config(load))


@pytest.mark.parametrize(
    ("load", "objective", "told"),
    [
        (CLOSED, {"concurrency": 7}, "objective.concurrency=7"),
        (OPEN, {"concurrency": 4}, "no level of load.kind=open"),
        (FOUND, {"concurrency": 1}, "load.levels=found"),
        (OPEN, {"kind": "metrics", "metrics": ["+goodput_share"]}, "no limit says"),
    ],
)
def test_objective_must_name_a_level_and_metrics_that_will_be_there(
    load: dict[str, Any], objective: dict[str, Any], told: str
) -> None:
    assert told in refused(config(load, **objective))


@pytest.mark.parametrize(
    ("load", "objective"),
    [
        (CLOSED, {"concurrency": 8}),
        (OPEN, {}),
        ({**OPEN, "arrivals": "gamma", "burstiness": 4.0}, {}),
        (RAMP, {}),
        (FOUND, {}),
        ({**OPEN, "levels": "found"}, {}),
        (SLO, {}),
        ({**SLO, "goodput": replace(LIMITS, share=1.0)}, {}),
        ({**OPEN, "goodput": LIMITS}, {"kind": "metrics", "metrics": ["+goodput_share"]}),
    ],
)
def test_good_loads_pass(load: dict[str, Any], objective: dict[str, Any]) -> None:
    check(config(load, **objective))


def test_kinds_are_those_that_can_be_driven() -> None:
    assert set(load_checks.KINDS) == set(level.KINDS) == set(load_checks.LADDERS)


def test_every_kind_of_load_is_shipped() -> None:
    wanted = {"open", "constant", "burst", "ramp", "replay", "found", "slo", "closed", "batch"}
    assert wanted <= set(options("load"))
