"""What is known of the machine that runs the engine."""

from __future__ import annotations

from dataclasses import dataclass

REMOTE = "remote"
"""Kind of hardware that is not here, and of which only is known what its user says."""


@dataclass(frozen=True)
class HardwareFacts:
    """The devices an engine may use, and the machine around them.

    Attributes:
        kind: ``cuda``, ``cpu`` or ``remote``.
        name: device model as the driver or the kernel names it.
        device_count: GPUs (``cuda``) or 1 (``cpu``, and ``remote`` of unknown size).
        memory_gib: memory of one device; for ``cpu`` the machine's; 0 if it is not known, which
            only ``remote`` may be.
        free_memory_gib: free at the time of asking, None where only predicted.
        compute_capability: ``(major, minor)`` of a CUDA device, else None.
        driver: NVIDIA driver version, else None.
        cuda: CUDA version the driver offers, else None.
        cpu_model: processor name.
        cpu_cores: cores this process may use; of ``remote`` and described GPUs no statement.
        cpu_features: vector extensions of an x86 processor that kernels ask for, as the kernel
            names them (``avx2``, ``avx512f``, ``amx_tile``...); empty if not known.
        host_memory_gib: memory of the machine.
        bandwidth_gbs: memory bandwidth of one device, GB/s, or None.
        tflops_bf16: dense bf16 peak of one device, or None.
        tflops_float32: float32 peak of one device, or None.
        cache_mib: on-chip caches of one device together, or None.
        peaks_source: where these four come from: ``datasheet`` (or the user), or ``measured``.
        detected: True if read off this machine, False if taken from conf/hardware.
    """

    kind: str
    name: str
    device_count: int
    memory_gib: float
    free_memory_gib: float | None = None
    compute_capability: tuple[int, int] | None = None
    driver: str | None = None
    cuda: str | None = None
    cpu_model: str = ""
    cpu_cores: int = 1
    cpu_features: tuple[str, ...] = ()
    host_memory_gib: float = 0.0
    bandwidth_gbs: float | None = None
    tflops_bf16: float | None = None
    detected: bool = True
    tflops_float32: float | None = None
    cache_mib: float | None = None
    peaks_source: str = "datasheet"
