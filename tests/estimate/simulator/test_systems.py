"""Names of GPUs, as people, drivers and the simulator write them."""

from __future__ import annotations

import pytest

from sweeper.errors import ConfigError
from sweeper.estimate.simulator.systems import SYSTEMS, system_of


@pytest.mark.parametrize(
    ("hardware", "system"),
    [
        ("h200", "h200_sxm"),
        ("NVIDIA H200", "h200_sxm"),
        ("h100_80gb", "h100_sxm"),
        ("NVIDIA H100 80GB HBM3", "h100_sxm"),
        ("h100_sxm", "h100_sxm"),
        ("a100_80gb", "a100_sxm"),
        ("NVIDIA A100-SXM4-80GB", "a100_sxm"),
        ("l40s", "l40s"),
        ("NVIDIA B200", "b200_sxm"),
        ("NVIDIA GB200", "gb200"),
        ("NVIDIA RTX PRO 6000 Blackwell Server Edition", "rtx_pro_6000_server"),
    ],
)
def test_one_gpu_by_its_names(hardware: str, system: str) -> None:
    assert system_of(hardware).name == system


@pytest.mark.parametrize(
    "hardware",
    ["NVIDIA H100 PCIe", "a100_40gb", "NVIDIA H100 NVL", "l4", "NVIDIA A100-SXM4-80GB MIG 1g.10gb"],
)
def test_a_gpu_of_the_same_family_is_another_gpu(hardware: str) -> None:
    with pytest.raises(ConfigError, match="no measured operators"):
        system_of(hardware)


def test_an_unknown_gpu_is_told_the_nearest_and_all() -> None:
    with pytest.raises(ConfigError) as caught:
        system_of("h20_0")
    assert caught.value.remedy.startswith("did you mean hardware=h200? it has: gb300, ")
    assert all(system.known_as in caught.value.remedy for system in SYSTEMS)


def test_every_system_is_found_by_the_name_that_is_told() -> None:
    assert [system_of(system.known_as) for system in SYSTEMS] == list(SYSTEMS)
