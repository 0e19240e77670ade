"""Chosen recipes become choices of `quantization`, and their fields parameters with a condition."""

from __future__ import annotations

from typing import Any

import pytest

from sweeper.config.adjust import adjust
from sweeper.config.compose import compose
from sweeper.config.overrides import Override
from sweeper.config.schema import QuantizeConfig, RecipeConfig, SpaceConfig, SweeperConfig
from sweeper.errors import ConfigError
from sweeper.space.parse import parse_space

AWQ = RecipeConfig("autoawq")
W4A16 = RecipeConfig("llmcompressor", "W4A16")
W8A8 = RecipeConfig("llmcompressor", "W8A8")
BOTH = {"awq": AWQ, "w4a16": W4A16, "w8a8": W8A8}


def adjusted(
    parameters: dict[str, Any],
    recipes: dict[str, RecipeConfig] = BOTH,
    overrides: list[Override] | None = None,
    **space: Any,
) -> SpaceConfig:
    cfg = SweeperConfig(
        space=SpaceConfig(name="s", parameters=parameters, **space),
        quantize=QuantizeConfig(recipes=dict(recipes)),
    )
    adjust(cfg, overrides or [])
    return cfg.space


@pytest.mark.parametrize(
    ("parameters", "choices"),
    [
        ({}, ["none", "awq", "w4a16", "w8a8"]),
        ({"quantization": ["none", "awq"]}, ["none", "awq", "w4a16", "w8a8"]),
        ({"quantization": {"choices": ["none", "int8"]}}, ["none", "int8", "awq", "w4a16", "w8a8"]),
    ],
)
def test_recipes_join_the_choices(parameters: dict[str, Any], choices: list[str]) -> None:
    space = adjusted(parameters)
    assert list(parse_space(space)["quantization"].choices) == choices


def test_a_study_without_recipes_is_left_as_it_is() -> None:
    space = adjusted({"flag": {"x": [1, 2]}, "dtype": ["default", "float16"]}, recipes={})
    assert space.parameters == {"flag": {"x": [1, 2]}, "dtype": ["default", "float16"]}
    assert space.seeds == []


def test_every_recipe_is_tried_early_unless_the_seeds_are_the_users_own() -> None:
    shipped = [{"max_num_seqs": 8}, {"quantization": "awq"}]
    seeds = adjusted({"max_num_seqs": ["default", 8]}, seeds=list(shipped)).seeds
    assert seeds == [*shipped, {"quantization": "w4a16"}, {"quantization": "w8a8"}]
    own = [Override("space.seeds", [], group=False, delete=False, text="")]
    assert adjusted({}, overrides=own).seeds == []


def test_a_fixed_quantization_leaves_no_choice() -> None:
    with pytest.raises(ConfigError, match="leaves no choice") as raised:
        adjusted({}, fixed={"quantization": "none"})
    assert "quantize=none" in raised.value.remedy


def test_a_field_exists_where_a_recipe_has_a_choice_of_it() -> None:
    space = parse_space(
        adjusted(
            {
                "quantize.group_size": [32, 64],
                "quantize": {"bits": {"choices": [4, 8]}, "calibration_samples": [64]},
                "quantize.symmetric": {"choices": [False], "when": {"max_num_seqs": [8]}},
                "max_num_seqs": ["default", 8],
                "quantize.act_order": {"choices": [True], "when": {"quantization": ["w8a8"]}},
            }
        )
    )
    when = {p.name.removeprefix("quantize."): p.when for p in space.parameters if p.when}
    assert when == {
        "group_size": {"quantization": ("awq", "w4a16")},
        "bits": {"quantization": ("w4a16",)},
        "calibration_samples": {"quantization": ("awq", "w4a16", "w8a8")},
        "symmetric": {"quantization": ("w4a16",), "max_num_seqs": (8,)},
        "act_order": {"quantization": ("w8a8",)},
    }
    assert space["quantize.group_size"].choices == ("default", 32, 64)


def test_the_command_line_takes_all_spellings() -> None:
    """One composition each costs much; so every way of writing stands in one."""
    cfg = compose(
        [
            "quantize=[awq,w4a16]",
            "space.parameters.quantize.group_size=[32,64]",
            "space.parameters.quantize.bits.choices=[4,8]",
            "space.parameters.quantize.symmetric={choices:[false]}",
            "space.parameters.quantize.act_order=[true]",
            "~space.parameters.quantize.act_order",
            "quantize.recipes.awq.calibration_samples=64",
            "quantize.recipes.mine.tool=gptqmodel",
            "quantize.recipes.mine.method=gptq",
            "quantize.recipes.whole={tool: engine, method: fp8_per_block}",
            "quantize.recipes.gone={tool: autoawq}",
            "~quantize.recipes.gone",
            "space.seeds=[{quantization:awq,quantize:{group_size:32}}]",
        ]
    )
    space = parse_space(cfg.space)
    assert list(cfg.quantize.recipes) == ["awq", "w4a16", "mine", "whole"]
    assert cfg.quantize.recipes["awq"].calibration_samples == 64
    assert cfg.quantize.recipes["mine"] == RecipeConfig("gptqmodel", "gptq")
    assert space["quantize.group_size"].when == {"quantization": ("awq", "w4a16", "mine")}
    assert space["quantize.bits"].when == {"quantization": ("w4a16", "mine")}
    assert space["quantize.symmetric"].when == {"quantization": ("w4a16",)}
    assert "quantize.act_order" not in space.names
    assert space.seeds == ({"quantization": "awq", "quantize.group_size": 32},)


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("~quantize.recipes.w8a9", "there is nothing to remove"),
        ("quantize.recipes.w8a8=4", "has keys of its own"),
        ("quantize.recipes.mine={tool: autoawq, bit: 4}", "there is no configuration key"),
        ("quantize.recipes.w8a8.methd=x", "no configuration key quantize.recipes.w8a8.methd"),
    ],
)  # fmt: skip
def test_edits_that_cannot_be_meant(override: str, said: str) -> None:
    with pytest.raises(ConfigError) as raised:
        compose(["quantize=w8a8", override])
    assert said in raised.value.message
