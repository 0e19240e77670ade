"""Runs a worker: a script with an environment of its own, spoken to by JSON lines."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

from sweeper.redaction import is_secret, remember, shown
from sweeper.toolchain.environment import NoEnvironment, script_python
from sweeper.toolchain.events import LineReader, parse
from sweeper.toolchain.process import Process

GIB = 1 << 30
_SIDE = Path(__file__).with_name("side")
_POLL_S = 0.25
_LOOK_S = 0.5
_DRAIN_S = 2.0
_EXIT_PATIENCE_S = 10.0
_EXIT_POLL_S = 0.02
_TAIL_BYTES = 1 << 16
_MESSAGE_CHARS = 1000
# Before what came on the protocol's pipe and was none of it.
STRAY = b"stdout: "
# What would change its imports, and the tuner's own login at MLflow.
_NOT_INHERITED = frozenset(
    {"PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "PYTHONDONTWRITEBYTECODE", "MLFLOW_TRACKING_URI"}
    | {"MLFLOW_TRACKING_USERNAME", "MLFLOW_TRACKING_PASSWORD", "MLFLOW_TRACKING_TOKEN"}
)


class EndKind(StrEnum):
    """How a worker ended."""

    DONE = "done"
    FAILED = "failed"
    """It reported an error of its own."""
    DIED = "died"
    """It ended without a last word: killed, or crashed."""
    TIMED_OUT = "timed_out"
    OUT_OF_MEMORY = "out_of_memory"
    """It took more than it was allowed to, and was ended here."""
    NO_ENVIRONMENT = "no_environment"
    """Its environment could not be made, or its interpreter not be started."""


@dataclass(frozen=True)
class WorkerJob:
    """A worker to run.

    Attributes:
        script: Python file with PEP 723 metadata; it imports nothing of sweeper but
            `worker_protocol`, which is put in its way.
        request: plain JSON, handed to it on standard input.
        log_path: what it and its environment's making print; appended to.
        python: interpreter to run it with; None makes the environment that its metadata asks for.
        timeout_s: for the work, the environment's making not counted.
        environment_timeout_s: for making the environment.
        memory_gib: resident memory of all its processes; None for no limit.
        env: added to its environment. Secrets go here, never into `request`.
    """

    script: Path
    request: Mapping[str, Any]
    log_path: Path
    timeout_s: float
    python: str | None = None
    environment_timeout_s: float = 1800.0
    memory_gib: float | None = None
    env: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class WorkerEnd:
    """What came of it. An expected end is a value; see `EndKind`.

    Attributes:
        kind: how it ended.
        result: what it reported as done.
        error: its own word for the class of its error (``no_cuda``, ``missing`` ...), empty
            otherwise.
        message: one line; empty if done.
        exit_code: of its process, None if there was none.
        seconds: of the work, the environment's making not counted.
        environment_s: what that took.
    """

    kind: EndKind
    result: Mapping[str, Any] = field(default_factory=dict)
    error: str = ""
    message: str = ""
    exit_code: int | None = None
    seconds: float = 0.0
    environment_s: float = 0.0


def run_worker(job: WorkerJob, on_event: Callable[[Mapping[str, Any]], None]) -> WorkerEnd:
    """Run a worker to its end.

    However this is left, by an exception or Ctrl-C too, nothing of the worker runs afterwards; when
    the tuner itself is killed, the worker ends by itself (see `worker_protocol`).

    Args:
        job: what to run.
        on_event: given each ``phase`` and ``progress`` event as it comes. The phase
            ``environment`` comes from here, when its environment has to be made first.
    """
    remember(*(value for name, value in job.env.items() if is_secret(name)))
    begun = time.monotonic()
    try:
        job.log_path.parent.mkdir(parents=True, exist_ok=True)
        job.log_path.touch()
    except OSError as error:
        return _none(f"the log {job.log_path} cannot be written: {error}")
    python = job.python or script_python(
        job.script,
        log_path=job.log_path,
        timeout_s=job.environment_timeout_s,
        begin=lambda: on_event({"event": "phase", "name": "environment"}),
    )
    environment_s = 0.0 if job.python else time.monotonic() - begun
    if isinstance(python, NoEnvironment):
        return _none(python.message, environment_s)
    begun = time.monotonic()
    end = _work(job, python, on_event)
    return replace(end, seconds=time.monotonic() - begun, environment_s=environment_s)


def _work(job: WorkerJob, python: str, on_event: Callable[[Mapping[str, Any]], None]) -> WorkerEnd:
    with ExitStack() as stack:
        try:
            # From a file: a worker that does not read cannot hold up who writes to it.
            request = stack.enter_context(tempfile.TemporaryFile())
            request.write(json.dumps(dict(job.request)).encode() + b"\n")
            request.seek(0)
            log_begun = job.log_path.stat().st_size
            process = stack.enter_context(
                Process(
                    [python, str(job.script)],
                    env=worker_environment(os.environ, job.env),
                    log_path=job.log_path,
                    stdin=request,
                    stdout=subprocess.PIPE,
                )
            )
        except OSError as error:
            return _none(f"the interpreter {python} cannot be started: {error}")
        watch = _Watch(job, process, on_event)
        end = watch.follow()
    end = replace(end, exit_code=process.exit_code)
    if end.kind is EndKind.DIED:
        return replace(end, message=last_words(job, process.exit_code, log_begun))
    return end


def worker_environment(tuner: Mapping[str, str], added: Mapping[str, str]) -> dict[str, str]:
    """The environment of a worker: the tuner's, but for what would change its imports.

    Args:
        tuner: the tuner's own.
        added: the job's, which has the last word.
    """
    inherited = {name: value for name, value in tuner.items() if name not in _NOT_INHERITED}
    return {
        **inherited,
        "PYTHONPATH": str(_SIDE),
        "PYTHONSAFEPATH": "1",
        # A killed worker's log is complete.
        "PYTHONUNBUFFERED": "1",
        "TOKENIZERS_PARALLELISM": "false",
        **added,
    }


class _Watch:
    """Follows one worker: its events, its time, its memory."""

    def __init__(
        self, job: WorkerJob, process: Process, on_event: Callable[[Mapping[str, Any]], None]
    ) -> None:
        assert process.popen.stdout is not None
        self._job = job
        self._process = process
        self._on_event = on_event
        self._reader = LineReader(process.popen.stdout.fileno())
        self._deadline = time.monotonic() + job.timeout_s
        self._next_look = 0.0

    def follow(self) -> WorkerEnd:
        """Read until the worker has had its last word or is gone, or a limit is passed."""
        exited_at: float | None = None
        while True:
            # Asked before reading: what it wrote before it ended is in the pipe by then.
            if exited_at is None and self._process.has_exited():
                exited_at = time.monotonic()
            lines = self._reader.lines(_POLL_S if exited_at is None else 0.0)
            for line in lines:
                if (end := take(line, self._job, self._on_event)) is not None:
                    self._let_exit()
                    return end
            if exited_at is not None:
                # A process it left behind may hold the pipe open, and even go on writing.
                if not lines or time.monotonic() > exited_at + _DRAIN_S:
                    return WorkerEnd(EndKind.DIED)
            elif (end := self._limit_passed()) is not None:
                return end

    def _let_exit(self) -> None:
        """Give it a moment to end by itself; what it has reported stands in any case."""
        until = time.monotonic() + _EXIT_PATIENCE_S
        while not self._process.has_exited() and time.monotonic() < until:
            self._reader.lines(_EXIT_POLL_S)

    def _limit_passed(self) -> WorkerEnd | None:
        now = time.monotonic()
        name = self._job.script.name
        if now > self._deadline:
            limit = f"{self._job.timeout_s:.0f} s"
            return WorkerEnd(
                EndKind.TIMED_OUT, message=f"{name} was ended after {limit}, its limit"
            )
        if now < self._next_look:
            return None
        self._next_look = now + _LOOK_S
        if self._job.memory_gib is None:
            self._process.members()  # known from now on, even if they leave the session
            return None
        taken_gib = self._process.resident_bytes(self._job.memory_gib * GIB) / GIB
        if taken_gib <= self._job.memory_gib:
            return None
        return WorkerEnd(
            EndKind.OUT_OF_MEMORY,
            message=f"{name} took {taken_gib:.2f} GiB of memory, more than the "
            f"{self._job.memory_gib:.2f} GiB it was allowed, and was ended",
        )


def take(
    line: bytes, job: WorkerJob, on_event: Callable[[Mapping[str, Any]], None]
) -> WorkerEnd | None:
    """One line of a worker's output: its end, if it says so; else an event, or the log's."""
    event = parse(line)
    if event is None:
        with job.log_path.open("ab") as log:
            log.write(STRAY + line + b"\n")
    elif event["event"] == "done":
        return WorkerEnd(EndKind.DONE, result=event["result"])
    elif event["event"] == "error":
        message = one_line(event["message"])
        return WorkerEnd(EndKind.FAILED, error=event["kind"], message=message)
    else:
        on_event(event)
    return None


def one_line(text: str) -> str:
    """Text in one line that can be shown."""
    return " ".join(shown(text).split())[:_MESSAGE_CHARS]


def last_words(job: WorkerJob, code: int | None, log_begun: int) -> str:
    """How a worker ended that said neither `done` nor `error`, in one line."""
    name = job.script.name
    if code == -signal.SIGKILL:
        return (
            f"{name} was killed, which looks like the system running out of memory: "
            "free memory, or ask for less (a smaller model, fewer samples)"
        )
    if code is not None and code < 0:
        how = f"{name} was ended by {signal.Signals(-code).name}"
    else:
        how = f"{name} ended with exit code {code} and without a result"
    with job.log_path.open("rb") as log:
        log.seek(max(log_begun, job.log_path.stat().st_size - _TAIL_BYTES))
        lines = [line for line in log.read().splitlines() if line.strip()]
    # What it complains about stands on its error output; read later, strays stand further down.
    last = max(reversed(lines), key=lambda line: not line.startswith(STRAY), default=b"")
    if not last:
        return one_line(f"{how}; its log {job.log_path} says nothing")
    return one_line(f"{how}: {last.decode(errors='replace')}")


def _none(message: str, environment_s: float = 0.0) -> WorkerEnd:
    return WorkerEnd(EndKind.NO_ENVIRONMENT, message=one_line(message), environment_s=environment_s)
