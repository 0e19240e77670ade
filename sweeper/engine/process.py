"""A server's processes, owned by one context manager: started together, ended together."""

from __future__ import annotations

import os
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from sweeper.engine import procfs
from sweeper.engine.family import Family, uninterrupted
from sweeper.engine.orphans import LaunchRecord, outlived
from sweeper.engine.procfs import Identity
from sweeper.engine.protocol import LaunchFailure, StopFailure
from sweeper.engine.sealed_log import create_log, seal
from sweeper.engine.shared_memory import SharedMemory
from sweeper.errors import EngineError

EXEC_GRACE_S = 0.3
# The tuner's own login at MLflow is nothing that a model's code should find.
_NOT_INHERITED = frozenset(
    {"PYTHONDONTWRITEBYTECODE", "MLFLOW_TRACKING_URI", "MLFLOW_TRACKING_USERNAME"}
    | {"MLFLOW_TRACKING_PASSWORD", "MLFLOW_TRACKING_TOKEN"}
)


class ProcessGroup:
    """One command in a session of its own, with everything it starts.

    Output goes to a file, never to a pipe that nobody reads. Leaving the context ends every process
    of the launch, whether or not the command itself still runs.

    Args:
        argv: program and arguments; no shell is involved.
        env: the whole environment; the launch token is added.
        log_path: file for stdout and stderr, overwritten.
        token: mark of this launch.
        stop_timeout_s: how long the processes may take to end after TERM.
        record_paths: where the launch is noted while it runs, so that a later run can clean up
            after a tuner that was killed.
        pass_fds: open files that the command inherits, by number.
    """

    def __init__(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str],
        log_path: Path,
        token: str,
        stop_timeout_s: float = 30.0,
        record_paths: Sequence[Path] = (),
        pass_fds: Sequence[int] = (),
    ) -> None:
        self.argv = tuple(argv)
        self._pass_fds = tuple(pass_fds)
        self.log_path = log_path
        self._env = {**env, procfs.TOKEN_VARIABLE: token}
        self._token = token
        self._stop_timeout_s = stop_timeout_s
        self._records = [LaunchRecord(path) for path in record_paths]
        self._family = Family(token, log_path=log_path)
        self._shared = SharedMemory()
        self._popen: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()
        self._may_run = False

    def start(self) -> Self:
        """Start the command. Raises EngineError if it cannot be executed."""
        self._note()
        self._shared = SharedMemory.now()
        self._may_run = True
        try:
            with create_log(self.log_path) as log:
                self._popen = subprocess.Popen(
                    list(self.argv),
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    env=self._env,
                    start_new_session=True,
                    pass_fds=self._pass_fds,
                )
        except OSError as problem:
            self._may_run = False
            self._forget()
            raise EngineError(
                f"cannot start {self.argv[0]}: {problem}",
                "check engine.python, and that the folder of the launch can be written",
            ) from problem
        self._note_leader(self._popen.pid)
        return self

    @property
    def pid(self) -> int:
        """Pid of the command. Raises RuntimeError before `start`."""
        if self._popen is None:
            raise RuntimeError("the process group has not been started")
        return self._popen.pid

    def poll(self) -> int | None:
        """Exit code of the command, None while it runs. Negative if a signal ended it."""
        if self._popen is None:
            raise RuntimeError("the process group has not been started")
        with self._lock:
            return self._popen.poll()

    def members(self, *, thorough: bool = False) -> set[Identity]:
        """Processes of the launch that run now; new ones are noted in the launch record."""
        before = len(self._family.known)
        members = self._family.living(thorough=thorough)
        if len(self._family.known) != before:
            self._note()
        if thorough:
            self._shared.look(member.pid for member in members)
        return members

    def pids(self) -> set[int]:
        """Pids of all processes that the launch ever had, as far as they were seen."""
        return self._family.pids()

    def stop(self) -> None:
        """End every process of the launch, also of a start that was interrupted.

        Files that only its processes used in shared memory are removed too.

        Raises:
            StopFailure: something outlived KILL; it may still hold memory.
        """
        if not self._may_run:
            return
        try:
            left = self._end()
        except BaseException:
            # A second Ctrl-C has cut the patience short; everything was killed all the same.
            with uninterrupted():
                self._leave(self._family.living())
            raise
        self._leave(left)
        if left:
            raise outlived(left, "the engine")

    def __enter__(self) -> Self:
        try:
            return self.start()
        except BaseException:
            self.stop()
            raise

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            self.stop()
        except StopFailure as left:
            # Why it was not ready is its verdict; what it left decides about the next launch.
            if not isinstance(error, LaunchFailure):
                raise
            error.halt = left.diagnosis

    def _leave(self, left: set[Identity]) -> None:
        """Collect the command, and forget the launch if nothing of it is left."""
        if self._popen is not None:
            self.poll()
        if not left:
            self._may_run = False
            self._shared.remove_left()
            seal(self.log_path)
            self._forget()

    def _end(self) -> set[Identity]:
        try:
            if self._popen is None:
                # Interrupted between fork and exec: the token shows once the command has begun.
                time.sleep(EXEC_GRACE_S)
            self._shared.look(member.pid for member in self._family.living())
        finally:
            left = self._family.end(self._stop_timeout_s)
        return left

    def _note_leader(self, pid: int) -> None:
        process = procfs.read(pid)
        if process is None:  # pragma: no cover - a child is a zombie until it is waited for
            return
        self._family = Family(self._token, process.identity, log_path=self.log_path)
        self._note()

    def _note(self) -> None:
        for record in self._records:
            record.write(self._family)

    def _forget(self) -> None:
        for record in self._records:
            record.remove()


def inherited_environment() -> dict[str, str]:
    """The tuner's environment as a server should see it.

    Python is told to write its byte code (imports of a large engine are several times faster the
    next time), not to hold back output (the log must be complete when a process is killed), and
    not to import from the folder the tuner was started in.
    """
    env = {k: v for k, v in os.environ.items() if k not in _NOT_INHERITED}
    return {**env, "PYTHONUNBUFFERED": "1", "PYTHONSAFEPATH": "1"}
