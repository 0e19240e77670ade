"""Peak figures of GPUs from their makers' data sheets, for detected devices.

Bandwidth is in GB/s (10^9 bytes), compute in dense bf16 TFLOP/s (fp16 on devices without bf16);
vendors also print figures with sparsity, twice as high and of no use here. They are peaks:
what a machine reaches is measured elsewhere.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Peaks:
    """What one device reaches at most.

    Attributes:
        bandwidth_gbs: memory bandwidth, GB/s.
        tflops_bf16: dense bf16 TFLOP/s (fp16 on devices without bf16).
        tflops_float32: TFLOP/s in float32, None where not known.
        cache_mib: its on-chip caches together, which memory traffic may pass by; None if not known.
        source: ``datasheet`` or ``measured``.
    """

    bandwidth_gbs: float
    tflops_bf16: float
    tflops_float32: float | None = None
    cache_mib: float | None = None
    source: str = "datasheet"


# Looked for in the driver's name of the device, in this order: the particular before the general.
_TABLE: tuple[tuple[tuple[str, ...], Peaks], ...] = (
    (("B200",), Peaks(8000, 2250)),
    (("H200",), Peaks(4800, 989)),
    (("H100", "NVL"), Peaks(3938, 835)),
    (("H100", "PCIe"), Peaks(2039, 756)),
    (("H100",), Peaks(3352, 989)),
    (("A100", "80GB", "PCIe"), Peaks(1935, 312)),
    (("A100", "80GB"), Peaks(2039, 312)),
    (("A100",), Peaks(1555, 312)),
    (("L40S",), Peaks(864, 362)),
    (("L40",), Peaks(864, 181)),
    (("L4",), Peaks(300, 121)),
    (("A40",), Peaks(696, 150)),
    (("A30",), Peaks(933, 165)),
    (("A10G",), Peaks(600, 70)),
    (("A10",), Peaks(600, 125)),
    (("V100",), Peaks(900, 125)),
    (("T4",), Peaks(320, 65)),
    (("RTX 5090",), Peaks(1792, 210)),
    (("RTX 4090",), Peaks(1008, 165)),
    (("RTX 3090",), Peaks(936, 71)),
    (("RTX A6000",), Peaks(768, 155)),
)


def peaks_of(name: str) -> Peaks | None:
    """Peaks of the device with that name, None if it is not in the table.

    A slice of a device (MIG) has a share of them that the name does not tell, so it has none.
    """
    if "MIG" in name:
        return None
    words = set(name.replace("-", " ").split())
    for needles, peaks in _TABLE:
        if all(_found(needle, name, words) for needle in needles):
            return peaks
    return None


def _found(needle: str, name: str, words: set[str]) -> bool:
    """Whole words only, so that L4 is not found in L40S; several words may stand anywhere."""
    return needle in name if " " in needle else needle in words
