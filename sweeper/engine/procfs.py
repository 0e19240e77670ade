"""Processes as the Linux kernel lists them: identity, descent, session and launch token.

A pid alone is no identity, because the kernel reuses it; a pid with the tick it started at is,
until the machine boots again. Everything that sends a signal compares both first.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

TOKEN_VARIABLE = "SWEEPER_LAUNCH_TOKEN"
"""Environment variable by which every process of a launch is marked."""

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
    """

    identity: Identity
    parent: int
    session: int
    is_zombie: bool


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
    try:
        environment = (_PROC / str(pid) / "environ").read_bytes()
    except OSError:
        return None
    prefix = f"{TOKEN_VARIABLE}=".encode()
    for entry in environment.split(b"\0"):
        if entry.startswith(prefix):
            return entry[len(prefix) :].decode(errors="replace")
    return None


def is_resource_tracker(pid: int) -> bool:
    """True for Python's helper that removes shared memory once the processes using it are gone."""
    try:
        command = (_PROC / str(pid) / "cmdline").read_bytes()
    except OSError:
        return False
    return b"multiprocessing.resource_tracker" in command


def boot_id() -> str:
    """Changes with every boot, so that pids of another boot (or machine) are not trusted."""
    try:
        return (_PROC / "sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""
