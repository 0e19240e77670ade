"""A program in a session of its own, with all it starts: fed, watched, and ended for certain."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, TYPE_CHECKING, Self

from sweeper.toolchain.side.worker_protocol import LIFELINE

if TYPE_CHECKING:
    import psutil

MARK = "SWEEPER_WORKER_MARK"
"""Environment variable by which processes of one start are known even if they left the session."""

TERM_PATIENCE_S = 5.0
KILL_PATIENCE_S = 10.0
_POLL_S = 0.02


class Process:
    """One program and what it starts. Leaving the context ends all of it.

    Args:
        argv: program and arguments; no shell is involved.
        env: the whole environment; mark and lifeline are added.
        log_path: file that takes its errors, and its output unless `stdout` says otherwise.
        stdin: as `subprocess.Popen` takes it.
        stdout: likewise; None for the log.
        pass_fds: open files that it inherits, by number.
    """

    def __init__(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str],
        log_path: Path,
        stdin: int | IO[bytes] = subprocess.DEVNULL,
        stdout: int | None = None,
        pass_fds: Sequence[int] = (),
    ) -> None:
        self.argv = tuple(argv)
        self.log_path = log_path
        self._mark = uuid.uuid4().hex
        self._env = {**env, MARK: self._mark}
        self._stdin = stdin
        self._stdout = stdout
        self._pass_fds = tuple(pass_fds)
        self._popen: subprocess.Popen[bytes] | None = None
        self._lifeline: int | None = None
        self._known: dict[int, psutil.Process] = {}

    def __enter__(self) -> Self:
        """Start it. Raises OSError if it or its log cannot be opened."""
        # The program's guardian sees this pipe close when the tuner dies, however it dies.
        read_end, self._lifeline = os.pipe()
        try:
            with self.log_path.open("ab") as log:
                self._popen = subprocess.Popen(
                    list(self.argv),
                    stdin=self._stdin,
                    stdout=log if self._stdout is None else self._stdout,
                    stderr=log,
                    env={**self._env, LIFELINE: str(read_end)},
                    start_new_session=True,
                    pass_fds=(*self._pass_fds, read_end),
                )
        except BaseException:
            os.close(self._lifeline)
            raise
        finally:
            os.close(read_end)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.end()

    @property
    def popen(self) -> subprocess.Popen[bytes]:
        """The program itself, for its pipes."""
        assert self._popen is not None, "the program has not been started"
        return self._popen

    @property
    def exit_code(self) -> int | None:
        """Of the program, once the context is left; negative if a signal ended it."""
        return self.popen.returncode

    def has_exited(self) -> bool:
        """Whether the program itself has ended.

        It is not collected before `end`: until then its pid, and with it the session's number,
        cannot become somebody else's.
        """
        if self.popen.returncode is not None:
            return True
        flags = os.WEXITED | os.WNOHANG | os.WNOWAIT
        return os.waitid(os.P_PID, self.popen.pid, flags) is not None

    def members(self, *, thorough: bool = False) -> list[psutil.Process]:
        """Its processes that run now.

        Args:
            thorough: also read the environment of every process of the machine, which finds what
                left the session and lost its parent between two looks.
        """
        import psutil

        fresh = {self.popen.pid, *self._pids_of_session()} | (
            self._marked_pids() if thorough else set()
        )
        for pid in fresh - set(self._known):
            with contextlib.suppress(psutil.Error):
                self._known[pid] = psutil.Process(pid)
        below: set[int] = set()
        for process in tuple(self._known.values()):
            if process.pid in below:
                continue
            with contextlib.suppress(psutil.Error):
                for child in process.children(recursive=True):
                    self._known.setdefault(child.pid, child)
                    below.add(child.pid)
        self._known = {pid: process for pid, process in self._known.items() if _runs(process)}
        return list(self._known.values())

    def resident_bytes(self, limit_bytes: float) -> int:
        """Memory that its processes hold together.

        Resident sets count pages that forked processes share once for each of them, so a sum beyond
        the limit is counted again with shared pages divided, which takes the kernel longer.
        """
        import psutil

        members = self.members()
        resident = _sum(members, lambda process: process.memory_info().rss)
        if resident <= limit_bytes or not psutil.LINUX:
            return resident
        return _sum(members, lambda process: process.memory_full_info().pss)

    def end(self) -> None:
        """TERM, wait, KILL, until nothing of it runs; then collect the program."""
        try:
            if self._signal_all(signal.SIGTERM):
                self._wait_gone(TERM_PATIENCE_S)
        finally:
            # Also when a second Ctrl-C cuts the patience short.
            self._kill()
            self._close()

    def _kill(self) -> None:
        deadline = time.monotonic() + KILL_PATIENCE_S
        while self._signal_all(signal.SIGKILL) and time.monotonic() < deadline:
            time.sleep(_POLL_S)

    def _close(self) -> None:
        if self._lifeline is not None:
            os.close(self._lifeline)
            self._lifeline = None
        for pipe in (self.popen.stdin, self.popen.stdout):
            if pipe is not None:
                with contextlib.suppress(BrokenPipeError):
                    pipe.close()
        with contextlib.suppress(
            subprocess.TimeoutExpired
        ):  # stuck in the kernel: not ours to mend
            self.popen.wait(KILL_PATIENCE_S)

    def _wait_gone(self, patience_s: float) -> None:
        deadline = time.monotonic() + patience_s
        while self.members() and time.monotonic() < deadline:
            time.sleep(_POLL_S)

    def _signal_all(self, number: signal.Signals) -> bool:
        """Send to all that run; False if nothing does."""
        import psutil

        members = self.members(thorough=True)
        for process in members:
            with contextlib.suppress(psutil.Error):
                process.send_signal(number)
        return bool(members)

    def _pids_of_session(self) -> set[int]:
        import psutil

        return {pid for pid in psutil.pids() if _session_of(pid) == self.popen.pid}

    def _marked_pids(self) -> set[int]:
        import psutil

        found = set()
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error, OSError):
                # What waits for a device in the kernel may not let its memory be read at all.
                if process.status() == psutil.STATUS_DISK_SLEEP:
                    continue
                if process.environ().get(MARK) == self._mark:
                    found.add(process.pid)
        return found


def _sum(members: Sequence[psutil.Process], bytes_of: Callable[[psutil.Process], int]) -> int:
    import psutil

    total = 0
    for process in members:
        with contextlib.suppress(psutil.Error, OSError):  # it may end meanwhile
            total += bytes_of(process)
    return total


def _runs(process: psutil.Process) -> bool:
    """True while exactly this process runs; one that waits to be collected does not."""
    import psutil

    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


def _session_of(pid: int) -> int | None:
    try:
        return os.getsid(pid)
    except OSError:
        return None
