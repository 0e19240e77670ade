"""The hardware of a server that somebody else started: what the user says of it, or nothing."""

from __future__ import annotations

from sweeper.config.schema import HardwareConfig
from sweeper.hardware.detect import resolve
from sweeper.hardware.facts import REMOTE, HardwareFacts

UNKNOWN = "unknown"


def elsewhere(cfg: HardwareConfig) -> HardwareFacts:
    """What a server that was not started here runs on. This machine is not looked at.

    ``kind: auto`` means that nothing is known, and only figures given by hand are taken (a number
    of devices, say); without one the server counts as one device. ``hardware=h100_80gb`` describes
    it; ``kind: cpu`` says that it is this machine's processor.

    Raises:
        ConfigError: a description with too little in it.
    """
    if cfg.kind != "auto":
        return resolve(cfg)
    return HardwareFacts(
        kind=REMOTE,
        name=UNKNOWN if cfg.name == "auto" else cfg.name,
        device_count=cfg.device_count or 1,
        memory_gib=cfg.memory_gib or 0.0,
        bandwidth_gbs=cfg.bandwidth_gbs,
        tflops_bf16=cfg.tflops_bf16,
        detected=False,
    )
