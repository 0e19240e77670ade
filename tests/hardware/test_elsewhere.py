"""What is said of a machine that is not this one."""

from __future__ import annotations

import pytest

from sweeper.config.compose import compose
from sweeper.config.schema import HardwareConfig
from sweeper.hardware import detect
from sweeper.hardware.detect import to_manifest
from sweeper.hardware.elsewhere import elsewhere


@pytest.fixture(autouse=True)
def nothing_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    def looked() -> None:
        raise AssertionError("this machine was looked at")

    monkeypatch.setattr(detect, "read_host", looked)
    monkeypatch.setattr(detect, "read_driver", looked)


def test_nothing_said_is_nothing_claimed() -> None:
    told = to_manifest(elsewhere(HardwareConfig()))
    assert told == {"kind": "remote", "name": "unknown", "device_count": 1, "detected": False}


def test_figures_by_hand() -> None:
    facts = elsewhere(HardwareConfig(device_count=8, memory_gib=80, bandwidth_gbs=3350))
    assert (facts.device_count, facts.memory_gib, facts.bandwidth_gbs) == (8, 80, 3350)
    assert to_manifest(facts)["memory_gib"] == 80


def test_a_described_machine_is_taken_at_its_word() -> None:
    cfg = compose(["hardware=h100_80gb", "hardware.device_count=4"]).hardware
    facts = elsewhere(cfg)
    assert (facts.kind, facts.name, facts.device_count) == ("cuda", "h100_80gb", 4)
    assert not facts.detected
