"""Devices by names that mean the same to every tuner."""

from __future__ import annotations

import pytest

from sweeper.engine import devices
from sweeper.engine.devices import devices_of, set_key
from sweeper.hardware.nvidia import GpuMemory


def test_gpus_are_named_by_their_uuid_whatever_they_are_called(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def read(setting: str | None) -> tuple[GpuMemory, ...]:
        names = {"0": ("GPU-a",), "GPU-a": ("GPU-a",), None: ("GPU-a", "GPU-b")}[setting]
        return tuple(GpuMemory(name, 80.0, 80.0, ()) for name in names)

    monkeypatch.setattr(devices.nvidia, "read_memory", read)
    assert devices_of("cuda", {"CUDA_VISIBLE_DEVICES": "0"}) == ("GPU-a",)
    assert devices_of("cuda", {"CUDA_VISIBLE_DEVICES": "GPU-a"}) == ("GPU-a",)
    assert devices_of("cuda", {}) == ("GPU-a", "GPU-b")
    assert devices_of("cpu", {"CUDA_VISIBLE_DEVICES": "0"}) == ("cpu",)


def test_without_a_driver_that_tells_equal_settings_still_exclude_each_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(devices.nvidia, "read_memory", lambda setting: None)
    assert devices_of("cuda", {"CUDA_VISIBLE_DEVICES": "1, 0"}) == ("gpu-1", "gpu-0")
    assert devices_of("cuda", {}) == ("gpu-all",)


def test_a_set_has_one_key_in_any_order() -> None:
    assert set_key(["b", "a"]) == set_key(["a", "b", "a"]) != set_key(["a"])
    assert set_key(["cpu"]) == set_key([]) == "cpu"
