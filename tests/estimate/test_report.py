"""The estimate of a whole space, and taking out what can never work."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from sweeper.config.compose import compose
from sweeper.config.schema import SpaceConfig
from sweeper.estimate import sample
from sweeper.estimate.estimate_json import estimate_json
from sweeper.estimate.narrow import narrow
from sweeper.estimate.render import render
from sweeper.estimate.report import estimate_space
from sweeper.estimate.rules import Violation, check
from sweeper.hardware.facts import HardwareFacts
from sweeper.space.model import Space
from sweeper.space.parse import parse_space
from tests.estimate.facts import H100, QWEN3, QWEN7B, T4

SMALL = parse_space(
    SpaceConfig(
        name="small",
        parameters={
            "tensor_parallel_size": {"choices": [1, 2, 4, 8], "default": 1},
            "quantization": ["none", "fp8_per_tensor"],
        },
        seeds=[{"tensor_parallel_size": 8}, {"quantization": "fp8_per_tensor"}],
    )
)
ONE_H100 = replace(H100, device_count=1)


def test_a_small_space_is_counted_exactly() -> None:
    estimate = estimate_space(SMALL, QWEN7B, H100)
    assert (estimate.size, estimate.examined, estimate.sampled) == (8, 8, False)
    assert estimate.by_rule == {"heads_divide": 2}  # tp=8, with and without quantization
    assert estimate.infeasible_share == 0.25
    assert estimate.infeasible_interval == (0.25, 0.25)
    assert estimate.baseline == []
    assert len(estimate.memory) == 8


def test_a_large_space_is_sampled_the_same_way_every_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sample, "SAMPLE", 200)
    space = parse_space(compose(["space=gpu_full"]).space)
    one, two = (estimate_space(space, QWEN7B, H100) for _ in range(2))
    assert one.sampled
    assert one.examined == 200
    assert one.by_rule == two.by_rule
    low, high = one.infeasible_interval
    assert low < one.infeasible_share < high < low + 0.15
    assert f"({100 * low:.1f} to {100 * high:.1f} %: a random sample of 200)" in render(one)


def test_a_continuum_is_sampled_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sample, "SAMPLE", 200)
    form = {"low": 0.01, "high": 0.9, "default": 0.9}
    space = parse_space(SpaceConfig(parameters={"gpu_memory_utilization": form}))
    estimate = estimate_space(space, QWEN7B, H100)
    assert estimate.size is None
    assert estimate.by_rule["weights_fit"] > 0


def test_a_model_that_does_not_fit_by_default_is_said_first() -> None:
    estimate = estimate_space(SMALL, QWEN3, T4)
    assert "GiB" in estimate.baseline[0]
    text = render(estimate)
    assert "defaults cannot run here" in text
    assert "does not" in text


def test_unknown_facts_leave_out_what_they_would_be_needed_for() -> None:
    estimate = estimate_space(SMALL, None, H100)
    assert (estimate.memory, estimate.corners, estimate.infeasible) == ([], [], 0)
    assert "weights" not in render(estimate)


def test_the_text_calls_itself_predicted_and_gives_remedies() -> None:
    text = render(estimate_space(SMALL, QWEN7B, ONE_H100))
    assert text.startswith("Predicted: 75.0 % of 8 deployments")
    assert "remedy:" in text
    assert "decode" in text
    assert all(len(line) < 140 for line in text.splitlines())


def test_the_speed_of_light_is_told_for_one_and_for_many() -> None:
    machine = replace(ONE_H100, tflops_bf16=989.0)
    estimate = estimate_space(SMALL, QWEN7B, machine, input_tokens=2000, output_tokens=100)
    one, many = (estimate.memory[0].speed[streams] for streams in (1, 64))
    assert many["output_tokens_per_s_ceiling"] > one["output_tokens_per_s_ceiling"]
    text = render(estimate)
    assert "predicted from peaks of the data sheet, for 2,000 tokens in and 100 out" in text
    lines = [line for line in text.splitlines() if line.split()[:3] == ["none", "1", "64"]]
    assert f"{many['tpot_floor_ms']:.3f}" in lines[0]
    assert f"{many['prefill_tokens_per_s_ceiling']:,.0f}" in lines[0]
    measured = estimate_space(SMALL, QWEN7B, replace(machine, peaks_source="measured"))
    assert "measured here" in render(measured)
    assert "unknown" in render(estimate_space(SMALL, QWEN7B, replace(machine, tflops_bf16=None)))


def test_memory_is_shown_by_its_parts_for_the_ends_of_the_space() -> None:
    estimate = estimate_space(SMALL, QWEN7B, H100)
    text = render(estimate)
    memory = estimate.corners[0].memory
    assert estimate.corners[0].name == "default"
    table = [line for line in text.splitlines() if line.startswith("  default")]
    assert f"{memory.parts[0].expected_gib:.2f}" in table[0]
    assert memory.kv_tokens is not None
    assert f"{memory.kv_tokens.expected:,.0f}" in table[0]
    assert "  most room: quantization=fp8_per_tensor tensor_parallel_size=4" in text
    assert "fits" in table[0]
    assert "-" in table[0]  # no draft


def test_an_estimate_as_json_holds_no_made_up_number() -> None:
    remote = HardwareFacts("remote", "elsewhere", 1, 0.0)
    for hardware in (H100, remote):
        estimate = estimate_space(SMALL, QWEN7B, hardware)
        found = json.loads(estimate_json(estimate, "qwen7b", hardware.name, 1))
        assert found["predicted"] is True
        assert found["space"]["deployments"] == 8
        assert found["space"]["infeasible_share_low"] == found["space"]["infeasible_share"]
        memory = found["corners"][0]["memory"]
        known = hardware is H100
        assert (memory["available_gib"] is not None) == known
        assert (memory["kv_tokens"] is not None) == known
        weights = memory["parts"]["weights"]
        assert weights["least_gib"] < weights["expected_gib"] < weights["most_gib"]
        assert not weights["measured"]
        assert memory["parts"]["one_sequence"]["expected_gib"] == 1.75
    assert found["rows"][0]["quantization"] == "none"


def checker(**facts: Any) -> Any:
    def bound(parameters: Mapping[str, Any]) -> list[Violation]:
        return check(parameters, engine=None, draft=None, required_tokens=640, **facts)

    return bound


def narrowed(space: Space, **facts: Any) -> Space:
    return narrow(space, checker(**facts))[0]


def test_choices_that_never_work_are_taken_out_with_their_seeds() -> None:
    space, dropped = narrow(SMALL, checker(model=QWEN7B, hardware=H100))
    assert space["tensor_parallel_size"].choices == (1, 2, 4)
    assert space.seeds == ({"quantization": "fp8_per_tensor"},)
    assert [(d.parameter, d.value, d.violation.rule) for d in dropped] == [
        ("tensor_parallel_size", 8, "heads_divide")
    ]


def test_one_device_leaves_no_parallel_choice() -> None:
    space = narrowed(SMALL, model=QWEN7B, hardware=ONE_H100)
    assert space["tensor_parallel_size"].choices == (1,)


def test_what_fails_only_together_stays() -> None:
    form = {"choices": [128, 4096]}
    space = parse_space(
        SpaceConfig(parameters={"max_num_batched_tokens": form, "max_num_seqs": [256]})
    )
    assert narrowed(space, model=QWEN7B, hardware=H100) == space


def test_a_misfit_that_another_parameter_cures_stays() -> None:
    parameters = {
        "gpu_memory_utilization": {"choices": [0.8, 0.92], "default": 0.92},
        "quantization": ["none", "awq"],
    }
    space = parse_space(SpaceConfig(parameters=parameters))
    assert narrowed(space, model=QWEN3, hardware=T4) == space


def test_the_default_is_never_taken_out() -> None:
    space = parse_space(SpaceConfig(parameters={"quantization": ["none", "awq"]}))
    assert "none" in narrowed(space, model=QWEN3, hardware=T4)["quantization"].choices
