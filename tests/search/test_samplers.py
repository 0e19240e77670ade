from __future__ import annotations

from pathlib import Path

import pytest

from sweeper.config.checks import CHOICES
from sweeper.config.schema import SamplerConfig
from sweeper.search.objective import Objective
from sweeper.search.policy.chooser import Ground
from sweeper.search.policy.open import Open
from sweeper.search.samplers import (
    CHOOSERS,
    OF_OPTUNA,
    make_chooser,
    make_sampler,
    sampler_kind,
    startup_trials,
)
from tests.search.policy.toy import SPACE, objective

CONF = Path(__file__).resolve().parents[2] / "conf" / "sampler"


def test_every_kind_that_the_configuration_knows_exists_and_has_its_option() -> None:
    assert sorted(CHOICES["sampler.kind"]) == sorted(["auto", *CHOOSERS, *OF_OPTUNA])
    assert {path.stem for path in CONF.glob("*.yaml")} == set(CHOICES["sampler.kind"])


@pytest.mark.parametrize("kind", CHOICES["sampler.kind"])
def test_a_kind_is_either_a_chooser_or_one_of_optunas(kind: str) -> None:
    cfg = SamplerConfig(kind=kind)
    told: Objective = objective()
    chooser = make_chooser(Ground(SPACE, Open(SPACE, lambda _: []), told, cfg))
    assert (chooser is None) == (sampler_kind(cfg) in OF_OPTUNA)
    name = type(make_sampler(cfg, 1)).__name__
    assert name == {"tpe": "TPESampler", "nsgaii": "NSGAIISampler"}.get(kind, "RandomSampler")


def test_launches_before_a_model_are_the_samplers_own_unless_given() -> None:
    assert startup_trials(SamplerConfig(kind="auto")) == 3
    assert startup_trials(SamplerConfig(kind="tpe")) == 5
    assert startup_trials(SamplerConfig(kind="gp", startup_trials=9)) == 9
