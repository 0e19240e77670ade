"""Processes as the Linux kernel lists them: identity, descent, session and launch token.

A pid alone is no identity, because the kernel reuses it; a pid with the tick it started at is,
until the machine boots again. Everything that sends a signal compares both first.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

TOKEN_VARIABLE = "SWEEPER_LAUNCH_TOKEN"
"""Environment variable by which every process of a launch is marked."""

STUCK_PATIENCE_S = 0.5
_PROC = Path("/proc")


class Identity(NamedTuple):
    """One process for certain: its pid and the clock tick since boot at which it started."""

    pid: int
    start_ticks: int


@dataclass(frozen=True)
class Process:
    """A line of the process table.

    Attributes:
        identity: pid and start tick.
        parent: pid of the parent.
        session: pid of the session's leader.
        is_zombie: True if it has ended and only waits to be collected.
        is_stuck: True while it waits in the kernel and cannot be interrupted: for a moment in any
            process that reads a disk, for ever in one whose device has failed.
    """

    identity: Identity
    parent: int
    session: int
    is_zombie: bool
    is_stuck: bool = False


def table() -> dict[int, Process]:
    """All processes that can be seen, by pid."""
    found = (read(int(entry.name)) for entry in _PROC.iterdir() if entry.name.isdigit())
    return {process.identity.pid: process for process in found if process is not None}


def read(pid: int) -> Process | None:
    """One process, or None if there is none of that pid."""
    try:
        text = (_PROC / str(pid) / "stat").read_text(errors="replace")
    except OSError:
        return None
    # The command name stands in parentheses and may itself contain any character, ")" too.
    values = text[text.rfind(")") + 2 :].split()
    if len(values) < 20:
        return None
    return Process(
        identity=Identity(pid, int(values[19])),
        parent=int(values[1]),
        session=int(values[3]),
        is_zombie=values[0] in {"Z", "X"},
        is_stuck=values[0] == "D",
    )


def is_living(identity: Identity) -> bool:
    """True while exactly this process runs (a zombie does not)."""
    process = read(identity.pid)
    return process is not None and process.identity == identity and not process.is_zombie


def descendants(processes: Mapping[int, Process], roots: Iterable[int]) -> set[int]:
    """Pids below `roots` in the tree, the roots themselves left out."""
    children: dict[int, list[int]] = {}
    for pid, process in processes.items():
        children.setdefault(process.parent, []).append(pid)
    found: set[int] = set()
    waiting = list(roots)
    while waiting:
        for child in children.get(waiting.pop(), []):
            if child not in found:
                found.add(child)
                waiting.append(child)
    return found


def ancestors(processes: Mapping[int, Process], pid: int) -> set[int]:
    """`pid` and everything above it: what must never be sent a signal."""
    found: set[int] = set()
    while pid in processes and pid not in found:
        found.add(pid)
        pid = processes[pid].parent
    return found


def launch_token(pid: int) -> str | None:
    """The launch token in a process's environment; None if it has none or may not be read."""
    environment = _memory_of(pid, "environ")
    prefix = f"{TOKEN_VARIABLE}=".encode()
    for entry in environment.split(b"\0"):
        if entry.startswith(prefix):
            return entry[len(prefix) :].decode(errors="replace")
    return None


def outputs(pid: int) -> set[str]:
    """Where a process writes its output and errors, as paths; empty if that may not be read."""
    found = set()
    for descriptor in ("1", "2"):
        with contextlib.suppress(OSError):
            found.add(str((_PROC / str(pid) / "fd" / descriptor).readlink()))
    return found


def is_resource_tracker(pid: int) -> bool:
    """True for Python's helper that removes shared memory once the processes using it are gone."""
    return b"multiprocessing.resource_tracker" in _memory_of(pid, "cmdline")


def _memory_of(pid: int, name: str) -> bytes:
    """A file of a process that the kernel reads out of its memory; empty if it may not be read.

    Of a process that is stuck in the kernel such a read may itself never come back, so it is left
    to a thread and given up after a moment.
    """

    def content() -> bytes:
        try:
            return (_PROC / str(pid) / name).read_bytes()
        except OSError:
            return b""

    process = read(pid)
    if process is None or not process.is_stuck:
        return content()
    found: list[bytes] = []
    thread = threading.Thread(target=lambda: found.append(content()), daemon=True)
    thread.start()
    thread.join(STUCK_PATIENCE_S)
    return found[0] if found else b""


def boot_id() -> str:
    """Changes with every boot, so that pids of another boot (or machine) are not trusted."""
    try:
        return (_PROC / "sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""
