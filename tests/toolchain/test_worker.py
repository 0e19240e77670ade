"""Workers as tiny scripts, run by this interpreter: their ends, and that nothing outlives them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import psutil
import pytest

from sweeper.toolchain import process, worker
from sweeper.toolchain.worker import EndKind, WorkerEnd, WorkerJob, run_worker

MAIN = """
import json, os, pathlib, signal, subprocess, sys, time
import worker_protocol

def main(worker):
    here = pathlib.Path(__file__).parent
{body}

worker_protocol.run(main)
"""
# A process that has left its parent and its session, and holds the output open.
DAEMON = """
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.dup2({output}, 1)
        (here / "daemon.part").write_text(str(os.getpid()))
        (here / "daemon.part").rename(here / "daemon")
        time.sleep(600)
    os._exit(0)
while not (here / "daemon").exists():
    time.sleep(0.01)
"""


def write(folder: Path, text: str) -> Path:
    script = folder / "made.py"
    script.write_text(text)
    return script


def job(folder: Path, body: str, **fields: Any) -> WorkerJob:
    script = write(folder, MAIN.format(body=textwrap.indent(textwrap.dedent(body), "    ")))
    given = {"request": {}, "timeout_s": 60.0, **fields}
    return WorkerJob(script=script, log_path=folder / "log", python=sys.executable, **given)


def bare(folder: Path, text: str, **fields: Any) -> WorkerJob:
    """A script that does not keep to the protocol."""
    given = {"request": {}, "timeout_s": 60.0, **fields}
    return WorkerJob(
        script=write(folder, textwrap.dedent(text)),
        log_path=folder / "log",
        python=sys.executable,
        **given,
    )


def run(made: WorkerJob) -> tuple[WorkerEnd, list[Mapping[str, Any]]]:
    events: list[Mapping[str, Any]] = []
    return run_worker(made, events.append), events


def until(holds: Callable[[], bool], patience_s: float = 30.0) -> bool:
    deadline = time.monotonic() + patience_s
    while not holds() and time.monotonic() < deadline:
        time.sleep(0.01)
    return holds()


def is_gone(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def test_a_worker_that_does_its_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PYTHONPATH", "VIRTUAL_ENV", "MLFLOW_TRACKING_PASSWORD"):
        monkeypatch.setenv(name, "/of/the/tuner")
    (tmp_path / "colorsys.py").write_text("raise SystemExit('a neighbour was imported')")
    body = """
        import colorsys
        worker.phase("load")
        print("a library talks", flush=True)
        os.system("echo a program talks")
        worker.progress(1, 2, "layers")
        try:
            input("trust this code? ")
        except EOFError:
            asked = "nobody"
        kept = ("PYTHONPATH", "PYTHONSAFEPATH", "TOKENIZERS_PARALLELISM", "MINE", "VIRTUAL_ENV")
        env = {name: os.environ.get(name) for name in kept}
        return {"request": worker.request, "asked": asked, "env": env,
                "login": "MLFLOW_TRACKING_PASSWORD" in os.environ}
    """
    # Longer than a pipe holds.
    request = {"model": "m" * 200_000, "nested": {"bits": [4, 8]}}
    end, events = run(job(tmp_path, body, request=request, env={"MINE": "1"}))
    assert end.kind is EndKind.DONE, end
    assert end.result == {
        "request": request,
        "asked": "nobody",
        "env": {
            "PYTHONPATH": str(Path(worker.__file__).with_name("side")),
            "PYTHONSAFEPATH": "1",
            "TOKENIZERS_PARALLELISM": "false",
            "MINE": "1",
            "VIRTUAL_ENV": None,
        },
        "login": False,
    }
    assert events == [
        {"event": "phase", "name": "load"},
        {"event": "progress", "done": 1, "of": 2, "what": "layers"},
    ]
    assert (end.exit_code, end.error, end.message, end.environment_s) == (0, "", "", 0.0)
    assert 0 < end.seconds < 60
    log = (tmp_path / "log").read_text()
    assert "a library talks" in log
    assert "a program talks" in log


def test_an_error_of_its_own_and_a_log_that_is_appended_to(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("of an earlier run\n")
    body = 'raise worker_protocol.WorkerError("no_cuda", "needs a GPU\\nwith CUDA")'
    end, _ = run(job(tmp_path, body))
    assert (end.kind, end.error, end.message) == (
        EndKind.FAILED,
        "no_cuda",
        "needs a GPU with CUDA",
    )
    assert end.exit_code == 1
    assert (tmp_path / "log").read_text().startswith("of an earlier run\n")


@pytest.mark.parametrize(
    ("text", "code", "message"),
    [
        ("import sys; print('no protocol'); sys.exit('the last words')", 1, "the last words"),
        ("", 0, "ended with exit code 0 and without a result; its log"),
        ("import os; os.kill(os.getpid(), 9)", -9, "looks like the system running out of memory"),
        ("import os; os.kill(os.getpid(), 11)", -11, "was ended by SIGSEGV"),
        ("import no_such_module", 1, "No module named 'no_such_module'"),
        ("import os\nif os.fork(): os._exit(3)\nimport time; time.sleep(600)", 3, "exit code 3"),
    ],
)
def test_a_worker_without_a_last_word_has_died(
    tmp_path: Path, text: str, code: int, message: str
) -> None:
    begun = time.monotonic()
    end, _ = run(bare(tmp_path, text))
    assert (end.kind, end.exit_code) == (EndKind.DIED, code)
    assert message in end.message
    assert "\n" not in end.message
    assert time.monotonic() - begun < 30


def test_what_a_dead_worker_left_writing_does_not_hold_it_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker, "_DRAIN_S", 0.1)
    end, _ = run(bare(tmp_path, "import os\nif os.fork(): os._exit(3)\nwhile True: print('x')"))
    assert (end.kind, end.exit_code) == (EndKind.DIED, 3)
    assert end.seconds < 30


def test_garbage_between_events_goes_to_the_log(tmp_path: Path) -> None:
    text = """
        import sys
        out = sys.stdout.buffer
        for line in (b"\\xff\\xfe", b'{"event": "done"}', b"[" * 3_000_000, b"{" * 9, b""):
            out.write(line + b"\\n")
        out.write(b'{"event": "phase", "name": "load"}\\n{"event": "done", "result": {"a": 1}}')
    """
    end, events = run(bare(tmp_path, text))
    assert (end.kind, end.result) == (EndKind.DONE, {"a": 1})
    assert [event["event"] for event in events] == ["phase"]
    log = (tmp_path / "log").read_bytes()
    assert b'stdout: \xff\xfe\nstdout: {"event": "done"}\n' in log
    assert len(log) < 10_000


class Clock:
    """The time of the one who watches, which can be turned on."""

    sleep = staticmethod(time.sleep)
    ahead_s = 0.0

    def monotonic(self) -> float:
        return time.monotonic() + self.ahead_s


READY = 'print(\'{"event": "phase", "name": "\' + str(os.getpid()) + \'"}\', flush=True)\n'


@pytest.mark.parametrize(
    ("before", "after", "number"),
    [
        ("", "time.sleep(600)", signal.SIGTERM),
        ("", "os.close(1); time.sleep(600)", signal.SIGTERM),
        ("", "while True: print('stray')", signal.SIGTERM),
        ("signal.signal(15, signal.SIG_IGN)\n", "time.sleep(600)", signal.SIGKILL),
    ],
    ids=["silent", "closed", "chatty", "deaf"],
)
def test_the_time_limit_holds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: str, after: str, number: int
) -> None:
    monkeypatch.setattr(process, "TERM_PATIENCE_S", 0.2 if number == signal.SIGKILL else 30.0)
    clock = Clock()
    monkeypatch.setattr(worker, "time", clock)
    pids: list[int] = []

    def ready(event: Mapping[str, Any]) -> None:
        pids.append(int(event["name"]))
        clock.ahead_s = 1000.0

    text = f"import os, signal, time\n{before}{READY}{after}"
    end = run_worker(bare(tmp_path, text, timeout_s=900.0), ready)
    assert end.kind is EndKind.TIMED_OUT
    assert end.message == "made.py was ended after 900 s, its limit"
    assert end.exit_code == -number
    assert is_gone(pids[0])


@pytest.mark.parametrize("output", [1, "worker._out.fileno()"])
def test_what_left_the_session_is_ended_too(tmp_path: Path, output: object) -> None:
    end, _ = run(job(tmp_path, DAEMON.format(output=output) + 'return {"a": 1}'))
    assert (end.kind, end.exit_code) == (EndKind.DONE, 0), end
    assert is_gone(int((tmp_path / "daemon").read_text()))


def test_a_result_stands_even_if_the_worker_does_not_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker, "_EXIT_PATIENCE_S", 0.1)
    text = """
        import time
        print('{"event": "done", "result": {"a": 1}}', flush=True)
        time.sleep(600)
    """
    end, _ = run(bare(tmp_path, text))
    assert (end.kind, end.result, end.exit_code) == (EndKind.DONE, {"a": 1}, -signal.SIGTERM)


def test_memory_of_all_its_processes_is_limited(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker, "_LOOK_S", 0.05)
    body = """
        held = bytearray(os.urandom(1 << 20)) * 120
        code = "import time; held = b'x' * (120 << 20); time.sleep(600)"
        subprocess.run([sys.executable, "-c", code])
    """
    end, _ = run(job(tmp_path, body, memory_gib=0.2))
    assert end.kind is EndKind.OUT_OF_MEMORY, end
    taken, allowed = (float(word) for word in end.message.split() if word[0].isdigit())
    assert taken >= allowed == 0.2  # which neither of the two takes alone; rounded


def test_memory_that_is_shared_counts_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "_LOOK_S", 0.05)
    body = """
        held = b"x" * (120 << 20)
        children = [os.fork() for _ in range(2)]
        if 0 in children:
            time.sleep(600)
        time.sleep(0.4)
        return {}
    """
    # Resident: 120 MiB in the worker and in each process that it has forked.
    end, _ = run(job(tmp_path, body, memory_gib=0.22))
    assert end.kind is EndKind.DONE, end


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_ends_the_worker_and_passes(tmp_path: Path, number: signal.Signals) -> None:
    def stop(*_: object) -> None:
        raise SystemExit(143)

    def interrupt(event: Mapping[str, Any]) -> None:
        pids.append(int(event["name"]))
        signal.raise_signal(number)

    pids: list[int] = []
    before = signal.signal(signal.SIGTERM, stop)
    try:
        with pytest.raises((KeyboardInterrupt, SystemExit)):
            run_worker(job(tmp_path, "worker.phase(str(os.getpid()))\ntime.sleep(600)"), interrupt)
    finally:
        signal.signal(signal.SIGTERM, before)
    assert is_gone(pids[0])


def test_a_worker_whose_tuner_was_killed_ends_by_itself(tmp_path: Path) -> None:
    # The interpreter's lock is held all the time, so that no thread of the worker could do it.
    body = """
        import ctypes
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
        (here / "pids.part").write_text(f"{os.getpid()} {child.pid}")
        (here / "pids.part").rename(here / "pids")
        ctypes.PyDLL(None).sleep(600)
    """
    made = job(tmp_path, body)
    tuner = tmp_path / "tuner.py"
    tuner.write_text(
        "import pathlib, sys\n"
        "from sweeper.toolchain.worker import WorkerJob, run_worker\n"
        f"run_worker(WorkerJob(pathlib.Path({str(made.script)!r}), {{}}, "
        f"pathlib.Path({str(made.log_path)!r}), 600.0, python=sys.executable), print)\n"
    )
    running = subprocess.Popen([sys.executable, str(tuner)], cwd=Path(__file__).parents[2])
    try:
        assert until((tmp_path / "pids").exists)
    finally:
        running.kill()
        running.wait()
    pids = [int(pid) for pid in (tmp_path / "pids").read_text().split()]
    try:
        assert until(lambda: all(map(is_gone, pids)))
    finally:
        for pid in pids:
            if not is_gone(pid):
                os.kill(pid, signal.SIGKILL)


def test_an_interpreter_that_cannot_be_started(tmp_path: Path) -> None:
    made = job(tmp_path, "return {}")
    for python in ("/no/python", str(tmp_path / "log")):
        end, _ = run(WorkerJob(made.script, {}, made.log_path, 60.0, python=python))
        assert (end.kind, end.exit_code) == (EndKind.NO_ENVIRONMENT, None)
        assert f"the interpreter {python} cannot be started" in end.message


def test_a_log_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    made = job(tmp_path, "return {}")
    log_path = tmp_path / "file" / "log"
    end, _ = run(WorkerJob(made.script, {}, log_path, 60.0, python=sys.executable))
    assert end.kind is EndKind.NO_ENVIRONMENT
    assert f"the log {log_path} cannot be written" in end.message


def test_secrets_of_the_job_are_in_no_message(tmp_path: Path) -> None:
    body = 'raise RuntimeError("refused: " + os.environ["HF_TOKEN"])'
    end, _ = run(job(tmp_path, body, env={"HF_TOKEN": "not-of-any-known-shape-81"}))
    assert end.message == "RuntimeError: refused: (hidden)"
    assert "HF_TOKEN" not in os.environ
