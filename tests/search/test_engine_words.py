"""A study keeps its own words; only the engine is given those of its version."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sweeper.config.schema import EngineConfig, ModelConfig, SpaceConfig, SweeperConfig
from sweeper.engine.comparison import ineffective
from sweeper.engine.flag_check import AskedFlag, Problem, Refusal
from sweeper.engine.protocol import EngineFacts
from sweeper.engine.registry import create
from sweeper.estimate.narrow import narrow
from sweeper.hardware.facts import HardwareFacts
from sweeper.models.resolve import ResolvedModel
from sweeper.search.rebuild import rebuild_setup
from sweeper.search.setup import StudySetup
from sweeper.space.parse import parse_space
from sweeper.trial.outcome import TrialOutcome
from sweeper.verdicts import Phase, Verdict

RENAMED = {
    "quantization": {"fp8": "fp8_per_tensor"},
    "attention_backend": {"FLASH_ATTN_VLLM_V1": "FLASH_ATTN"},
}
FACTS = EngineFacts("vllm", "0.32.0", "vllm", "cuda")
SPACE = {"quantization": {"choices": ["none", "fp8", "bogus"]}}


def setup(tmp_path: Path, *, args: dict[str, Any] | None = None, **fields: Any) -> StudySetup:
    cfg = SweeperConfig()
    cfg.engine = EngineConfig(name="vllm", args=args or {})
    cfg.model = ModelConfig(name="m", path="/models/m", checkpoints={"awq": "/models/awq"})
    cfg.space = SpaceConfig(name="s", parameters=SPACE)
    return StudySetup(
        cfg=cfg,
        space=parse_space(cfg.space),
        model=ResolvedModel("m", "/models/m", "local", None, None, None),
        draft=None,
        hardware=HardwareFacts("cuda", "GPU", 1, memory_gib=80.0),
        engine=create(cfg.engine, cache_dir=tmp_path),
        engine_facts=FACTS,
        **fields,
    )


@pytest.mark.parametrize(
    ("deployment", "sent"),
    [
        ({}, {}),
        ({"quantization": "fp8"}, {"quantization": "fp8_per_tensor"}),
        ({"quantization": "fp8_per_tensor"}, {"quantization": "fp8_per_tensor"}),
        (
            {"flag.attention_backend": "FLASH_ATTN_VLLM_V1", "max_num_seqs": 8},
            {"flag.attention_backend": "FLASH_ATTN", "max_num_seqs": 8},
        ),
        ({"quantization": "awq"}, {}),
    ],
)
def test_the_engine_is_given_its_own_words(
    tmp_path: Path, deployment: dict[str, Any], sent: dict[str, Any]
) -> None:
    before = dict(deployment)
    assert setup(tmp_path, renamed=RENAMED).resolve(deployment).parameters == sent
    assert deployment == before


def test_words_of_every_launch_are_renamed_too(tmp_path: Path) -> None:
    args = {"attention-backend": "FLASH_ATTN_VLLM_V1", "seed": 1}
    made = setup(tmp_path, args=args, renamed=RENAMED)
    resolved = made.resolve({"quantization": "fp8"})
    flags, _ = made.engine.start_command(resolved.parameters, resolved.checkpoint)
    assert flags["attention_backend"] == "FLASH_ATTN"
    assert flags["quantization"] == "fp8_per_tensor"
    # A deployment's own word still wins over that of every launch.
    own = {"flag.attention_backend": "FLASHINFER"}
    assert made.resolve(own).parameters == own


def test_a_flag_is_read_back_under_the_name_that_was_sent(tmp_path: Path) -> None:
    made = setup(tmp_path, args={"quantization": "fp8"}, renamed=RENAMED)
    resolved = made.resolve({})
    flags, _ = made.engine.start_command(resolved.parameters, resolved.checkpoint)
    assert ineffective(flags, {"quantization": "fp8_per_tensor"}) == {}
    assert ineffective(flags, {"quantization": "fp8"}) == {
        "quantization": "asked fp8_per_tensor, in effect fp8"
    }


def test_rules_judge_what_is_sent(tmp_path: Path) -> None:
    """`fp8` alone would be refused by the rule on its meaning in this version."""
    asked = {"quantization": "fp8"}
    assert [v.rule for v in setup(tmp_path).violations(asked)] == ["renamed_method"]
    assert setup(tmp_path, renamed=RENAMED).violations(asked) == []


def test_refused_choices_leave_the_space_with_the_reason(tmp_path: Path) -> None:
    refused = Refusal(
        AskedFlag("space.parameters.quantization", "quantization", "bogus", optional=True),
        Problem("vLLM 0.32.0 has no quantization=bogus", "did you mean awq?"),
    )
    made = setup(tmp_path, refused=(refused,), renamed=RENAMED)
    searched, dropped = narrow(made.space, made.violations)
    assert searched["quantization"].choices == ("none", "fp8")
    (one,) = dropped
    assert (one.value, one.violation.rule) == ("bogus", "unknown_to_engine")
    assert "has no quantization=bogus" in one.violation.cause
    assert made.violations({}) == []
    assert made.violations({"max_num_seqs": 8}) == []


def test_both_names_are_recorded_and_found_again(tmp_path: Path) -> None:
    made = setup(tmp_path, renamed=RENAMED)
    conditions = made.conditions()
    assert conditions["renamed"] == RENAMED
    assert "renamed" not in setup(tmp_path).conditions()
    outcome = TrialOutcome(
        number=0,
        kind="baseline",
        deployment={},
        deployment_hash="0",
        verdict=Verdict.OK,
        phase=Phase.STOP,
        manifest=conditions,
    )
    again = rebuild_setup(made.cfg, [outcome])
    assert again.resolve({"quantization": "fp8"}).parameters == {"quantization": "fp8_per_tensor"}
    outcome.manifest.pop("renamed")
    assert rebuild_setup(made.cfg, [outcome]).renamed == {}
