"""A start that is interrupted leaves no server behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from sweeper.engine import process as process_module
from sweeper.engine import procfs, shared_memory
from sweeper.engine.family import Family, uninterrupted
from sweeper.engine.process import ProcessGroup, inherited_environment
from sweeper.errors import EngineError
from tests.engine.conftest import Bench, wait_for

SLEEPER = [sys.executable, "-c", "import time; time.sleep(60)"]


def group(bench: Bench, argv: list[str] = SLEEPER) -> ProcessGroup:
    return ProcessGroup(
        argv,
        env=inherited_environment(),
        log_path=bench.folder / "log",
        token=bench.token,
        stop_timeout_s=1.0,
        record_paths=[bench.folder / "launch.json"],
    )


@pytest.fixture
def interrupted(monkeypatch: pytest.MonkeyPatch) -> list[subprocess.Popen[bytes]]:
    """Ctrl-C arrives when the process is there and nobody has noted it."""
    started: list[subprocess.Popen[bytes]] = []
    real = subprocess.Popen

    def start(*arguments: Any, **options: Any) -> Any:
        started.append(real(*arguments, **options))
        raise KeyboardInterrupt

    monkeypatch.setattr(process_module.subprocess, "Popen", start)
    return started


def test_stop_ends_what_an_interrupted_start_left(
    bench: Bench, interrupted: list[subprocess.Popen[bytes]]
) -> None:
    launch = group(bench)
    with pytest.raises(KeyboardInterrupt):
        launch.start()
    assert interrupted[0].poll() is None
    launch.stop()
    assert interrupted[0].wait(timeout=5) is not None
    assert not bench.left()
    assert not (bench.folder / "launch.json").exists()


def test_the_context_ends_it_by_itself(
    bench: Bench, interrupted: list[subprocess.Popen[bytes]]
) -> None:
    with pytest.raises(KeyboardInterrupt), group(bench):
        pytest.fail("the start was interrupted")
    assert interrupted[0].wait(timeout=5) is not None
    assert not bench.left()


def test_stop_of_what_was_not_or_could_not_be_started_looks_for_nothing(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def looked(*_: Any) -> None:
        pytest.fail("nothing was started")

    monkeypatch.setattr(process_module.Family, "end", looked)
    group(bench).stop()
    impossible = group(bench, [str(tmp_path / "no-such-program")])
    with pytest.raises(EngineError, match="cannot start"):
        impossible.start()
    impossible.stop()


INTERRUPTED = """
import signal, sys, time
from pathlib import Path
from sweeper.config.schema import EngineConfig
from sweeper.engine.protocol import LaunchRequest
from sweeper.engine.registry import create
folder, token = Path(sys.argv[1]), sys.argv[2]
options = {"faults": {"child": "session", "hang_at": "stop"}}
engine = create(
    EngineConfig(name="mock", options=options, stop_timeout_s=60), cache_dir=folder
)
request = LaunchRequest("mock", {}, folder / "run", "trial", 20.0, token,
    record_path=folder / "launch.json")
try:
    with engine.serve(request):
        print("serving", flush=True)
        time.sleep(60)
finally:
    print("stopped", flush=True)
"""


def test_what_a_killed_process_left_in_shared_memory_goes_with_it(bench: Bench) -> None:
    if not shared_memory.FOLDER.is_dir():
        pytest.skip("no shared memory on this system")
    left = shared_memory.FOLDER / f"sweeper-test-{bench.token}"
    script = (
        "import mmap, signal, sys, time\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "file = open(sys.argv[1], 'w+b')\n"
        "file.truncate(4096)\n"
        "held = mmap.mmap(file.fileno(), 0)\n"
        "print('made', flush=True)\n"
        "time.sleep(60)\n"
    )
    launch = group(bench, [sys.executable, "-c", script, str(left)])
    with launch:
        wait_for((bench.folder / "log").read_text)
        assert left.exists()
    assert not left.exists()


def test_a_second_and_a_third_ctrl_c_hurry_the_stop_and_leave_nothing(bench: Bench) -> None:
    command = [sys.executable, "-c", INTERRUPTED, str(bench.folder), bench.token]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as tuner:
        assert tuner.stdout is not None
        assert tuner.stdout.readline() == b"serving\n"
        assert len(bench.left()) == 2
        for _ in range(4):
            tuner.send_signal(signal.SIGINT)
            time.sleep(0.15)
        assert tuner.stdout.readline() == b"stopped\n"
        tuner.wait(timeout=20)
    assert tuner.returncode != 0
    assert not bench.left()
    assert not (bench.folder / "launch.json").exists()


def test_signals_are_held_back_and_then_delivered_once() -> None:
    came: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, frame: came.append(number))
    try:
        with uninterrupted():
            os.kill(os.getpid(), signal.SIGTERM)
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(0.05)
            assert came == []
        assert came == [signal.SIGTERM]
        with uninterrupted():
            pass
        assert came == [signal.SIGTERM]
    finally:
        signal.signal(signal.SIGTERM, before)


def test_ctrl_c_while_everything_is_killed_waits_until_it_is(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []

    def kill(self: Family) -> set[procfs.Identity]:
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.05)
        done.append("killed")
        return set()

    monkeypatch.setattr(Family, "_kill", kill)
    with pytest.raises(KeyboardInterrupt):
        Family(bench.token).end(0.0)
    assert done == ["killed"]


def test_another_thread_holds_nothing_back() -> None:
    done: list[bool] = []

    def work() -> None:
        with uninterrupted():
            done.append(True)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert done == [True]


def test_a_process_stuck_in_the_kernel_cannot_hold_up_the_search_for_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its environment may never be told; reading it is given up after a moment."""
    (tmp_path / "7").mkdir()
    os.mkfifo(tmp_path / "7" / "environ")
    os.mkfifo(tmp_path / "7" / "cmdline")
    values = ["D", "1", "7", "7", *["0"] * 15, "99"]
    (tmp_path / "7" / "stat").write_text(f"7 (stuck) {' '.join(values)}\n")
    monkeypatch.setattr(procfs, "_PROC", tmp_path)
    monkeypatch.setattr(procfs, "STUCK_PATIENCE_S", 0.05)
    process = procfs.read(7)
    assert process is not None
    assert process.is_stuck
    begun = time.monotonic()
    assert procfs.launch_token(7) is None
    assert not procfs.is_resource_tracker(7)
    assert time.monotonic() - begun < 3
