"""GPUs: on the bus, under a driver, visible, whole, free. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from sweeper.doctor.facts import DeviceFacts, Facts, GpuFacts
from sweeper.doctor.finding import Finding, ok, problem, unknown, warning

NVIDIA = "NVIDIA"
OURS_GIB = 1.0
"""Held memory below this is what driver and desktop take."""
GPU_HEADROOM = 0.25
"""4-bit weights are a quarter of those at 16 bits: the least a model can take."""


def gpu(facts: Facts) -> Iterator[Finding]:
    """Which GPUs this process may use, and why not more."""
    devices = facts.devices
    if devices.visible:
        yield from _seen(facts)
        return
    finding = _hidden(devices) or _not_driven(devices, in_container=facts.host.in_container)
    if finding is None:
        yield from _none(facts)
    elif facts.wanted.needs.torch and facts.wanted.kind != "cpu":
        yield finding
    else:
        # Not what this study runs on: worth a word, and nothing to stop for.
        yield warning("gpu", finding.told, finding.remedy)


def _hidden(devices: DeviceFacts) -> Finding | None:
    """GPUs that the driver shows, and the environment hides."""
    if not devices.gpus:
        return None
    return problem(
        "gpu",
        f"{_listed(devices.gpus)}, but CUDA_VISIBLE_DEVICES={devices.setting!r} names none of them",
        f"unset CUDA_VISIBLE_DEVICES, or set it to indices from 0 to {len(devices.gpus) - 1} "
        "separated by commas",
    )


def _not_driven(devices: DeviceFacts, *, in_container: bool) -> Finding | None:
    """A GPU that is there, and whose driver does not answer."""
    there = NVIDIA in (devices.on_bus or ()) or devices.kernel_driver or devices.nodes
    if not there:
        return None
    mismatch = "mismatch" in devices.nvml_error.lower()
    if mismatch:
        return problem(
            "gpu",
            f"the driver's kernel module ({devices.kernel_driver or 'unknown'}) and library are of "
            f"different versions: {devices.nvml_error}",
            "the driver was updated while it was in use: reboot, or reload the nvidia modules",
        )
    if in_container and not devices.nodes:
        return problem(
            "gpu",
            "the machine has an NVIDIA GPU, and this container was not given it",
            "start it with --gpus all (Docker with the NVIDIA container toolkit), or ask for "
            "nvidia.com/gpu in the pod's limits (Kubernetes)",
        )
    if devices.kernel_driver is None:
        return problem(
            "gpu",
            "an NVIDIA GPU is on the bus, and no driver is loaded for it",
            "install the driver of your distribution (nvidia-smi must answer), and reboot",
        )
    why = devices.nvml_error or "it lists no GPU"
    return problem(
        "gpu",
        f"driver {devices.kernel_driver} is loaded, and its library does not answer: {why}",
        "run nvidia-smi and mend what it says; in a container give it the library "
        "(NVIDIA_DRIVER_CAPABILITIES=compute,utility) and /dev/nvidia*; check dmesg for Xid",
    )


def _none(facts: Facts) -> Iterator[Finding]:
    devices = facts.devices
    if facts.wanted.kind == "cuda" and facts.wanted.needs.torch:
        yield problem(
            "gpu",
            "the hardware asked for is a GPU, and none is here",
            "run it where the GPU is; here: hardware=auto, or engine=simulate for a prediction",
        )
    elif devices.on_bus is None:
        yield unknown("gpu", "none is seen, and the PCI bus is not shown here")
    elif others := sorted(set(devices.on_bus) - {NVIDIA}):
        yield ok("gpu", f"{', '.join(others)}: only NVIDIA GPUs are used, so this is a CPU machine")
    else:
        yield ok("gpu", "none; engines run on the processor")


def _seen(facts: Facts) -> Iterator[Finding]:
    devices = facts.devices
    part = f"{devices.visible} of " if devices.visible < len(devices.gpus) else ""
    told = f"{part}{_listed(devices.gpus)}, driver {devices.driver}, CUDA {devices.cuda}"
    if len({gpu.name for gpu in devices.gpus}) > 1 and devices.visible > 1:
        yield warning(
            "gpu",
            f"{told}: they are unlike, and the weakest decides",
            "let CUDA_VISIBLE_DEVICES name equal ones",
        )
    else:
        yield ok("gpu", told)
    yield from _modes(devices)
    yield from _held(devices)
    yield from _size(facts)


def _modes(devices: DeviceFacts) -> Iterator[Finding]:
    sliced = [gpu for gpu in devices.gpus if gpu.mig is not None]
    if any(gpu.mig == 0 for gpu in sliced):
        yield problem(
            "mig",
            "a GPU is in MIG mode and has no slice: nothing can run on it",
            "make slices (nvidia-smi mig -cgi ... -C), or leave MIG mode: nvidia-smi -mig 0",
        )
    elif sliced:
        count = sum(gpu.mig or 0 for gpu in sliced)
        yield warning(
            "mig",
            f"MIG mode, {count} slices: a deployment uses one slice, and neighbours share power "
            "and bandwidth",
            "name one slice, CUDA_VISIBLE_DEVICES=MIG-..., and read results as those of a slice",
        )
    if devices.mps:
        yield warning(
            "mps",
            "a multi-process service shares the GPUs: memory and speed depend on its other clients",
            "end it for measurements: echo quit | nvidia-cuda-mps-control",
        )
    modes = {gpu.compute_mode for gpu in devices.gpus}
    if "prohibited" in modes:
        yield problem(
            "compute mode", "a GPU forbids compute", "allow it: nvidia-smi --compute-mode=0"
        )
    elif "exclusive" in modes and devices.visible > 1:
        yield warning(
            "compute mode",
            "a GPU takes one process only; workers that share a GPU fail",
            "nvidia-smi --compute-mode=0",
        )


def _held(devices: DeviceFacts) -> Iterator[Finding]:
    """Memory that others hold. Who holds it is told as far as the driver does."""
    taken = sum(gpu.total_gib - gpu.free_gib for gpu in devices.gpus)
    by = [name for gpu in devices.gpus for name in gpu.holders]
    if taken < OURS_GIB * len(devices.gpus) and not by:
        yield ok("gpu memory", "free")
        return
    who = ", ".join(by) or "processes that are not visible here"
    yield warning(
        "gpu memory",
        f"{taken:.1f} GiB are in use, by {who}",
        "end them (VLLM::EngineCore is what a killed server leaves), or let CUDA_VISIBLE_DEVICES "
        "name free GPUs",
    )


def _size(facts: Facts) -> Iterator[Finding]:
    weights, devices = facts.wanted.weights_gib, facts.devices
    if weights is None or not facts.wanted.needs.torch or facts.wanted.kind == "cpu":
        return
    there = sum(sorted(gpu.total_gib for gpu in devices.gpus)[-devices.visible :])
    if weights * GPU_HEADROOM > there:
        yield problem(
            "model size",
            f"{facts.wanted.model} has {weights:.0f} GiB of weights at 16 bits, the GPUs "
            f"{there:.0f} GiB together",
            "use a smaller model or more GPUs",
        )
    elif weights > there:
        yield warning(
            "model size",
            f"{facts.wanted.model} has {weights:.0f} GiB of weights at 16 bits, the GPUs "
            f"{there:.0f} GiB together: it fits quantized only",
            "search a space with quantization, and see `python -m sweeper estimate`",
        )


def _listed(gpus: tuple[GpuFacts, ...]) -> str:
    counts = Counter(f"{gpu.name} ({gpu.total_gib:.0f} GiB)" for gpu in gpus)
    return ", ".join(f"{count} x {name}" for name, count in counts.items())
