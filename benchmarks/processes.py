"""Processes of a benchmark: pinned to a core, their processor time known, ended when done."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parent.parent
_START_S = 20.0


@dataclass(frozen=True)
class Spent:
    """What a finished process used, with all its children.

    Attributes:
        wall_s: from start to end.
        cpu_s: user and system time.
        exit_code: of the process.
        output: standard output and error, as they came.
    """

    wall_s: float
    cpu_s: float
    exit_code: int
    output: str


def run_pinned(
    argv: Sequence[str],
    core: int | None,
    *,
    cwd: Path = REPOSITORY,
    timeout_s: float = 300.0,
    environment: Mapping[str, str] | None = None,
) -> Spent:
    """Run a command to its end on one core.

    Raises:
        TimeoutError: it took longer than `timeout_s`; it and its group have been killed.
    """
    with tempfile.TemporaryFile() as output:
        started_s = time.monotonic()
        process = subprocess.Popen(
            list(argv),
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**os.environ, **(environment or {})},
            start_new_session=True,
            preexec_fn=lambda: _pin(core),  # noqa: PLW1509 - no threads here
        )
        try:
            cpu_s, code = _wait(process, started_s + timeout_s)
        except BaseException:
            _kill_group(process)
            raise
        wall_s = time.monotonic() - started_s
        output.seek(0)
        text = output.read().decode(errors="replace")
    return Spent(wall_s, cpu_s, code, text)


def _wait(process: subprocess.Popen[bytes], deadline_s: float) -> tuple[float, int]:
    """Processor seconds and exit code; `wait4` alone tells the time of one child and its own."""
    while True:
        pid, status, usage = os.wait4(process.pid, os.WNOHANG)
        if pid:
            process.returncode = os.waitstatus_to_exitcode(status)
            return usage.ru_utime + usage.ru_stime, process.returncode
        if time.monotonic() > deadline_s:
            raise TimeoutError(f"{process.args!r} did not end in time")
        time.sleep(0.02)


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def end_on_sigterm() -> None:
    """Leave by an exception when told to end, so that nothing started here stays behind."""

    def leave(*_: object) -> None:
        raise SystemExit(143)

    signal.signal(signal.SIGTERM, leave)


def _pin(core: int | None) -> None:
    if core is not None:
        os.sched_setaffinity(0, {core})


@contextmanager
def stub(core: int | None, *arguments: str) -> Iterator[str]:
    """A stub server on a core of its own; gives its base URL."""
    argv = [sys.executable, "-m", "benchmarks.stub_server", *arguments]
    if core is not None:
        argv += ["--core", str(core)]
    process = subprocess.Popen(argv, cwd=REPOSITORY, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        port = json.loads(process.stdout.readline())["port"]
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(_START_S)


def get_text(url: str) -> str:
    with urllib.request.urlopen(url, timeout=60) as answer:
        text: str = answer.read().decode()
        return text


def get_json(url: str) -> dict[str, Any]:
    with urllib.request.urlopen(url, timeout=60) as answer:
        data: dict[str, Any] = json.load(answer)
        return data


def post(url: str) -> None:
    request = urllib.request.Request(url, data=b"", method="POST")
    urllib.request.urlopen(request, timeout=60).close()


def machine() -> str:
    """Processor and number of cores, for the line below a table."""
    names = [
        line.partition(":")[2].strip()
        for line in Path("/proc/cpuinfo").read_text().splitlines()
        if line.startswith("model name")
    ]
    return f"{names[0] if names else 'unknown processor'}, {os.cpu_count()} cores"
