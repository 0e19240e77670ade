"""What keeps a checkpoint from being made is known without starting anything."""

from __future__ import annotations

from typing import Any

import pytest

from sweeper.config.recipe_fields import fields_of
from sweeper.config.schema import RecipeConfig
from sweeper.estimate.violation import Violation
from sweeper.quantize.recipe import resolve_recipe
from sweeper.quantize.violations import RULES, Making, violations
from tests.estimate.facts import QWEN7B, SMOLLM2, model

AWQ, GPTQ, GPTQMODEL, W4A16, W8A8 = (
    RecipeConfig("autoawq"),
    RecipeConfig("auto_gptq"),
    RecipeConfig("gptqmodel", "gptq"),
    RecipeConfig("llmcompressor", "W4A16"),
    RecipeConfig("llmcompressor", "W8A8"),
)
NARROW = model("smollm2", intermediate_size=1528, hidden_size=580)


def broken(
    cfg: RecipeConfig,
    asked: dict[str, Any] | None = None,
    facts: Any = QWEN7B,
    device: str = "auto",
    machine: str = "cpu",
) -> dict[str, Violation]:
    recipe = resolve_recipe("mine", cfg, asked or {}, facts)
    making = Making(recipe, asked or {}, fields_of(cfg), facts, device, machine)
    return {one.rule: one for one in violations(making)}


BROKEN: list[tuple[str, RecipeConfig, dict[str, Any]]] = [
    ("tool_needs_cuda", GPTQ, {}),
    ("tool_needs_cuda", GPTQ, {"device": "cpu", "machine": "cuda"}),
    ("device_is_there", W8A8, {"device": "cuda"}),
    ("model_is_unquantized", AWQ, {"facts": model("qwen7b", quantization_method="awq")}),
    ("shapes_pack", AWQ, {"facts": model("smollm2", hidden_size=608)}),  # 64 columns at a time
    ("shapes_pack", GPTQMODEL, {"facts": NARROW}),
    ("shapes_pack", W4A16, {"facts": NARROW}),
    ("recipe_value", AWQ, {"asked": {"bits": 8}}),
    ("recipe_value", W8A8, {"asked": {"group_size": 64}}),
]


@pytest.mark.parametrize(("rule", "cfg", "around"), BROKEN)
def test_broken(rule: str, cfg: RecipeConfig, around: dict[str, Any]) -> None:
    violation = broken(cfg, **around)[rule]
    assert violation.cause.startswith("quantization=mine")
    assert violation.remedy
    assert violation.parameters[0] == "quantization"
    assert "\n" not in violation.cause


def test_every_rule_is_broken_once_above() -> None:
    assert {rule for rule, _, _ in BROKEN} == {*RULES, "recipe_value"}


@pytest.mark.parametrize(
    ("cfg", "around"),
    [
        (AWQ, {}),
        (AWQ, {"facts": SMOLLM2}),
        (GPTQMODEL, {"facts": SMOLLM2, "device": "cpu"}),
        (GPTQ, {"machine": "cuda"}),
        (GPTQ, {"machine": "cuda", "device": "cuda"}),
        (W8A8, {"facts": NARROW}),  # packs nothing
        (W4A16, {"facts": model("qwen7b", num_experts=4, intermediate_size=100)}),
        (W4A16, {"facts": None, "asked": {"bits": 8, "act_order": True}}),
    ],
)
def test_kept(cfg: RecipeConfig, around: dict[str, Any]) -> None:
    assert broken(cfg, **around) == {}


def test_a_machine_without_a_gpu_is_told_what_does_without() -> None:
    remedy = broken(GPTQ)["tool_needs_cuda"].remedy
    assert "gptqmodel" in remedy
    assert "w4a16" in remedy


def test_a_value_of_another_recipe_names_what_this_one_takes() -> None:
    bits = broken(AWQ, {"bits": 8})["recipe_value"]
    assert bits.parameters == ("quantization", "quantize.bits")
    assert bits.remedy == "use one of 4 with it"
    none = broken(W8A8, {"group_size": 64})["recipe_value"]
    assert none.remedy == "leave group_size out with it"
