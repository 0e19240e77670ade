"""A worker that stays: one process, asked again and again by JSON lines.

    open ──► environment ──► begin ──► ready ⇄ ask ──► close
                  │            │                │
                  └────────────┴────────────────┴──► over: a `WorkerEnd` says how

What makes a worker's start dear (imports, tables) is then paid once. `worker_protocol.converse` is
its side of it. One question is under way at a time.
"""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from types import TracebackType
from typing import Any, Self

from sweeper.toolchain.environment import NoEnvironment, script_python
from sweeper.toolchain.events import LineReader
from sweeper.toolchain.process import Process
from sweeper.toolchain.worker import (
    EndKind,
    WorkerEnd,
    WorkerJob,
    last_words,
    one_line,
    take,
    worker_environment,
)

_POLL_S = 0.25
_CLOSE_PATIENCE_S = 2.0


class Conversation:
    """One worker process and its answers. Leaving the context ends it for certain.

    Args:
        job: the worker; `request` is what it makes itself ready with, in `timeout_s`.
        on_event: given ``phase`` and ``progress`` events as they come, see `run_worker`.
    """

    def __init__(self, job: WorkerJob, on_event: Callable[[Mapping[str, Any]], None]) -> None:
        self._job = job
        self._on_event = on_event
        self._process: Process | None = None
        self._reader: LineReader | None = None
        self._log_begun = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def is_open(self) -> bool:
        """True from a successful `open` until the worker is gone or closed."""
        return self._process is not None

    def open(self) -> WorkerEnd:
        """Start the worker and wait until it is ready.

        Returns:
            `EndKind.DONE` if it is ready. Anything else says why there is no conversation.
        """
        begun = time.monotonic()
        try:
            self._job.log_path.parent.mkdir(parents=True, exist_ok=True)
            self._job.log_path.touch()
        except OSError as error:
            return _none(f"the log {self._job.log_path} cannot be written: {error}")
        python = self._job.python or script_python(
            self._job.script,
            log_path=self._job.log_path,
            timeout_s=self._job.environment_timeout_s,
            begin=lambda: self._on_event({"event": "phase", "name": "environment"}),
        )
        environment_s = 0.0 if self._job.python else time.monotonic() - begun
        if isinstance(python, NoEnvironment):
            return _none(python.message)
        end = self._start(python)
        if end.kind is not EndKind.DONE:
            self.close()
        return replace(end, environment_s=environment_s)

    def ask(self, question: Mapping[str, Any], timeout_s: float) -> WorkerEnd:
        """One answer.

        Returns:
            `EndKind.DONE` with the result, or `EndKind.FAILED` with the worker's own error: the
            conversation goes on after both. After any other kind it is over.

        Raises:
            RuntimeError: it is not open.
        """
        if self._process is None:
            raise RuntimeError("the conversation is not open")
        begun = time.monotonic()
        end = self._say(question) or self._answer(begun + timeout_s, timeout_s)
        if end.kind not in {EndKind.DONE, EndKind.FAILED}:
            end = self._over(end)
        return replace(end, seconds=time.monotonic() - begun)

    def close(self) -> None:
        """End the worker: its questions end first, so that it can leave by itself."""
        self._close(_CLOSE_PATIENCE_S)

    def _close(self, patience_s: float) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        if process.popen.stdin is not None:
            with suppress(BrokenPipeError):
                process.popen.stdin.close()
        until = time.monotonic() + patience_s
        while not process.has_exited() and time.monotonic() < until:
            time.sleep(0.01)
        process.end()

    def _start(self, python: str) -> WorkerEnd:
        job = self._job
        self._log_begun = job.log_path.stat().st_size
        process = Process(
            [python, str(job.script)],
            env=worker_environment(os.environ, job.env),
            log_path=job.log_path,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        try:
            process.__enter__()
        except OSError as error:
            return _none(f"the interpreter {python} cannot be started: {error}")
        self._process = process
        assert process.popen.stdout is not None
        self._reader = LineReader(process.popen.stdout.fileno())
        deadline = time.monotonic() + job.timeout_s
        end = self._say(job.request) or self._answer(deadline, job.timeout_s)
        return end if end.kind in {EndKind.DONE, EndKind.FAILED} else self._over(end)

    def _say(self, question: Mapping[str, Any]) -> WorkerEnd | None:
        """Write one line; an end if nobody reads it any more."""
        assert self._process is not None and self._process.popen.stdin is not None
        try:
            self._process.popen.stdin.write(json.dumps(dict(question)).encode() + b"\n")
            self._process.popen.stdin.flush()
        except BrokenPipeError:
            return WorkerEnd(EndKind.DIED)
        return None

    def _answer(self, deadline: float, limit_s: float) -> WorkerEnd:
        """Read until the question has its answer, the worker is gone, or time is up."""
        assert self._process is not None and self._reader is not None
        while True:
            # Asked before reading: what it wrote before it ended is in the pipe by then.
            gone = self._process.has_exited()
            lines = self._reader.lines(0.0 if gone else _POLL_S)
            for line in lines:
                if (end := take(line, self._job, self._on_event)) is not None:
                    return end
            if gone and not lines:
                return WorkerEnd(EndKind.DIED)
            if time.monotonic() > deadline:
                name = self._job.script.name
                message = f"{name} did not answer within {limit_s:g} s and was ended"
                return WorkerEnd(EndKind.TIMED_OUT, message=message)

    def _over(self, end: WorkerEnd) -> WorkerEnd:
        """End the worker; of one that died by itself, its last words."""
        process = self._process
        assert process is not None
        self._close(0.0)  # it is gone, or has had its time
        if end.kind is not EndKind.DIED:
            return replace(end, exit_code=process.exit_code)
        message = last_words(self._job, process.exit_code, self._log_begun)
        return replace(end, exit_code=process.exit_code, message=message)


def _none(message: str) -> WorkerEnd:
    return WorkerEnd(EndKind.NO_ENVIRONMENT, message=one_line(message))
