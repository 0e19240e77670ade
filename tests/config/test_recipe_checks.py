"""A recipe that cannot be meant is refused before anything starts, with the way out."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sweeper.config.adjust import adjust
from sweeper.config.recipe_checks import check_recipe, check_recipes
from sweeper.config.recipe_fields import TOOLS, allows, fields_of, has_choice
from sweeper.config.schema import ModelConfig, QuantizeConfig, RecipeConfig, SpaceConfig
from sweeper.config.schema import SweeperConfig as Config
from sweeper.errors import ConfigError

QUICK = settings(max_examples=100, deadline=None)
AWQ, W4A16, W8A8, ONLINE = (
    RecipeConfig("autoawq"),
    RecipeConfig("llmcompressor", "W4A16"),
    RecipeConfig("llmcompressor", "W8A8"),
    RecipeConfig("engine", "fp8_per_tensor"),
)
RECIPES = {"awq": AWQ, "w4a16": W4A16, "w8a8": W8A8, "fp8": ONLINE}


def config(space: dict[str, Any] | None = None, **quantize: Any) -> Config:
    """Composed as far as recipes go."""
    parameters = {"quantization": {"choices": ["none"]}, **(space or {})}
    return Config(
        model=ModelConfig(checkpoints={"published": "org/x"}),
        space=SpaceConfig(name="s", parameters=parameters),
        quantize=QuantizeConfig(**quantize),
    )


@pytest.mark.parametrize(
    ("recipe", "cause", "remedy"),
    [
        ({"tool": "autoaqw"}, "tool=autoaqw is not known", "did you mean autoawq?"),
        ({"tool": "engine"}, "neither a tool nor a method", "online method"),
        ({"tool": "published"}, "has no path", "path=FOLDER_OR_HUB_ID"),
        ({"tool": "published", "path": "x/y", "bits": 4}, "takes no bits", "none of them"),
        ({"tool": "autoawq", "path": "x/y"}, "only a published checkpoint", "tool=published"),
        ({"tool": "autoawq", "method": "gemm"}, "no methods to choose from", "method=null"),
        ({"tool": "llmcompressor"}, "method is missing for llmcompressor", "W4A16_AWQ"),
        ({"tool": "llmcompressor", "method": "w4a16"}, "w4a16 is not known", "did you mean W4A16?"),
        ({"tool": "gptqmodel", "method": "gptq", "bits": 5}, "gptqmodel gptq takes", "is 4"),
        ({"tool": "autoawq", "bits": 8}, "bits=8 is not what autoawq takes", "it takes 4"),
        ({"tool": "autoawq", "group_size": 100}, "group_size=100", "the nearest is 128"),
        ({"tool": "autoawq", "group_size": -1}, "group_size=-1", "it takes auto, 128, 64, 32"),
        ({"tool": "autoawq", "group_size": "64"}, "group_size=64", "it takes auto, 128, 64, 32"),
        ({"tool": "autoawq", "group_size": True}, "group_size=true", "it takes auto"),
        ({"tool": "autoawq", "act_order": False}, "autoawq takes no act_order", "it takes bits"),
        ({"tool": "auto_gptq", "symmetric": False}, "symmetric=false", "it takes true"),
        ({"tool": "autoawq", "calibration": " "}, "calibration is empty", "builtin"),
        ({"tool": "autoawq", "calibration_tokens": 0}, "must be above 0", "=1 or more"),
        ({"tool": "llmcompressor", "method": "FP8_DYNAMIC", "calibration": "builtin"},
         "takes no calibration", "it takes bits"),
    ],
)  # fmt: skip
def test_refused(recipe: dict[str, Any], cause: str, remedy: str) -> None:
    with pytest.raises(ConfigError) as raised:
        check_recipe("mine", RecipeConfig(**recipe))
    assert cause in raised.value.message
    assert remedy in raised.value.remedy
    assert raised.value.message.startswith("quantize.recipes.mine")


def test_a_key_of_a_shipped_recipe_asks_for_the_recipe() -> None:
    with pytest.raises(ConfigError, match="is not chosen") as raised:
        check_recipe("w8a8", RecipeConfig(bits=8))
    assert raised.value.remedy == "add quantize=w8a8"
    with pytest.raises(ConfigError) as raised:
        check_recipe("w8a9", RecipeConfig(bits=8))
    assert "quantize.recipes.w8a8" in raised.value.remedy


@pytest.mark.parametrize("name", ["none", "default", "checkpoints"])
def test_a_name_that_means_something_else_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match="cannot be called"):
        check_recipe(name, AWQ)


@pytest.mark.parametrize(
    ("quantize", "cause"),
    [
        ({"device": "gpu"}, "quantize.device=gpu is not known"),
        ({"timeout_s": 0.0}, "quantize.timeout_s=0 must be above 0"),
        ({"memory_gib": -1.0}, "quantize.memory_gib=-1 must be above 0"),
        ({"cache_limit_gib": 0.0}, "quantize.cache_limit_gib=0 must be above 0"),
        ({"python": " "}, "quantize.python is empty"),
        ({"recipes": {"mine": RecipeConfig("autoawk")}}, "tool=autoawk is not known"),
    ],
)
def test_settings(quantize: dict[str, Any], cause: str) -> None:
    with pytest.raises(ConfigError) as raised:
        check_recipes(config(**quantize))
    assert cause in raised.value.message


@st.composite
def recipes(draw: st.DrawFn) -> RecipeConfig:
    tool = draw(st.sampled_from(sorted(TOOLS)))
    method = draw(st.sampled_from(sorted(TOOLS[tool], key=str)))
    recipe = RecipeConfig(tool, method)
    for field, allowed in fields_of(recipe).items():
        free = st.just("texts.txt") if field == "calibration" else st.integers(1, 4096)
        setattr(recipe, field, draw(st.none() | (st.sampled_from(allowed) if allowed else free)))
    return recipe


@QUICK
@given(recipes())
def test_what_the_table_says_is_accepted(recipe: RecipeConfig) -> None:
    check_recipe("mine", recipe)


def test_true_is_not_taken_for_one() -> None:
    fields = {"symmetric": (True, False), "bits": (1, 0), "calibration": ()}
    assert allows(fields, "symmetric", True)
    assert not allows(fields, "symmetric", 1)
    assert not allows(fields, "bits", True)
    assert allows(fields, "calibration", "anything")
    assert not allows(fields, "act_order", True)


def test_there_is_a_choice_only_of_what_has_two_values() -> None:
    assert [field for field in ("bits", "group_size", "act_order") if has_choice(AWQ, field)] == [
        "group_size"
    ]
    assert has_choice(W4A16, "bits")
    assert has_choice(W8A8, "calibration_samples")
    assert not has_choice(ONLINE, "bits")


@pytest.mark.parametrize(
    ("space", "cause", "remedy"),
    [
        ({"quantize.group_siz": [32]}, "no group_siz to search", "did you mean group_size?"),
        ({"quantize.group_size": {"choices": [32], "default": 32}}, "own value holds", "recipes"),
        ({"quantize.group_size": {"low": 32, "high": 64, "default": 32}}, "is a range", "=[a,b]"),
        ({"quantize.group_size": [32, 48]}, "48 is not what autoawq takes", "the nearest is 64"),
        ({"quantize.group_size": ["auto", 32]}, "auto is no value to search", "default"),
        ({"quantize.calibration_samples": [0]}, "0 must be above 0", "1 or more"),
        ({"quantize.group_size": {"choices": [32], "when": {"quantization": ["w8a8"]}}},
         "cannot be chosen where quantization is w8a8", "awq, w4a16"),
        ({"quantize.bits": {"choices": [8], "when": {"quantization": "awq"}}},
         "cannot be chosen where quantization is awq", "w4a16"),
    ],
)  # fmt: skip
def test_searched(space: dict[str, Any], cause: str, remedy: str) -> None:
    cfg = config(space, recipes=RECIPES)
    adjust(cfg, [])
    with pytest.raises(ConfigError) as raised:
        check_recipes(cfg)
    assert cause in raised.value.message
    assert remedy in raised.value.remedy


def test_a_value_that_one_recipe_takes_is_left_to_the_deployment() -> None:
    cfg = config({"quantize.bits": [4, 8], "quantize.act_order": [True]}, recipes=RECIPES)
    adjust(cfg, [])
    check_recipes(cfg)


@pytest.mark.parametrize(
    ("chosen", "said"), [({}, "no recipe is chosen"), ({"awq": AWQ}, "awq has no choice of it")]
)
def test_a_field_that_no_recipe_has_is_not_searched(
    chosen: dict[str, RecipeConfig], said: str
) -> None:
    with pytest.raises(ConfigError, match=said):
        check_recipes(config({"quantize.bits": [4, 8]}, recipes=chosen))


def test_a_field_is_fixed_in_its_recipe() -> None:
    cfg = config(recipes={"awq": AWQ})
    cfg.space.fixed = {"quantize.group_size": 64}
    with pytest.raises(ConfigError) as raised:
        check_recipes(cfg)
    assert raised.value.remedy == "set quantize.recipes.NAME.group_size=64"
    cfg.space.fixed = {"quantize.group_size": "default"}
    check_recipes(cfg)


def test_the_name_of_a_shipped_recipe_among_the_choices_asks_for_it() -> None:
    for value, chosen in (("w8a8", {}), ("gptqmodel_awq", {"awq": AWQ})):
        cfg = config({"quantization": ["none", value]}, recipes=chosen)
        with pytest.raises(ConfigError) as raised:
            check_recipes(cfg)
        assert raised.value.remedy == f"add quantize={value}"
    for value in (
        "awq",
        "gptq",
        "fp8_per_tensor",
        "published",
        "anything",
    ):  # the engine's to judge
        check_recipes(config({"quantization": ["none", value]}))
    check_recipes(config({"quantization": ["none", "w8a8"]}, recipes={"w8a8": W8A8}))
