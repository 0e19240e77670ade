"""Models and machines for tests of arithmetic."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from sweeper.config.compose import compose
from sweeper.estimate.rules import Violation, check
from sweeper.hardware.facts import HardwareFacts
from sweeper.models.facts import ModelFacts
from sweeper.models.read import facts_from_config


@dataclass(frozen=True)
class Engine:
    name: str = "vllm"
    version: str = "0.33.0"
    device: str = "cuda"


def model(name: str, **changes: Any) -> ModelFacts:
    """Facts of a shipped model."""
    return replace(facts_from_config(compose([f"model={name}"]).model.facts), **changes)


def draft(name: str) -> ModelFacts:
    return facts_from_config(compose([f"model={name}"]).model.draft_facts)


QWEN7B, QWEN3, SMOLLM2 = model("qwen7b"), model("qwen3_8b"), model("smollm2")
H100 = HardwareFacts("cuda", "H100", 8, 79.6, compute_capability=(9, 0), bandwidth_gbs=3350.0)
A100 = replace(H100, name="A100", compute_capability=(8, 0), memory_gib=80.0)
T4 = replace(H100, name="T4", compute_capability=(7, 5), memory_gib=15.0, bandwidth_gbs=320.0)
V100 = replace(H100, name="V100", compute_capability=(7, 0), memory_gib=32.0)
CPU = HardwareFacts("cpu", "EPYC", 1, 23.0)


def broken(parameters: dict[str, Any], **facts: Any) -> dict[str, Violation]:
    """Rule → violation of a deployment; by default of Qwen2.5-7B on eight H100."""
    around: dict[str, Any] = {
        "model": QWEN7B,
        "hardware": H100,
        "engine": Engine(device=facts.get("hardware", H100).kind),
        "draft": None,
        "required_tokens": 640,
        **facts,
    }
    return {violation.rule: violation for violation in check(parameters, **around)}
