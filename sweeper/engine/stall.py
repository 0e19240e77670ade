"""Whether a starting server still gets on, told by what moves and not by the clock alone.

A start that works writes a log, reads or writes a disk, takes or gives back memory, or starts and
ends processes. One that hangs does none of it, though it may keep all its processors busy (workers
that spin while they wait for each other), so processor time says nothing. A log in which only
known lines come again ("still waiting ...") has not moved either.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from sweeper.engine.procfs import Identity

LOOK_EVERY_S = 1.0
DISK_STEP_BYTES = 1 << 20
MEMORY_STEP_BYTES = 16 << 20
"""Less comes and goes in a process that only waits."""
MAX_LOOK_BYTES = 1 << 20
MAX_KNOWN_LINES = 20_000
_PROC = Path("/proc")
_PAGE_BYTES = 4096
_NUMBER = re.compile(r"\d+")


@dataclass(frozen=True)
class Signs:
    """What a launch has done so far.

    Attributes:
        news: lines of its log that said something new, counted.
        disk_bytes: read from and written to disks by all its processes.
        memory_bytes: held by all its processes, and on its devices if that is told.
        processes: those that live.
    """

    news: int
    disk_bytes: int
    memory_bytes: int
    processes: frozenset[Identity]


def moved(since: Signs, now: Signs) -> bool:
    """True if anything has moved beyond what also moves while nothing happens. Pure."""
    return (
        now.news > since.news
        or now.processes != since.processes
        or abs(now.disk_bytes - since.disk_bytes) >= DISK_STEP_BYTES
        or abs(now.memory_bytes - since.memory_bytes) >= MEMORY_STEP_BYTES
    )


@dataclass
class LogNews:
    """Counts the lines of a growing log that say something new; numbers are not news.

    Args:
        path: the log; it need not be there yet.
    """

    path: Path
    news: int = 0
    _offset: int = 0
    _rest: bytes = b""
    _known: set[str] = field(default_factory=set)

    def look(self) -> int:
        """Read what has come, and return the count."""
        try:
            with self.path.open("rb") as file:
                size = file.seek(0, 2)
                if size < self._offset:
                    self._offset, self._rest = 0, b""
                elif size - self._offset > MAX_LOOK_BYTES:
                    self.news += 1  # nobody repeats himself that fast
                    self._offset = size - MAX_LOOK_BYTES
                file.seek(self._offset)
                piece = file.read(MAX_LOOK_BYTES)
        except OSError:
            return self.news
        self._offset += len(piece)
        *whole, self._rest = (self._rest + piece).replace(b"\r", b"\n").split(b"\n")
        for line in whole:
            self._take(line.decode("utf-8", errors="replace"))
        if len(self._rest) > MAX_LOOK_BYTES:
            self._rest = b""
        return self.news

    def _take(self, line: str) -> None:
        plain = _NUMBER.sub("#", line).strip()
        if plain and plain not in self._known:
            self.news += 1
            if len(self._known) < MAX_KNOWN_LINES:
                self._known.add(plain)


class StallWatch:
    """Looks at a launch again and again, and says so once nothing has moved for too long.

    Args:
        log_path: the server's log.
        timeout_s: how long nothing may move.
        device_bytes: memory held on the launch's devices; None if that is not told.
        clock: seconds, monotonic.
    """

    def __init__(
        self,
        log_path: Path,
        timeout_s: float,
        device_bytes: Callable[[], int] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.timeout_s = timeout_s
        self._log = LogNews(log_path)
        self._device_bytes = device_bytes
        self._clock = clock
        self._since: tuple[float, Signs] | None = None

    def look(self, members: Iterable[Identity]) -> str | None:
        """Look now.

        Returns:
            What stood still, one line, if it has for `timeout_s`; None while something moves.
        """
        now_s, signs = self._clock(), self._signs(frozenset(members))
        if self._since is None or moved(self._since[1], signs):
            self._since = now_s, signs
            return None
        still_s = now_s - self._since[0]
        if still_s < self.timeout_s:
            return None
        return (
            f"nothing moved for {still_s:.0f} s: no new line in the log, no disk read or written, "
            f"{signs.memory_bytes / 2**30:.2f} GiB of memory held, the same "
            f"{len(signs.processes)} processes"
        )

    def _signs(self, members: frozenset[Identity]) -> Signs:
        device = self._device_bytes() if self._device_bytes is not None else 0
        return Signs(
            self._log.look(),
            sum(_disk_bytes(member.pid) for member in members),
            sum(_memory_bytes(member.pid) for member in members) + device,
            members,
        )


def _disk_bytes(pid: int) -> int:
    """Read from and written to storage by a process; 0 if it is not told."""
    try:
        text = (_PROC / str(pid) / "io").read_text()
    except OSError:
        return 0
    told = dict(line.split(": ", 1) for line in text.splitlines() if ": " in line)
    return int(told.get("read_bytes", 0)) + int(told.get("write_bytes", 0))


def _memory_bytes(pid: int) -> int:
    """Resident memory of a process; 0 if it is gone."""
    try:
        return int((_PROC / str(pid) / "statm").read_text().split()[1]) * _PAGE_BYTES
    except (OSError, IndexError, ValueError):
        return 0
