"""Which devices a launch occupies, by names that mean the same to every tuner of the machine."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence

from sweeper.hardware import nvidia

CPU = "cpu"
VISIBLE = "CUDA_VISIBLE_DEVICES"


def devices_of(kind: str, environment: Mapping[str, str]) -> tuple[str, ...]:
    """Names of the devices that a server may use.

    All GPUs that it can see count, not only those it needs: which of them it takes is its own
    choice, and two servers with the same choice would meet on the first.

    Args:
        kind: ``cuda`` or ``cpu``, what the engine runs on.
        environment: the server's.

    Returns:
        UUIDs of GPUs or of their slices; ``cpu`` for the whole host. Where the driver does not
        tell, the GPUs as the environment names them, so that at least equal settings exclude
        each other.
    """
    if kind != "cuda":
        return (CPU,)
    setting = environment.get(VISIBLE)
    told = nvidia.read_memory(setting)
    if told:
        return tuple(gpu.uuid for gpu in told)
    named = [part.strip() for part in (setting or "").split(",") if part.strip()]
    return tuple(f"gpu-{name}" for name in named) or ("gpu-all",)


def set_key(devices: Sequence[str]) -> str:
    """Short name of a set of devices, for a folder that only it uses."""
    names = sorted(set(devices))
    if names in ([], [CPU]):
        return CPU
    return hashlib.sha256("\n".join(names).encode()).hexdigest()[:12]
