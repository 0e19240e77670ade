"""A launch's hold on its devices: who waits, what is cleaned up, and what stops the study."""

from __future__ import annotations

import json
import os
import secrets
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sweeper.config.schema import EngineConfig
from sweeper.engine import orphans, procfs, runtime_folder
from sweeper.engine.device_lock import DeviceBusyError, DeviceLock, lock_path
from sweeper.engine.mock.engine import MockEngine
from sweeper.engine.orphans import LaunchRecord
from sweeper.engine.protocol import Engine, LaunchFailure, StopFailure
from sweeper.engine.registry import create
from sweeper.verdicts import Phase, Verdict
from tests.engine.conftest import Bench, wait_for

DEVICE = "GPU-test"

TUNER = """
import sys, time
from pathlib import Path
from sweeper.config.schema import EngineConfig
from sweeper.engine.protocol import LaunchRequest
from sweeper.engine.registry import create
folder, token = Path(sys.argv[1]), sys.argv[2]
options = {"faults": {"child": "session", "hang_at": "stop"}, "devices": [sys.argv[3]]}
engine = create(EngineConfig(name="mock", options=options), cache_dir=folder)
request = LaunchRequest("mock", {}, folder / "run", "trial", 20.0, token, study="theirs",
    record_path=folder / "launch.json")
with engine.serve(request):
    print("serving", flush=True)
    time.sleep(60)
"""


@pytest.fixture(autouse=True)
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in which the tuners of one test meet."""
    monkeypatch.setenv(runtime_folder.VARIABLE, str(tmp_path / "machine"))
    monkeypatch.setattr(orphans, "TERM_PATIENCE_S", 0.3)
    return tmp_path / "machine"


def engine_on(bench: Bench, memory: Path | None = None, **options: Any) -> Engine:
    dials = {"devices": [DEVICE], "device_memory": "" if memory is None else str(memory), **options}
    cfg = EngineConfig(
        name="mock",
        options=dials,
        stop_timeout_s=1.0,
        device_wait_s=0.3,
        memory_patience_s=0.3,
    )
    return create(cfg, cache_dir=bench.folder / "cache")


def told(path: Path, free_gib: float, *holders: tuple[int, str, float]) -> Path:
    shown = [{"pid": pid, "name": name, "gib": gib} for pid, name, gib in holders]
    fresh = path.with_suffix(".new")
    fresh.write_text(json.dumps({"total_gib": 80, "free_gib": free_gib, "holders": shown}))
    fresh.replace(path)
    return path


@pytest.fixture
def gpu(tmp_path: Path) -> Path:
    return told(tmp_path / "gpu.json", 80)


def is_free(machine: Path) -> bool:
    lock = DeviceLock([DEVICE], machine, {})
    try:
        lock.acquire(0, print)
    except DeviceBusyError:
        return False
    lock.release()
    return True


@pytest.fixture
def tuner(bench: Bench) -> Iterator[tuple[subprocess.Popen[bytes], Bench]]:
    """Another study's tuner that serves on the device."""
    other = Bench(bench.folder / "other")
    command = [sys.executable, "-c", TUNER, str(other.folder), other.token, DEVICE]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"serving\n"
        yield process, other
        process.kill()
    for pid in other.left():
        os.kill(pid, signal.SIGKILL)


def test_the_device_is_held_from_before_the_start_until_after_the_stop(
    bench: Bench, machine: Path
) -> None:
    with engine_on(bench).serve(bench.request(study="mine")):
        assert not is_free(machine)
        record = machine / f"sweeper-{os.getuid()}" / lock_path(machine, DEVICE).name
        assert record.with_suffix(".json").exists()
    assert is_free(machine)
    assert not record.with_suffix(".json").exists()


def test_a_failed_start_lets_the_device_go(bench: Bench, machine: Path) -> None:
    engine = engine_on(bench, faults={"die_at": "start"})
    with pytest.raises(LaunchFailure) as caught, engine.serve(bench.request()):
        pass
    assert caught.value.halt is None
    assert is_free(machine)


def test_a_second_tuner_is_told_whom_it_waits_for_and_nothing_of_the_first_is_touched(
    bench: Bench, tuner: tuple[subprocess.Popen[bytes], Bench]
) -> None:
    process, other = tuner
    notes: list[str] = []
    with (
        pytest.raises(LaunchFailure) as caught,
        engine_on(bench).serve(bench.request(tell=notes.append)),
    ):
        pass
    found = caught.value.diagnosis
    assert (found.verdict, found.phase) == (Verdict.INFRA, Phase.START)
    assert found.learnt["rule"] == "device_busy"
    assert f"process {process.pid}, study theirs" in found.cause
    assert "device_wait_s" in found.remedy
    assert len(notes) == 1
    assert f"process {process.pid}, study theirs" in notes[0]
    assert process.poll() is None
    assert len(other.left()) == 2
    assert not (bench.folder / "run").exists(), "nothing was started"


def test_what_a_killed_tuner_of_another_study_left_on_the_device_is_ended_first(
    bench: Bench, tuner: tuple[subprocess.Popen[bytes], Bench]
) -> None:
    process, other = tuner
    process.kill()
    process.wait()
    left = other.left()
    assert len(left) == 2
    copied = (Path("/proc") / str(min(left)) / "cmdline").read_bytes().split(b"\0")[:-1]
    marked = {**os.environ, procfs.TOKEN_VARIABLE: f"other-{secrets.token_hex(8)}"}
    sleeper = "import time; time.sleep(60)"
    # Decoys: one that looks like the server but for its token, one whose record names its pid.
    decoy = subprocess.Popen([sys.executable, "-c", sleeper, *copied], env=marked)
    notes: list[str] = []
    with engine_on(bench).serve(bench.request(tell=notes.append)):
        assert not other.left()
        assert decoy.poll() is None
    assert {f"ended process {pid}, left on this device by a killed tuner" for pid in left} == set(
        notes
    )
    decoy.kill()
    decoy.wait()


def test_a_record_of_a_living_tuner_is_never_reaped(bench: Bench, machine: Path) -> None:
    """Somebody removed its lock file: its launch lives, and the device only looks free."""
    own = runtime_folder.own_folder()
    record = LaunchRecord((own / lock_path(own, DEVICE).name).with_suffix(".json"))
    command = [sys.executable, "-c", "import time; time.sleep(60)"]
    with subprocess.Popen(command) as living:
        process = procfs.read(living.pid)
        assert process is not None
        note = {
            "token": "theirs",
            "boot_id": procfs.boot_id(),
            "tuner_pid": living.pid,
            "tuner": list(process.identity),
            "leader": list(process.identity),
            "processes": [list(process.identity)],
        }
        record.path.write_text(json.dumps(note))
        with pytest.raises(LaunchFailure) as caught, engine_on(bench).serve(bench.request()):
            pass
        assert "living tuner" in caught.value.diagnosis.cause
        assert living.poll() is None
        living.kill()
    assert is_free(machine)
    with engine_on(bench).serve(bench.request()):
        assert not is_free(machine)


def test_memory_that_does_not_come_back_is_told_with_what_was_measured_kept(
    bench: Bench, gpu: Path, machine: Path
) -> None:
    with pytest.raises(StopFailure) as caught, engine_on(bench, gpu).serve(bench.request()):
        told(gpu, 50)
    found = caught.value.diagnosis
    assert (found.verdict, found.phase) == (Verdict.INFRA, Phase.STOP)
    assert "30.0 GiB of the device did not come back" in found.cause
    assert not bench.left()
    assert is_free(machine)


def test_memory_that_a_failed_start_keeps_halts_and_leaves_its_verdict(
    bench: Bench, gpu: Path
) -> None:
    engine = engine_on(bench, gpu, faults={"hang_at": "start"})
    notes: list[str] = []
    with pytest.raises(LaunchFailure) as caught:
        request = bench.request(start_timeout_s=1.0, tell=notes.append)
        original = MockEngine.command

        def command(self: Any, *given: Any) -> Any:
            told(gpu, 50)
            return original(self, *given)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(MockEngine, "command", command)
            with engine.serve(request):
                pass
    assert caught.value.diagnosis.verdict is Verdict.STARTUP_TIMEOUT
    assert caught.value.halt is not None
    assert "did not come back" in caught.value.halt.cause


def test_memory_that_somebody_else_took_is_noted_and_the_next_start_waits_for_rest(
    bench: Bench, gpu: Path
) -> None:
    notes: list[str] = []
    with engine_on(bench, gpu).serve(bench.request(tell=notes.append)):
        told(gpu, 50, (1, "init", 30.0))
    assert "taken by others" in notes[0]
    moving = [50.0]

    class Moving:
        is_exact = True

        def read(self) -> Any:
            from sweeper.engine.device_memory import Reading
            from sweeper.hardware.nvidia import Holder

            moving[0] -= 5
            return Reading(80, moving[0], (Holder(1, "init", 80 - moving[0]),))

    engine = engine_on(bench, gpu)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(MockEngine, "device_memory", lambda self: Moving())
        with pytest.raises(LaunchFailure) as caught, engine.serve(bench.request()):
            pass
    found = caught.value.diagnosis
    assert (found.verdict, found.learnt["rule"]) == (Verdict.INFRA, "memory_unstable")
    assert "process 1 (init)" in found.cause


def test_what_came_onto_the_device_meanwhile_takes_the_blame(bench: Bench, gpu: Path) -> None:
    text = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 136.00 MiB."
    engine = engine_on(bench, gpu, faults={"die_at": "start", "log_text": text})
    original = MockEngine.command

    def command(self: Any, *given: Any) -> Any:
        told(gpu, 50, (1, "init", 30.0))
        return original(self, *given)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(MockEngine, "command", command)
        with pytest.raises(LaunchFailure) as caught, engine.serve(bench.request()):
            pass
    found = caught.value.diagnosis
    assert found.verdict is Verdict.INFRA
    assert "process 1 (init) holds 30.0 GiB" in found.cause
    assert found.learnt["foreign_memory_gib"] == 30.0
    told(gpu, 50, (1, "init", 30.0))
    with pytest.raises(LaunchFailure) as caught, engine.serve(bench.request()):
        pass
    found = caught.value.diagnosis
    assert found.verdict is Verdict.CAPACITY, "it has to fit beside what was there before"
    assert "process 1 (init) holds 30.0 GiB" in found.evidence


def test_ctrl_c_does_not_wait_for_memory(bench: Bench, gpu: Path, machine: Path) -> None:
    with pytest.raises(KeyboardInterrupt), engine_on(bench, gpu).serve(bench.request()):
        told(gpu, 10)
        raise KeyboardInterrupt
    assert is_free(machine)
    assert not bench.left()


def test_a_process_that_outlives_kill_halts_and_its_note_stays(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    from sweeper.engine.family import Family

    real = Family.end

    def end(self: Family, patience_s: float) -> set[procfs.Identity]:
        real(self, patience_s)
        assert self.leader is not None
        return {self.leader}

    with (
        pytest.raises(StopFailure, match="outlived SIGKILL"),
        engine_on(bench).serve(bench.request()),
    ):
        monkeypatch.setattr(Family, "end", end)
    assert (bench.folder / "launch.json").exists()
    with pytest.raises(StopFailure, match="an earlier launch"):
        orphans.reap(bench.folder / "launch.json")
    assert (bench.folder / "launch.json").exists()
    wait_for(lambda: not bench.left())
