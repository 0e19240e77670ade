"""What a configuration of priors must be."""

from __future__ import annotations

import pytest

from sweeper.config.schema import SweeperConfig
from sweeper.config.search_checks import check_prior
from sweeper.errors import ConfigError


def config(**prior: object) -> SweeperConfig:
    cfg = SweeperConfig()
    for name, value in prior.items():
        setattr(cfg.prior, name, value)
    return cfg


def test_all_kinds_together_are_fine_with_a_study_named() -> None:
    kinds = ["simulator", "studies", "roofline", "published"]
    check_prior(config(kinds=kinds, studies=["studies/x"], hardware="h100_80gb"))
    check_prior(config())


@pytest.mark.parametrize(
    ("prior", "what", "remedy"),
    [
        ({"kinds": ["simulater"]}, "simulater, which is no prior", "did you mean simulator"),
        ({"kinds": ["studies"]}, "names none", "prior.studies="),
        ({"seeds": -1}, "prior.seeds=-1", "order without seeding"),
        ({"predictions": 0}, "prior.predictions=0", "leave the simulator out"),
        ({"kinds": ["roofline"], "hardware": "h200"}, "for the simulator", "prior=simulator"),
    ],
)
def test_a_fault_is_named_with_its_way_out(
    prior: dict[str, object], what: str, remedy: str
) -> None:
    with pytest.raises(ConfigError, match=what) as fault:
        check_prior(config(**prior))
    assert remedy in fault.value.remedy
