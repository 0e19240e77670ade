from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import pytest

from sweeper.hardware import nvidia

GIB = 2**30


class FakeNvml:
    """What `nvidia` asks of pynvml, for two GPUs."""

    class NVMLError(Exception):
        pass

    def __init__(self, *, init_fails: bool = False, capability_fails: bool = False) -> None:
        self.init_fails, self.capability_fails = init_fails, capability_fails
        self.open = 0

    def nvmlInit(self) -> None:  # noqa: N802
        if self.init_fails:
            raise self.NVMLError("driver not loaded")
        self.open += 1

    def nvmlShutdown(self) -> None:  # noqa: N802
        self.open -= 1

    def nvmlDeviceGetCount(self) -> int:  # noqa: N802
        return 2

    def nvmlSystemGetDriverVersion(self) -> bytes:  # noqa: N802
        return b"570.1"

    def nvmlSystemGetCudaDriverVersion(self) -> int:  # noqa: N802
        return 12080

    def nvmlDeviceGetHandleByIndex(self, index: int) -> int:  # noqa: N802
        return index

    def nvmlDeviceGetHandleByUUID(self, uuid: str) -> int:  # noqa: N802
        raise self.NVMLError(f"no {uuid}")

    def nvmlDeviceGetUUID(self, handle: int) -> str:  # noqa: N802
        return ("GPU-aaaa-1", "GPU-bbbb-2")[handle]

    def nvmlDeviceGetMemoryInfo(self, handle: int) -> Any:  # noqa: N802
        return SimpleNamespace(total=(80 + handle) * GIB, free=70 * GIB)

    def nvmlDeviceGetName(self, handle: int) -> str:  # noqa: N802
        return f"GPU {handle}"

    def nvmlDeviceGetCudaComputeCapability(self, handle: int) -> list[int]:  # noqa: N802
        if self.capability_fails:
            raise self.NVMLError("not supported")
        return [9, 0]


def use(monkeypatch: pytest.MonkeyPatch, fake: Any, visible: str | None = None) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", fake)
    if visible is None:
        monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    else:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)


@pytest.mark.parametrize(
    ("setting", "expected"),
    [
        (None, [0, 1, 2]),
        ("", []),
        ("-1", []),
        ("NoDevFiles", []),
        ("2", [2]),
        ("2, 0", [2, 0]),
        ("0,7,1", [0]),
        ("GPU-aaaa,1", ["GPU-aaaa", 1]),
    ],
)
def test_visible_devices(setting: str | None, expected: list[int | str]) -> None:
    assert nvidia.visible(3, setting) == expected


def test_what_the_driver_tells(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = FakeNvml()
    use(monkeypatch, fake)
    driver = nvidia.read_driver()
    assert driver is not None
    assert (driver.version, driver.cuda, len(driver.gpus)) == ("570.1", "12.8", 2)
    assert driver.gpus[1] == nvidia.Gpu("GPU 1", 81.0, 70.0, (9, 0))
    assert fake.open == 0, "NVML is shut down again"


def test_the_users_choice_of_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, FakeNvml(), visible="GPU-bbbb")
    driver = nvidia.read_driver()
    assert driver is not None
    assert [gpu.name for gpu in driver.gpus] == ["GPU 1"]


def test_hidden_gpus_are_no_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, FakeNvml(), visible="")
    assert nvidia.read_driver() is None


def test_no_driver_and_no_library(monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, FakeNvml(init_fails=True))
    assert nvidia.read_driver() is None
    use(monkeypatch, None)
    assert nvidia.read_driver() is None


def test_a_capability_that_is_not_told_stays_open(monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, FakeNvml(capability_fails=True))
    driver = nvidia.read_driver()
    assert driver is not None
    assert driver.gpus[0].compute_capability is None


class HeldNvml(FakeNvml):
    """The first GPU is held by two processes, one of them by both kinds of work."""

    def nvmlDeviceGetComputeRunningProcesses(self, handle: int) -> list[Any]:  # noqa: N802
        if handle:
            raise self.NVMLError("not permitted")
        return [
            SimpleNamespace(pid=1, usedGpuMemory=20 * GIB),
            SimpleNamespace(pid=2**22 + 1, usedGpuMemory=None),
        ]

    def nvmlDeviceGetGraphicsRunningProcesses(self, handle: int) -> list[Any]:  # noqa: N802
        return [] if handle else [SimpleNamespace(pid=1, usedGpuMemory=20 * GIB)]


def test_memory_and_its_holders_are_told_by_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = HeldNvml()
    use(monkeypatch, fake)
    told = nvidia.read_memory("GPU-aaaa,1")
    assert told is not None
    assert [gpu.uuid for gpu in told] == ["GPU-aaaa-1", "GPU-bbbb-2"]
    assert [(gpu.total_gib, gpu.free_gib) for gpu in told] == [(80.0, 70.0), (81.0, 70.0)]
    first, second = told[0].holders
    assert (first.pid, first.gib) == (1, 20.0)
    assert first.name
    assert (second.gib, second.name) == (None, "not visible here")
    assert told[1].holders == ()
    assert fake.open == 0


def test_memory_without_a_driver_or_of_an_unknown_gpu_is_not_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    use(monkeypatch, HeldNvml(init_fails=True))
    assert nvidia.read_memory(None) is None
    use(monkeypatch, HeldNvml())
    assert nvidia.read_memory("GPU-cccc") is None
    assert nvidia.read_memory("") == ()
