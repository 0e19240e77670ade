"""A recipe with nothing left open: the model's shape and a deployment's wishes filled in."""

from __future__ import annotations

from typing import Any

import pytest

from sweeper.config.schema import RecipeConfig
from sweeper.errors import ConfigError
from sweeper.quantize.recipe import BUILTIN, PER_CHANNEL, Recipe, resolve_recipe
from tests.estimate.facts import QWEN7B, SMOLLM2, model

AWQ = RecipeConfig("autoawq", group_size="auto")
W4A16 = RecipeConfig("llmcompressor", "W4A16")
NOTHING_DIVIDES = model("smollm2", intermediate_size=1000)


@pytest.mark.parametrize(
    ("cfg", "facts", "size"),
    [
        (AWQ, QWEN7B, 128),
        (AWQ, SMOLLM2, 64),
        (AWQ, None, 128),
        (AWQ, model("qwen7b", num_experts=64), 128),
        (W4A16, SMOLLM2, 64),
        (W4A16, NOTHING_DIVIDES, PER_CHANNEL),
        (AWQ, NOTHING_DIVIDES, 32),  # it has no scale a channel; a rule refuses it
        (RecipeConfig("autoawq", group_size=32), QWEN7B, 32),
        (RecipeConfig("llmcompressor", "W8A8"), SMOLLM2, None),
    ],
)
def test_the_group_size_is_the_largest_that_divides(
    cfg: RecipeConfig, facts: Any, size: int | None
) -> None:
    assert resolve_recipe("mine", cfg, {}, facts).group_size == size


def test_what_is_left_open_is_filled_in() -> None:
    assert resolve_recipe("mine", RecipeConfig("autoawq"), {}, QWEN7B) == Recipe(
        "mine",
        "autoawq",
        bits=4,
        group_size=128,
        symmetric=False,
        calibration=BUILTIN,
        calibration_samples=128,
        calibration_tokens=512,
    )
    assert resolve_recipe("fp8", RecipeConfig("llmcompressor", "FP8_DYNAMIC"), {}, None) == Recipe(
        "fp8", "llmcompressor", method="FP8_DYNAMIC", bits=8
    )


def test_a_deployment_changes_what_it_asks_for_and_nothing_else() -> None:
    plain = resolve_recipe("mine", W4A16, {}, QWEN7B)
    asked = {"bits": 8, "act_order": True, "group_size": 32, "calibration": "texts.txt"}
    changed = resolve_recipe("mine", W4A16, asked, QWEN7B)
    assert {**plain.to_dict(), **asked} == changed.to_dict()
    # What this tool has not is kept: the deployment is refused for it, and not the study.
    assert resolve_recipe("mine", AWQ, {"bits": 8}, QWEN7B).bits == 8


@pytest.mark.parametrize(
    ("cfg", "cause"),
    [
        (RecipeConfig("engine", "fp8_per_tensor"), "makes no checkpoint"),
        (RecipeConfig("published", path="org/x"), "makes no checkpoint"),
        (RecipeConfig("autoawq", bits=3), "bits=3 is not what autoawq takes"),
    ],
)
def test_refused(cfg: RecipeConfig, cause: str) -> None:
    with pytest.raises(ConfigError, match=cause):
        resolve_recipe("mine", cfg, {}, None)


def test_what_has_no_meaning_is_not_told() -> None:
    told = resolve_recipe("w8a8", RecipeConfig("llmcompressor", "W8A8"), {}, None).to_dict()
    assert "group_size" not in told
    assert told["act_order"] is False
