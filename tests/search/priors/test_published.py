from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from sweeper.config.schema import SpaceConfig
from sweeper.hardware.facts import HardwareFacts
from sweeper.search.priors.published import RECIPES, PublishedPrior, fitted, make
from sweeper.space.canonical import canonical
from sweeper.space.model import Scalar
from sweeper.space.parse import parse_space
from tests.search.priors.made import H200, config, setup

SPACE = {
    "max_num_seqs": {"choices": ["default", 64, 384]},
    "max_num_batched_tokens": {"choices": ["default", 2048, 8192, 16384]},
    "kv_cache_dtype": {"choices": ["auto", "fp8"]},
}


def test_every_recipe_names_where_it_is_published() -> None:
    assert all(recipe.source.startswith("https://") for recipe in RECIPES)
    assert len({tuple(recipe.deployment.items()) for recipe in RECIPES}) == len(RECIPES)


def test_a_recipe_takes_what_the_space_offers() -> None:
    space = parse_space(SpaceConfig(name="s", parameters=SPACE))
    asked: dict[str, Scalar] = {
        "max_num_seqs": 512,
        "kv_cache_dtype": "fp8",
        "quantization": "fp8_per_tensor",
    }
    found = fitted(space, asked)
    assert found == {"max_num_seqs": 384, "kv_cache_dtype": "fp8"}, "the nearest number, by ratio"
    assert canonical(space, found) == found


def test_a_number_that_is_far_off_and_a_word_that_is_not_there_are_left_out() -> None:
    space = parse_space(SpaceConfig(name="s", parameters=SPACE))
    assert fitted(space, {"max_num_seqs": 4, "quantization": "fp8_per_tensor"}) == {}
    assert fitted(space, {"kv_cache_dtype": "auto"}) == {}, "what says nothing is no recipe"


def test_recipes_hold_for_an_engine_a_kind_of_hardware_and_from_a_capability_on(
    tmp_path: Path,
) -> None:
    cfg = config(space=SPACE)
    hopper = make(setup(tmp_path, cfg), print)
    assert isinstance(hopper, PublishedPrior)
    ampere = make(setup(tmp_path, cfg, hardware=replace(H200, compute_capability=(8, 0))), print)
    assert isinstance(ampere, PublishedPrior)
    assert any("kv_cache_dtype" in raw for raw in hopper.suggestions())
    assert not any("kv_cache_dtype" in raw for raw in ampere.suggestions())
    cpu = HardwareFacts("cpu", "CPU", 1, memory_gib=16.0)
    assert "no published recipe" in str(make(setup(tmp_path, cfg, hardware=cpu), print))


def test_it_predicts_nothing(tmp_path: Path) -> None:
    prior = make(setup(tmp_path, config(space=SPACE)), print)
    assert isinstance(prior, PublishedPrior)
    assert prior.predict([{}, {}]) == [None, None]
