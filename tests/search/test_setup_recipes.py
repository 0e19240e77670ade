"""What a study starts for a deployment that asks for a recipe, and what it refuses before that."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sweeper.config.adjust import adjust
from sweeper.config.schema import (
    EngineConfig,
    ModelConfig,
    QuantizeConfig,
    RecipeConfig,
    SpaceConfig,
    SweeperConfig,
)
from sweeper.engine.flag_check import AskedFlag, Problem, Refusal
from sweeper.engine.protocol import EngineFacts
from sweeper.engine.registry import create
from sweeper.estimate.narrow import narrow
from sweeper.estimate.weights import QuantizedWeights
from sweeper.hardware.facts import HardwareFacts
from sweeper.models.resolve import ResolvedModel
from sweeper.search.setup import StudySetup
from sweeper.space.parse import parse_space
from tests.estimate.facts import H100, QWEN7B, SMOLLM2

CPU = HardwareFacts("cpu", "EPYC", 1, 23.0, cpu_features=("avx2", "avx512f"))
RECIPES = {
    "awq": RecipeConfig("autoawq"),
    "w8a8": RecipeConfig("llmcompressor", "W8A8"),
    "twin": RecipeConfig("llmcompressor", "W8A8"),
    "gptq": RecipeConfig("auto_gptq"),
    "online": RecipeConfig("engine", "fp8_per_tensor"),
    "bought": RecipeConfig("published", path="org/x-AWQ"),
    "file": RecipeConfig("published", path="/models/x.gguf"),
}


def setup(
    tmp_path: Path,
    hardware: HardwareFacts = CPU,
    facts: Any = SMOLLM2,
    predicted: bool = False,
    **quantize: Any,
) -> StudySetup:
    cfg = SweeperConfig(cache_dir=str(tmp_path))
    cfg.engine = EngineConfig(name="vllm")
    cfg.model = ModelConfig(name="m", path="org/m", checkpoints={"awq": "org/other-AWQ"})
    cfg.space = SpaceConfig(name="s", parameters={"quantize.group_size": [32, 128]})
    cfg.quantize = QuantizeConfig(recipes=dict(RECIPES), **quantize)
    adjust(cfg, [])
    return StudySetup(
        cfg=cfg,
        space=parse_space(cfg.space),
        model=ResolvedModel(
            "m", "org/m", "hub", "abc", facts, digest="abc", size_bytes=3_600_000_000
        ),
        draft=None,
        hardware=hardware,
        engine=create(cfg.engine, cache_dir=tmp_path),
        engine_facts=EngineFacts("vllm", "0.32.0", "vllm", hardware.kind, predicted),
    )


def test_a_recipe_is_a_checkpoint_to_make(tmp_path: Path) -> None:
    made = setup(tmp_path, device="cpu", python="/env/bin/python", cache_limit_gib=9.0)
    asked = {"quantization": "awq", "quantize.group_size": 32, "max_num_seqs": 8}
    resolved = made.resolve(asked)
    job = resolved.to_make
    assert job is not None
    assert (job.recipe.tool, job.recipe.group_size) == ("autoawq", 32)
    assert (job.model_path, job.revision, job.model_digest) == ("org/m", "abc", "abc")
    assert (job.cache_dir, job.python, job.device) == (tmp_path, "/env/bin/python", "cpu")
    assert job.cache_limit_gib == 9.0
    assert job.timeout_s == pytest.approx(3600 + 3600)
    # The base model stands in until the checkpoint is there; the engine reads its config.json.
    assert resolved.checkpoint == "org/m"
    assert resolved.parameters == {"max_num_seqs": 8}
    assert resolved.weights == QuantizedWeights(
        "awq", 4, 32, symmetric=False, searched=("quantize.group_size",)
    )
    assert not resolved.is_model_itself(made.model)
    assert made.resolve({}).is_model_itself(made.model)
    assert setup(tmp_path, timeout_s=60.0).resolve(asked).to_make.timeout_s == 60.0  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("name", "checkpoint", "parameters"),
    [
        ("online", "org/m", {"quantization": "fp8_per_tensor"}),
        ("bought", "org/x-AWQ", {}),
        ("fp8_per_block", "org/m", {"quantization": "fp8_per_block"}),
    ],
)
def test_what_is_not_made(
    tmp_path: Path, name: str, checkpoint: str, parameters: dict[str, Any]
) -> None:
    resolved = setup(tmp_path).resolve({"quantization": name})
    assert (resolved.checkpoint, resolved.parameters) == (checkpoint, parameters)
    assert resolved.to_make is None


def test_nothing_is_made_for_an_engine_that_only_predicts(tmp_path: Path) -> None:
    resolved = setup(tmp_path, predicted=True).resolve({"quantization": "awq"})
    assert resolved.to_make is None
    assert resolved.parameters == {"quantization": "awq"}


def test_rules_judge_what_a_recipe_makes(tmp_path: Path) -> None:
    made = setup(tmp_path)
    asked = {"quantization": "awq"}
    assert made.violations(asked) == []  # groups of 64; no published checkpoint is missed
    (odd,) = made.violations({**asked, "quantize.group_size": 128})
    assert (odd.rule, odd.parameters) == ("group_divides", ("quantization", "quantize.group_size"))
    assert "quantize.group_size=64" in odd.remedy
    old = setup(tmp_path, replace(CPU, cpu_features=("avx2",)))
    assert [one.rule for one in old.violations(asked)] == ["weight_only_on_cpu"]
    assert old.violations({"quantization": "w8a8"}) == []


def test_a_tool_without_its_gpu_is_refused_at_once(tmp_path: Path) -> None:
    for made in (
        setup(tmp_path, python="/env/bin/python"),  # the device counts, not the interpreter
        setup(tmp_path, H100, QWEN7B, device="cpu"),
    ):
        (one,) = made.violations({"quantization": "gptq"})
        assert (one.rule, one.parameters) == ("tool_needs_cuda", ("quantization",))
    assert setup(tmp_path, H100, QWEN7B).violations({"quantization": "gptq"}) == []


def test_a_format_that_the_engine_does_not_read_leaves_the_space(tmp_path: Path) -> None:
    def refusal(word: str) -> Refusal:
        asked = AskedFlag("quantize.recipes.x", "quantization", word, optional=True)
        return Refusal(asked, Problem(f"vLLM 0.32.0 has no quantization={word}", "use another"))

    made = setup(tmp_path, H100, QWEN7B)
    made = replace(made, refused=(refusal("gguf"), refusal("fp8_per_tensor"), refusal("awq")))
    left, dropped = narrow(made.space, made.violations)
    assert [one.value for one in dropped] == ["awq", "online", "file"]
    assert "has no quantization=gguf" in dropped[-1].violation.cause
    assert left["quantization"].choices == ("none", "w8a8", "twin", "gptq", "bought")


def test_quality_is_known_by_what_a_checkpoint_is(tmp_path: Path) -> None:
    made = setup(tmp_path)
    key = {name: made.quality_key({"quantization": name}) for name in RECIPES}
    assert key["w8a8"] == key["twin"]
    assert len({*key.values(), made.quality_key({})}) == len(RECIPES)  # and the twin is one of them
    awq = {"quantization": "awq"}
    assert made.quality_key({**awq, "quantize.group_size": 64}) == key["awq"]
    assert made.quality_key({**awq, "quantize.group_size": 32}) != key["awq"]
    assert made.quality_key({**awq, "max_num_seqs": 8}) == key["awq"]


def test_a_start_may_fetch_a_published_checkpoint(tmp_path: Path) -> None:
    made = setup(tmp_path)
    plain = setup(tmp_path)
    plain.cfg.model.checkpoints = {}
    plain.cfg.quantize.recipes = {"awq": RECIPES["awq"]}
    assert made.start_timeout_s > plain.start_timeout_s
