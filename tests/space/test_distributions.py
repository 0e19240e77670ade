"""Raw values to Optuna's coordinates and back, in a real study."""

from __future__ import annotations

from typing import Any

import optuna
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

from sweeper.config.schema import SpaceConfig
from sweeper.space.canonical import active, canonical
from sweeper.space.distributions import decode, encode, flat_distributions, suggest
from sweeper.space.model import Raw, Space
from sweeper.space.parse import parse_space
from tests.space.strategies import spaces, spaces_with_coordinates

optuna.logging.set_verbosity(optuna.logging.ERROR)
SLOW = settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@SLOW
@given(spaces_with_coordinates(), st.booleans())
def test_an_enqueued_deployment_comes_back_as_it_was(
    drawn: tuple[Space, Raw], conditional: bool
) -> None:
    space, raw = drawn
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=1))
    study.enqueue_trial(encode(space, raw))
    asked = suggest(study.ask(), space, conditional=conditional)
    assert asked == (active(space, raw) if conditional else raw)
    assert canonical(space, asked) == canonical(space, raw)


@SLOW
@given(spaces_with_coordinates())
def test_decode_undoes_encode(drawn: tuple[Space, Raw]) -> None:
    space, raw = drawn
    assert decode(space, encode(space, raw)) == raw


@SLOW
@given(spaces(), st.integers(0, 99), st.booleans())
def test_whatever_is_suggested_is_a_deployment(space: Space, seed: int, conditional: bool) -> None:
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=seed))
    trial = study.ask()
    raw = suggest(trial, space, conditional=conditional)
    canonical(space, raw)
    assert decode(space, trial.params) == raw
    if conditional:
        assert set(raw) == set(active(space, raw))
    else:
        assert set(raw) == set(space.names)


@SLOW
@given(spaces())
def test_asking_with_fixed_distributions_is_the_same_as_suggesting(space: Space) -> None:
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=3))
    trial = study.ask(flat_distributions(space))
    assert suggest(trial, space, conditional=False) == decode(space, trial.params)


def one(form: Any, name: str = "flag.x") -> Any:
    return flat_distributions(parse_space(SpaceConfig(parameters={name: form})))[name]


def test_ordered_numbers_become_an_index_and_everything_else_stays_a_category() -> None:
    assert one({"choices": [1, 2, 8], "default": 1}) == IntDistribution(0, 2)
    assert one({"choices": [8, 2, 1], "default": 8}) == IntDistribution(0, 2)
    assert one({"choices": [1, 8, 2], "default": 1}) == CategoricalDistribution((1, 8, 2))
    assert one({"choices": [1, 2]}) == CategoricalDistribution(("default", 1, 2))
    assert one({"choices": [True, False], "default": True}) == CategoricalDistribution(
        (True, False)
    )


def test_ranges_keep_step_and_scale() -> None:
    assert one({"low": 1, "high": 9, "step": 4, "default": 5}) == IntDistribution(1, 9, step=4)
    assert one({"low": 1, "high": 64, "log": True, "default": 8}) == IntDistribution(
        1, 64, log=True
    )
    assert one({"low": 0.1, "high": 0.9, "default": 0.9}) == FloatDistribution(0.1, 0.9)
    assert one({"low": 0.1, "high": 0.95, "step": 0.2, "default": 0.1}) == FloatDistribution(
        0.1, 0.9, step=0.2
    )


def test_a_seed_is_encoded_as_far_as_it_goes_and_fixed_values_are_dropped() -> None:
    space = parse_space(
        SpaceConfig(
            fixed={"enforce_eager": True},
            parameters={"max_num_seqs": {"choices": [1, 8, 64], "default": 64}},
        )
    )
    assert encode(space, {"max_num_seqs": 8, "enforce_eager": True}) == {"max_num_seqs": 1}
