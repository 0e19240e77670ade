from __future__ import annotations

import json
from dataclasses import replace

import pytest

from sweeper.config.schema import HardwareConfig
from sweeper.errors import ConfigError
from sweeper.hardware import detect as module
from sweeper.hardware.detect import detect, resolve, to_manifest
from sweeper.hardware.host import Host
from sweeper.hardware.nvidia import Driver, Gpu

HOST = Host("Some CPU", 16, ("avx2",), 128.0, 100.0)
GPUS = (Gpu("NVIDIA H200", 141.0, 140.0, (9, 0)), Gpu("NVIDIA H200", 140.0, 90.0, (9, 0)))
DRIVER = Driver("570.1", "12.8", GPUS)


@pytest.fixture
def gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "read_host", lambda: HOST)
    monkeypatch.setattr(module, "read_driver", lambda: DRIVER)


@pytest.fixture
def no_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "read_host", lambda: HOST)
    monkeypatch.setattr(module, "read_driver", lambda: None)


@pytest.mark.usefixtures("gpus")
def test_gpus_are_found() -> None:
    facts = detect()
    assert (facts.kind, facts.name, facts.device_count) == ("cuda", "NVIDIA H200", 2)
    assert (facts.memory_gib, facts.free_memory_gib) == (140.0, 90.0), "the smallest decides"
    assert (facts.bandwidth_gbs, facts.compute_capability) == (4800, (9, 0))
    assert facts.detected


@pytest.mark.usefixtures("no_gpus")
def test_the_cpu_where_there_is_no_gpu() -> None:
    facts = resolve(HardwareConfig())
    assert (facts.kind, facts.memory_gib, facts.cpu_cores) == ("cpu", 128.0, 16)
    assert facts.detected


@pytest.mark.usefixtures("gpus")
def test_the_cpu_by_wish() -> None:
    facts = resolve(HardwareConfig(name="cpu", kind="cpu"))
    assert (facts.kind, facts.detected) == ("cpu", False)


@pytest.mark.usefixtures("gpus")
def test_fewer_devices_and_other_figures() -> None:
    facts = resolve(HardwareConfig(device_count=1, bandwidth_gbs=1.0, compute_capability=[8, 0]))
    assert (facts.device_count, facts.bandwidth_gbs) == (1, 1.0)
    assert (facts.tflops_bf16, facts.compute_capability) == (989, (8, 0))


@pytest.mark.usefixtures("gpus")
@pytest.mark.parametrize("count", [0, 3])
def test_more_devices_than_there_are(count: int) -> None:
    with pytest.raises(ConfigError, match=f"device_count={count}"):
        resolve(HardwareConfig(device_count=count))


@pytest.mark.usefixtures("no_gpus")
def test_gpus_that_are_only_described() -> None:
    facts = resolve(
        HardwareConfig(
            name="h100", kind="cuda", device_count=8, memory_gib=80.0, compute_capability=[9, 0]
        )
    )
    assert (facts.device_count, facts.memory_gib, facts.detected) == (8, 80.0, False)
    assert facts.free_memory_gib is None


@pytest.mark.parametrize(
    ("config", "match"),
    [
        (HardwareConfig(kind="cuda", name="x"), "memory_gib"),
        (HardwareConfig(kind="tpu"), "kind=tpu"),
        (HardwareConfig(kind="cuda", memory_gib=1.0, compute_capability=[9]), "compute_capability"),
    ],
)
def test_descriptions_with_too_little_in_them(config: HardwareConfig, match: str) -> None:
    with pytest.raises(ConfigError, match=match):
        resolve(config)


@pytest.mark.usefixtures("gpus")
def test_the_manifest_is_plain_and_steady() -> None:
    facts = detect()
    manifest = to_manifest(facts)
    assert json.loads(json.dumps(manifest)) == manifest
    assert to_manifest(replace(facts, free_memory_gib=1.0)) == manifest
    assert manifest["compute_capability"] == [9, 0]
    assert "bandwidth_gbs" not in to_manifest(replace(facts, bandwidth_gbs=None))


def test_this_machine_can_be_read() -> None:
    facts = detect()
    assert facts.device_count >= 1
    assert facts.memory_gib > 0
    assert facts.cpu_cores >= 1
