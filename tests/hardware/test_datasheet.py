from __future__ import annotations

import pytest

from sweeper.hardware.datasheet import peaks_of


@pytest.mark.parametrize(
    ("name", "bandwidth"),
    [
        ("NVIDIA H100 80GB HBM3", 3352),
        ("NVIDIA H100 PCIe", 2039),
        ("NVIDIA H200", 4800),
        ("NVIDIA A100-SXM4-80GB", 2039),
        ("NVIDIA A100-SXM4-40GB", 1555),
        ("NVIDIA A100 80GB PCIe", 1935),
        ("NVIDIA L4", 300),
        ("NVIDIA L40S", 864),
        ("Tesla T4", 320),
        ("NVIDIA GeForce RTX 4090", 1008),
        ("NVIDIA A10G", 600),
    ],
)
def test_names_as_drivers_write_them(name: str, bandwidth: float) -> None:
    peaks = peaks_of(name)
    assert peaks is not None
    assert peaks.bandwidth_gbs == bandwidth


@pytest.mark.parametrize(
    "name", ["AMD EPYC", "NVIDIA GeForce GTX 1080", "NVIDIA A100-SXM4-40GB MIG 1g.5gb", ""]
)
def test_what_is_not_known_is_absent(name: str) -> None:
    assert peaks_of(name) is None
