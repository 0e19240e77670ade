from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from sweeper.config.schema import ModelConfig
from sweeper.errors import ConfigError, ModelError
from sweeper.hardware.facts import HardwareFacts
from sweeper.models.embedded import SMOLLM2
from sweeper.models.fitness import (
    check_engine_device,
    check_runnable,
    same_gpu_model,
    weights_gib,
)
from sweeper.models.read import facts_from_config

SMALL = facts_from_config(SMOLLM2.config)
LARGE = replace(SMALL, parameters=7_600_000_000)
CPU = HardwareFacts("cpu", "Some CPU", 1, memory_gib=24.0, cpu_cores=2)
GPU = HardwareFacts("cuda", "Some GPU", 1, memory_gib=24.0)
QWEN = ModelConfig(name="qwen7b")


def test_small_models_run_on_a_cpu() -> None:
    check_runnable(ModelConfig(), SMALL, CPU)


def test_a_large_model_on_a_cpu_is_refused_with_the_ways_on() -> None:
    with pytest.raises(ModelError) as caught:
        check_runnable(QWEN, LARGE, CPU)
    message, remedy = caught.value.message, caught.value.remedy
    for part in ("qwen7b", "Some CPU", "2 cores", "24.0 GiB", "14.2 GiB"):
        assert part in message
    for part in (
        "model=smollm2",
        "estimate model=qwen7b hardware=h100_80gb",
        "engine=mock",
        "hardware=cpu",
    ):
        assert part in remedy


def test_asking_for_the_cpu_by_name_is_enough_where_it_fits() -> None:
    check_runnable(QWEN, LARGE, replace(CPU, detected=False))


def test_asking_does_not_make_memory() -> None:
    with pytest.raises(ModelError, match="more than there is") as caught:
        check_runnable(QWEN, LARGE, replace(CPU, detected=False, memory_gib=16.0))
    assert "hardware=cpu" not in caught.value.remedy


def test_a_small_model_in_less_memory_still() -> None:
    with pytest.raises(ModelError):
        check_runnable(ModelConfig(), SMALL, replace(CPU, memory_gib=0.3))


def test_a_gpu_is_refused_only_for_what_no_precision_fits() -> None:
    check_runnable(QWEN, LARGE, replace(GPU, memory_gib=6.0))
    with pytest.raises(ModelError, match="even in 4 bit"):
        check_runnable(QWEN, LARGE, replace(GPU, memory_gib=3.0))
    check_runnable(QWEN, LARGE, replace(GPU, memory_gib=3.0, device_count=2))


def test_a_described_gpu_must_be_here() -> None:
    described = replace(GPU, detected=False)
    with pytest.raises(ModelError, match="no usable NVIDIA GPU"):
        check_runnable(QWEN, LARGE, described, here=CPU)
    check_runnable(QWEN, LARGE, described, here=GPU)


@pytest.mark.parametrize(
    ("described", "real"),
    [
        ("h100_80gb", "NVIDIA H100 80GB HBM3"),
        ("h100-pcie", "NVIDIA H100 PCIe"),
        ("h200", "NVIDIA H200"),
        ("a100_80gb", "NVIDIA A100-SXM4-80GB"),
        ("l40s", "NVIDIA L40S"),
        ("l4", "NVIDIA L4"),
        ("a10g", "NVIDIA A10G"),
        ("t4", "Tesla T4"),
        ("b200", "NVIDIA B200"),
        ("rtx4090", "NVIDIA GeForce RTX 4090"),
        ("rtx 4090", "NVIDIA GeForce RTX 4090"),
        ("my-gpu", "NVIDIA H100 80GB HBM3"),
    ],
)
def test_a_described_name_finds_its_gpu(described: str, real: str) -> None:
    assert same_gpu_model(described, real)


@pytest.mark.parametrize(
    ("described", "real"),
    [
        ("h100_80gb", "NVIDIA H200"),
        ("h100_80gb", "NVIDIA A100-SXM4-80GB"),
        ("l4", "NVIDIA L40S"),
        ("l40s", "NVIDIA L4"),
        ("rtx4090", "NVIDIA GeForce RTX 3090"),
        ("h100_80gb", "Some GPU"),
    ],
)
def test_a_described_name_does_not_find_another(described: str, real: str) -> None:
    assert not same_gpu_model(described, real)


H100 = HardwareFacts("cuda", "NVIDIA H100 80GB HBM3", 2, memory_gib=79.6)


@pytest.mark.parametrize(
    "change",
    [{"name": "h200"}, {"memory_gib": 94.0}, {"memory_gib": 70.0}, {"device_count": 3}],
)
def test_a_description_of_another_gpu_is_refused(change: dict[str, Any]) -> None:
    described = replace(H100, name="h100_80gb", detected=False)
    check_runnable(QWEN, LARGE, described, here=H100)
    check_runnable(QWEN, LARGE, replace(described, memory_gib=76.0, device_count=1), here=H100)
    with pytest.raises(ModelError, match="H100 80GB HBM3") as caught:
        check_runnable(QWEN, None, replace(described, **change), here=H100)
    assert "leave hardware=auto" in caught.value.remedy


def test_what_was_detected_is_not_compared() -> None:
    check_runnable(QWEN, LARGE, replace(H100, memory_gib=40.0), here=H100)


def test_an_engine_for_another_device_is_refused() -> None:
    check_engine_device("cpu", "cpu")
    check_engine_device("cuda", "cuda")
    with pytest.raises(ConfigError, match=r"built for a CPU, but .* NVIDIA GPUs") as caught:
        check_engine_device("cpu", "cuda")
    assert "make setup EXTRA=vllm" in caught.value.remedy
    assert "hardware=cpu" in caught.value.remedy
    with pytest.raises(ConfigError, match=r"built for NVIDIA GPUs, but .* a CPU") as caught:
        check_engine_device("cuda", "cpu")
    assert "make setup EXTRA=cpu" in caught.value.remedy


def test_an_unknown_shape_proves_nothing() -> None:
    check_runnable(QWEN, None, CPU)


def test_memory_of_weights() -> None:
    assert weights_gib(replace(SMALL, parameters=2**30)) == 2.0
