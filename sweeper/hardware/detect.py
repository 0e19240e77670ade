"""What a study runs on: read off this machine, or taken from conf/hardware."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from sweeper.config.schema import HardwareConfig
from sweeper.errors import ConfigError
from sweeper.hardware.datasheet import peaks_of
from sweeper.hardware.facts import REMOTE, HardwareFacts
from sweeper.hardware.host import Host, read_host
from sweeper.hardware.nvidia import Driver, read_driver


def detect() -> HardwareFacts:
    """The GPUs this process may use, or the CPU where there are none."""
    host, driver = read_host(), read_driver()
    return _gpu_facts(driver, host) if driver else _cpu_facts(host)


def resolve(cfg: HardwareConfig) -> HardwareFacts:
    """The hardware of a study.

    ``kind: auto`` detects, and any other field given then replaces what was found (fewer devices,
    or figures the data sheets here lack). ``kind: cuda`` describes GPUs that need not be here;
    ``kind: cpu`` is this machine's CPU by explicit wish.

    Raises:
        ConfigError: more devices asked for than there are, or a description with too little in it.
    """
    if cfg.kind == "auto":
        return _adjusted(detect(), cfg)
    if cfg.kind == "cpu":
        return _adjusted(replace(_cpu_facts(read_host()), detected=False), cfg)
    if cfg.kind == "cuda":
        return _described(cfg)
    raise ConfigError(f"hardware.kind={cfg.kind} is not known", "use one of: auto, cuda, cpu")


def to_manifest(facts: HardwareFacts) -> dict[str, Any]:
    """Conditions under which numbers were measured; the same machine gives the same at any time.

    Free memory is left out, because it changes from hour to hour, and so is what is unknown.
    """
    entries = {
        "kind": facts.kind,
        "name": facts.name,
        "device_count": facts.device_count,
        "memory_gib": round(facts.memory_gib, 1) or None,
        "compute_capability": _listed(facts.compute_capability),
        "driver": facts.driver,
        "cuda": facts.cuda,
        "cpu_model": facts.cpu_model or None,
        "cpu_cores": None if facts.kind == REMOTE else facts.cpu_cores,
        "cpu_features": list(facts.cpu_features) or None,
        "host_memory_gib": round(facts.host_memory_gib, 1) or None,
        "bandwidth_gbs": facts.bandwidth_gbs,
        "tflops_bf16": facts.tflops_bf16,
        "tflops_float32": facts.tflops_float32,
        "cache_mib": facts.cache_mib,
        "peaks_source": facts.peaks_source if facts.bandwidth_gbs else None,
        "detected": facts.detected,
    }
    return {key: value for key, value in entries.items() if value is not None}


def _cpu_facts(host: Host) -> HardwareFacts:
    return HardwareFacts(
        kind="cpu",
        name=host.cpu_model,
        device_count=1,
        memory_gib=host.memory_gib,
        free_memory_gib=host.free_memory_gib,
        cpu_model=host.cpu_model,
        cpu_cores=host.cpu_cores,
        cpu_features=host.cpu_features,
        host_memory_gib=host.memory_gib,
    )


def _gpu_facts(driver: Driver, host: Host) -> HardwareFacts:
    # A deployment spreads evenly, so the smallest of unlike GPUs decides.
    smallest = min(driver.gpus, key=lambda gpu: gpu.memory_gib)
    peaks = peaks_of(smallest.name)
    return HardwareFacts(
        kind="cuda",
        name=smallest.name,
        device_count=len(driver.gpus),
        memory_gib=smallest.memory_gib,
        free_memory_gib=min(gpu.free_memory_gib for gpu in driver.gpus),
        compute_capability=smallest.compute_capability,
        driver=driver.version,
        cuda=driver.cuda,
        cpu_model=host.cpu_model,
        cpu_cores=host.cpu_cores,
        cpu_features=host.cpu_features,
        host_memory_gib=host.memory_gib,
        bandwidth_gbs=peaks.bandwidth_gbs if peaks else None,
        tflops_bf16=peaks.tflops_bf16 if peaks else None,
    )


def _adjusted(facts: HardwareFacts, cfg: HardwareConfig) -> HardwareFacts:
    return replace(
        facts,
        memory_gib=cfg.memory_gib or facts.memory_gib,
        bandwidth_gbs=cfg.bandwidth_gbs or facts.bandwidth_gbs,
        tflops_bf16=cfg.tflops_bf16 or facts.tflops_bf16,
        device_count=_allowed_count(facts, cfg.device_count),
        compute_capability=_capability(cfg) or facts.compute_capability,
    )


def _allowed_count(facts: HardwareFacts, asked: int | None) -> int:
    if asked is None:
        return facts.device_count
    if not 1 <= asked <= facts.device_count:
        raise ConfigError(
            f"hardware.device_count={asked}, but this machine has {facts.device_count} x "
            f"{facts.name}",
            f"ask for 1 to {facts.device_count}, or leave it out for all",
        )
    return asked


def _described(cfg: HardwareConfig) -> HardwareFacts:
    if cfg.memory_gib is None:
        raise ConfigError(
            f"hardware {cfg.name} has kind cuda but no memory_gib",
            "give hardware.memory_gib=GIB, or hardware=auto to read this machine",
        )
    return HardwareFacts(
        kind="cuda",
        name=cfg.name,
        device_count=cfg.device_count or 1,
        memory_gib=cfg.memory_gib,
        compute_capability=_capability(cfg),
        bandwidth_gbs=cfg.bandwidth_gbs,
        tflops_bf16=cfg.tflops_bf16,
        detected=False,
    )


def _capability(cfg: HardwareConfig) -> tuple[int, int] | None:
    if cfg.compute_capability is None:
        return None
    if len(cfg.compute_capability) != 2:
        raise ConfigError(
            f"hardware.compute_capability={cfg.compute_capability} is not [major, minor]",
            "write it as two numbers, for example [9, 0]",
        )
    major, minor = cfg.compute_capability
    return major, minor


def _listed(pair: tuple[int, int] | None) -> list[int] | None:
    return list(pair) if pair else None
