"""What each value of `quantization` comes down to."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sweeper.config.adjust import adjust
from sweeper.config.schema import QuantizeConfig, RecipeConfig, SpaceConfig, SweeperConfig
from sweeper.estimate.weights import QuantizedWeights
from sweeper.quantize.selection import Selection
from sweeper.space.canonical import canonical
from sweeper.space.parse import parse_space
from tests.estimate.facts import SMOLLM2
from tests.quantize.test_published import written

RECIPES = {
    "awq": RecipeConfig("autoawq"),
    "w4a16": RecipeConfig("llmcompressor", "W4A16"),
    "twin": RecipeConfig("llmcompressor", "W4A16", group_size=64),
    "fp8": RecipeConfig("engine", "fp8_per_tensor"),
    "bought": RecipeConfig("published", path="org/x-AWQ"),
    "file": RecipeConfig("published", path="/models/x.gguf"),
}
CHECKPOINTS = {"awq": "org/published-AWQ", "gptq": "org/published-GPTQ"}
CHOSEN = Selection(QuantizeConfig(RECIPES), CHECKPOINTS, SMOLLM2, "cpu")
NOTHING = Selection(QuantizeConfig(), CHECKPOINTS, SMOLLM2, "cpu")


@pytest.mark.parametrize(
    ("name", "path", "method", "word"),
    [
        (None, None, None, None),
        ("awq", None, None, "awq"),  # the recipe wins over the published checkpoint
        ("gptq", "org/published-GPTQ", None, None),
        ("w4a16", None, None, "compressed-tensors"),
        ("fp8", None, "fp8_per_tensor", "fp8_per_tensor"),
        ("bought", "org/x-AWQ", None, None),
        ("file", "/models/x.gguf", None, "gguf"),
        ("int8_per_channel_weight_only", None, *["int8_per_channel_weight_only"] * 2),
    ],
)
def test_a_value_is_a_recipe_a_checkpoint_or_the_engines_own_word(
    name: str | None, path: str | None, method: str | None, word: str | None
) -> None:
    deployment = {} if name is None else {"quantization": name}
    assert CHOSEN.path(deployment) == path
    assert CHOSEN.method(deployment) == method
    assert (CHOSEN.recipe(deployment) is not None) == (name in ("awq", "w4a16"))
    if name is not None:
        assert CHOSEN.engine_word(name) == word


def test_rules_are_told_the_format_and_what_the_recipe_makes() -> None:
    asked = {"quantization": "w4a16", "quantize.group_size": 32, "max_num_seqs": 8}
    served = CHOSEN.serve(asked)
    assert served.parameters == {"quantization": "compressed-tensors", "max_num_seqs": 8}
    assert served.weights == QuantizedWeights(
        "w4a16", 4, 32, symmetric=True, searched=("quantize.group_size",)
    )
    assert served.violations == ()
    own = CHOSEN.serve({"quantization": "awq"}).weights
    assert own == QuantizedWeights("awq", 4, 64, symmetric=False)
    a_channel = CHOSEN.serve({**asked, "quantize.group_size": -1}).weights
    assert a_channel is not None
    assert a_channel.group_size is None


def test_what_is_no_recipe_goes_through_as_it_is() -> None:
    for deployment in ({}, {"quantization": "fp8_per_tensor"}, {"max_num_seqs": 8}):
        assert NOTHING.serve(deployment).parameters == deployment
        assert NOTHING.content(deployment) == deployment
    assert NOTHING.content({"quantization": "awq"}) == {"quantization": "awq"}
    assert CHOSEN.serve({"quantization": "fp8"}).parameters == {"quantization": "fp8_per_tensor"}


def test_a_published_checkpoint_says_its_own_format(tmp_path: Path) -> None:
    section = {"quant_method": "gptq", "bits": 8, "group_size": 64, "sym": True}
    path = written(tmp_path / "x", section)
    served = Selection(QuantizeConfig(), {"mine": path}, SMOLLM2).serve({"quantization": "mine"})
    assert served.parameters == {"quantization": "gptq"}
    assert served.weights == QuantizedWeights("mine", 8, 64, made=False)


def test_what_keeps_a_checkpoint_from_being_made_comes_with_it() -> None:
    (violation,) = CHOSEN.serve({"quantization": "awq", "quantize.bits": 8}).violations
    assert violation.rule == "recipe_value"


def test_content_is_what_a_checkpoint_is_and_not_what_it_is_called(tmp_path: Path) -> None:
    def content(name: str, **fields: Any) -> Any:
        searched = {f"quantize.{field}": value for field, value in fields.items()}
        return CHOSEN.content({"quantization": name, **searched})

    assert content("w4a16") == content("twin") == content("w4a16", group_size=64)
    assert content("w4a16") != content("w4a16", group_size=32)
    assert content("w4a16") != content("awq")
    assert content("fp8") == content("fp8_per_tensor")
    assert content("bought") == {"quantization": "checkpoint org/x-AWQ"}
    texts = [tmp_path / name for name in ("one.txt", "same.txt", "other.txt")]
    for path, text in zip(texts, ("a text", "a text", "another"), strict=True):
        path.write_text(text)
    one, same, other = (content("w4a16", calibration=str(path)) for path in texts)
    assert one == same != other


def test_the_identity_holds_recipes_by_content(tmp_path: Path) -> None:
    assert NOTHING.identity() == {}
    told = CHOSEN.identity()
    assert list(told) == list(RECIPES)
    assert told["twin"] == told["w4a16"]
    assert told["w4a16"]["group_size"] == 64
    assert told["fp8"] == {"tool": "engine", "method": "fp8_per_tensor"}
    assert told["bought"] == {"tool": "published", "path": "org/x-AWQ"}
    texts = tmp_path / "texts.txt"
    texts.write_text("a text")
    cfg = {"mine": RecipeConfig("llmcompressor", "W8A8", calibration=str(texts))}
    before = Selection(QuantizeConfig(cfg)).identity()
    assert str(tmp_path) not in str(before)
    texts.write_text("another text")
    assert Selection(QuantizeConfig(cfg)).identity() != before


def test_a_deployment_that_asks_for_what_the_recipe_says_is_the_recipes() -> None:
    cfg = SweeperConfig(quantize=QuantizeConfig(dict(RECIPES)))
    cfg.space = SpaceConfig("s", parameters={"quantize.group_size": [32, 64]})
    adjust(cfg, [])
    space = CHOSEN.with_own_values(parse_space(cfg.space))
    asked = {"quantization": "w4a16", "quantize.group_size": 64}
    assert canonical(space, asked) == canonical(space, {"quantization": "w4a16"})
    assert canonical(space, {**asked, "quantize.group_size": 32}) != canonical(space, asked)


def test_recipes_are_described_with_everything_filled_in() -> None:
    lines = CHOSEN.described()
    assert len(lines) == 3
    assert lines[0] == (
        "awq: made with autoawq, 4 bits, groups of 64, with zero points, "
        "calibrated on 128 x 512 tokens (builtin)"
    )


def test_whether_anything_is_fetched() -> None:
    assert NOTHING.has_published
    assert not Selection(QuantizeConfig({"awq": RECIPES["awq"]})).has_published
    assert Selection(QuantizeConfig({"bought": RECIPES["bought"]})).has_published
