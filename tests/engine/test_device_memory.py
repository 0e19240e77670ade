"""Memory at rest before a start and back after a stop: judged on values, and with fakes."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweeper.engine import device_memory
from sweeper.engine.device_memory import (
    FileMemory,
    GpuMemory,
    HostMemory,
    Reading,
    Unrest,
    missing_of,
    wait_at_rest,
    wait_back,
)
from sweeper.hardware import nvidia
from sweeper.hardware.nvidia import Holder

OURS = Holder(7, "VLLM::EngineCore", 30.0)
FOREIGN = Holder(99, "python", 20.0)


class Fake:
    """Readings one after the other; the last one stays."""

    is_exact = True

    def __init__(self, *readings: Reading | None) -> None:
        self.readings = list(readings)
        self.reads = 0

    def read(self) -> Reading | None:
        self.reads += 1
        return self.readings.pop(0) if len(self.readings) > 1 else self.readings[0]


def free(gib: float, *holders: Holder) -> Reading:
    return Reading(80.0, gib, holders)


def back(source: Fake, before: Reading, told: list[str] | None = None) -> Unrest | None:
    tell = (lambda text: None) if told is None else told.append
    return wait_back(source, before, {7}, 0.05, tell, pause_s=0.01)


def test_rest_is_two_readings_that_agree() -> None:
    source = Fake(free(10), free(40), free(70), free(79.9), free(80))
    found = wait_at_rest(source, 10.0, 0.001)
    assert isinstance(found, Reading)
    assert found.free_gib == 80
    assert source.reads == 5


def test_memory_that_never_rests_names_who_holds_it() -> None:
    class Moving(Fake):
        def read(self) -> Reading:
            self.reads += 1
            return free(80 - self.reads, FOREIGN)

    found = wait_at_rest(Moving(), 0.05, 0.01)
    assert isinstance(found, Unrest)
    assert "process 99 (python) holds 20.0 GiB" in found.text


def test_memory_that_is_not_told_is_not_waited_for() -> None:
    assert wait_at_rest(Fake(None), 10.0, 0.001) is None
    assert back(Fake(None), free(80)) is None


def test_memory_that_comes_back_late_is_waited_for() -> None:
    source = Fake(free(50, OURS), free(60), free(79.8))
    assert wait_back(source, free(80), {7}, 10.0, print, pause_s=0.001) is None
    assert source.reads == 3


def test_what_a_process_of_ours_keeps_is_a_leak_with_its_pid() -> None:
    found = back(Fake(free(50, OURS, FOREIGN)), free(80))
    assert found is not None
    assert found.pids == (7,)
    assert "process 7 (VLLM::EngineCore) holds 30.0 GiB" in found.text
    assert "99" not in found.text


def test_what_nobody_holds_that_can_be_seen_is_a_leak() -> None:
    found = back(Fake(free(50)), free(80))
    assert found is not None
    assert "30.0 GiB of the device did not come back" in found.text
    assert "no process that can be seen" in found.text


@pytest.mark.parametrize("gib", [30.0, None])
def test_what_somebody_else_has_taken_is_no_leak_of_ours(gib: float | None) -> None:
    told: list[str] = []
    assert back(Fake(free(50, Holder(99, "python", gib))), free(80), told) is None
    assert "taken by others" in told[0]
    assert "process 99" in told[0]


def test_what_somebody_else_held_before_explains_nothing() -> None:
    assert back(Fake(free(30, FOREIGN)), free(60, FOREIGN)) is not None


@given(
    taken=st.floats(0, 79),
    others=st.lists(st.floats(0, 40), max_size=3),
    unseen=st.floats(0, 20),
)
def test_a_leak_is_what_others_do_not_explain(
    taken: float, others: list[float], unseen: float
) -> None:
    before = free(80)
    holders = tuple(Holder(100 + n, "p", gib) for n, gib in enumerate(others))
    now = Reading(80, 80 - sum(others) - unseen, holders)
    assert missing_of(before, now, {7}).is_leak == (
        before.free_gib - now.free_gib > before.tolerance_gib
        and before.free_gib - now.free_gib - sum(others) > before.tolerance_gib
    )
    assert missing_of(before, Reading(80, 80, (Holder(7, "x", taken),)), {7}).is_leak


def test_memory_of_the_host_is_looked_at_and_never_a_leak() -> None:
    source = HostMemory()
    now = source.read()
    assert now is not None
    assert 0 < now.free_gib <= now.total_gib
    assert wait_at_rest(source, 0.0) is not None
    assert wait_back(source, Reading(1e6, 1e6), {7}, 0.0, print) is None


def test_a_process_on_several_gpus_is_one_holder(monkeypatch: pytest.MonkeyPatch) -> None:
    def gpu(uuid: str, *holders: Holder) -> nvidia.GpuMemory:
        return nvidia.GpuMemory(uuid, 80.0, 50.0, holders)

    told = (gpu("a", Holder(1, "p", 10.0), Holder(2, "q", None)), gpu("b", Holder(1, "p", 5.0)))
    asked: list[str | None] = []

    def read(setting: str | None) -> Iterable[nvidia.GpuMemory]:
        asked.append(setting)
        return told

    monkeypatch.setattr(device_memory.nvidia, "read_memory", read)
    found = GpuMemory("0,1").read()
    assert found == Reading(160.0, 100.0, (Holder(1, "p", 15.0), Holder(2, "q", None)))
    assert asked == ["0,1"]
    monkeypatch.setattr(device_memory.nvidia, "read_memory", lambda setting: None)
    assert GpuMemory(None).read() is None


@pytest.mark.parametrize("text", ["", "[]", "{", '{"free_gib": 1}'])
def test_a_file_that_tells_nothing(tmp_path: Path, text: str) -> None:
    (tmp_path / "gpu").write_text(text)
    assert FileMemory(tmp_path / "gpu").read() is None
    assert FileMemory(tmp_path / "none").read() is None


def test_a_file_for_a_device(tmp_path: Path) -> None:
    told = {"total_gib": 80, "free_gib": 79, "holders": [{"pid": 1, "name": "p", "gib": 1.0}]}
    (tmp_path / "gpu").write_text(json.dumps(told))
    assert FileMemory(tmp_path / "gpu").read() == Reading(80.0, 79.0, (Holder(1, "p", 1.0),))
