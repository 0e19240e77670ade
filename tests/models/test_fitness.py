from __future__ import annotations

from dataclasses import replace

import pytest

from sweeper.config.schema import ModelConfig
from sweeper.errors import ModelError
from sweeper.hardware.facts import HardwareFacts
from sweeper.models.embedded import SMOLLM2
from sweeper.models.fitness import check_runnable, weights_gib
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


def test_an_unknown_shape_proves_nothing() -> None:
    check_runnable(QWEN, None, CPU)


def test_memory_of_weights() -> None:
    assert weights_gib(replace(SMALL, parameters=2**30)) == 2.0
