"""Device memory: at rest before a launch, and back after it.

    before a start   read, until two readings in a row agree   → what the launch is given
    after its stop   read, until as much is free as before     → else who holds it, ours or not

A GPU has a driver that can be asked (`GpuMemory`). Host memory has none to ask for one launch: it
moves with everything that runs, page cache counts as free, and the kernel takes back all that a
process held when it dies. So on a CPU it is only looked at, and what may really stay there, files
in shared memory, is watched by `sweeper.engine.shared_memory`.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from sweeper.hardware import nvidia
from sweeper.hardware.nvidia import Holder

PAUSE_S = 0.5
REST_TOLERANCE_GIB = 0.25
"""Two readings that differ by less are the same: contexts and clocks move a little."""
BACK_TOLERANCE_GIB = 0.5
BACK_TOLERANCE_SHARE = 0.01
HOST_TOLERANCE_SHARE = 0.25


@dataclass(frozen=True)
class Reading:
    """Memory of one launch's devices at one moment, in GiB, summed over them."""

    total_gib: float
    free_gib: float
    holders: tuple[Holder, ...] = ()

    @property
    def tolerance_gib(self) -> float:
        """What may be missing after a stop without meaning anything."""
        return max(BACK_TOLERANCE_GIB, BACK_TOLERANCE_SHARE * self.total_gib)


class DeviceMemory(Protocol):
    """A source of readings.

    Attributes:
        is_exact: True if all that a launch takes shows here and comes back with its end.
    """

    is_exact: bool

    def read(self) -> Reading | None:
        """Memory now; None if it cannot be told."""
        ...


class GpuMemory:
    """The GPUs that a process with this CUDA_VISIBLE_DEVICES may use, as NVML tells them."""

    is_exact = True

    def __init__(self, setting: str | None) -> None:
        self._setting = setting

    def read(self) -> Reading | None:
        """Sum over the GPUs; a process on several is one holder."""
        gpus = nvidia.read_memory(self._setting)
        if not gpus:
            return None
        held: dict[int, Holder] = {}
        for holder in (holder for gpu in gpus for holder in gpu.holders):
            known = held.get(holder.pid)
            both = (holder.gib, known.gib if known else 0.0)
            gib = None if None in both else sum(part or 0.0 for part in both)
            held[holder.pid] = Holder(holder.pid, holder.name, gib)
        return Reading(
            sum(gpu.total_gib for gpu in gpus),
            sum(gpu.free_gib for gpu in gpus),
            tuple(held[pid] for pid in sorted(held)),
        )


class HostMemory:
    """Memory of this machine that programs can still get."""

    is_exact = False

    def read(self) -> Reading | None:
        """As the kernel estimates it: page cache counts as free."""
        import psutil

        memory = psutil.virtual_memory()
        return Reading(memory.total / 2**30, memory.available / 2**30)


class FileMemory:
    """A device that is only a file: for tests of what is hard to bring about on a real one.

    Args:
        path: a JSON object with `total_gib`, `free_gib` and, if anybody is to be seen, `holders`:
            a list of objects with `pid`, `name` and `gib`.
    """

    is_exact = True

    def __init__(self, path: Path) -> None:
        self._path = path

    def read(self) -> Reading | None:
        """What the file says now; None while it is not there or half written."""
        try:
            told = json.loads(self._path.read_text(encoding="utf-8"))
            holders = tuple(
                Holder(int(one["pid"]), str(one["name"]), one.get("gib"))
                for one in told.get("holders", ())
            )
            return Reading(float(told["total_gib"]), float(told["free_gib"]), holders)
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return None


@dataclass(frozen=True)
class Unrest:
    """Memory that did not come to rest, or did not come back.

    Attributes:
        text: one line: how much, and who holds it.
        pids: processes of ours among the holders, which should be dead.
    """

    text: str
    pids: tuple[int, ...] = ()


def wait_at_rest(
    source: DeviceMemory, patience_s: float, pause_s: float = PAUSE_S
) -> Reading | Unrest | None:
    """Wait until two readings in a row agree.

    Returns:
        The reading; `Unrest` if memory still moved after `patience_s`; None if it is not told.
    """
    deadline = time.monotonic() + patience_s
    last = source.read()
    if last is None or not source.is_exact:
        return last
    while True:
        time.sleep(pause_s)
        now = source.read()
        if now is None:
            return None
        if abs(now.free_gib - last.free_gib) <= REST_TOLERANCE_GIB:
            return now
        if time.monotonic() >= deadline:
            return Unrest(
                f"free memory of the device still moves after {patience_s:g} s: "
                f"{last.free_gib:.1f} GiB, then {now.free_gib:.1f} GiB; {shown(now.holders)}"
            )
        last = now


def wait_back(
    source: DeviceMemory,
    before: Reading,
    ours: Collection[int],
    patience_s: float,
    tell: Callable[[str], None],
    *,
    pause_s: float = PAUSE_S,
) -> Unrest | None:
    """Wait until as much memory is free as before a launch, but for what others have taken since.

    Args:
        source: of the readings.
        before: the launch was given this.
        ours: pids of all processes that the launch ever had.
        patience_s: how long it may take.
        tell: told of memory that somebody else has taken meanwhile.

    Returns:
        None if it is back, or cannot be told; otherwise how much is missing and who holds it.
    """
    deadline = time.monotonic() + patience_s
    while True:
        now = source.read()
        if now is None:
            return None
        missing = missing_of(before, now, ours)
        if not missing.is_leak or not source.is_exact:
            if missing.note:
                tell(missing.note)
            return None
        if time.monotonic() >= deadline:
            return Unrest(f"{missing.text} after {patience_s:g} s", missing.pids)
        time.sleep(pause_s)


@dataclass(frozen=True)
class Missing:
    """What is not free any more, judged.

    Attributes:
        is_leak: True if it may be the launch's own.
        text: how much, and who holds it.
        note: of memory that somebody else has taken; empty if nobody has.
        pids: processes of ours that hold some.
    """

    is_leak: bool
    text: str = ""
    note: str = ""
    pids: tuple[int, ...] = ()


def missing_of(before: Reading, now: Reading, ours: Collection[int]) -> Missing:
    """Whose the memory is that is no longer free. Pure.

    What a process of ours holds is a leak. What others hold more than before is theirs; if the
    driver does not say how much a newcomer holds, it may be all. What nobody holds that can be
    seen is taken for a leak, because the launch is the only one known to have used it.
    """
    gone_gib = before.free_gib - now.free_gib
    left = tuple(holder for holder in now.holders if holder.pid in ours)
    then = {holder.pid: holder.gib or 0.0 for holder in before.holders}
    grown = [
        (holder, None if holder.gib is None else holder.gib - then.get(holder.pid, 0.0))
        for holder in now.holders
        if holder.pid not in ours
    ]
    foreign = [(h, gib) for h, gib in grown if gib is None or gib > 0]
    untold = any(gib is None and holder.pid not in then for holder, gib in foreign)
    foreign_gib = sum(gib or 0.0 for _, gib in foreign)
    others = shown([holder for holder, _ in foreign])
    if left:
        return Missing(
            True,
            f"{shown(left)} of the launch itself",
            pids=tuple(holder.pid for holder in left),
        )
    if gone_gib <= before.tolerance_gib:
        return Missing(False)
    if untold or gone_gib - foreign_gib <= before.tolerance_gib:
        return Missing(
            False, note=f"{gone_gib:.1f} GiB of the device were taken by others meanwhile: {others}"
        )
    return Missing(
        True,
        f"{gone_gib:.1f} GiB of the device did not come back ({before.free_gib:.1f} GiB were free "
        f"before the start, {now.free_gib:.1f} GiB are now); {shown(now.holders)}",
    )


def shown(holders: Collection[Holder]) -> str:
    """Who holds memory, one line."""
    if not holders:
        return "no process that can be seen holds it"
    parts = [
        f"process {holder.pid} ({holder.name}) holds "
        + ("an unknown amount" if holder.gib is None else f"{holder.gib:.1f} GiB")
        for holder in holders
    ]
    return ", ".join(parts)


def memory_of(kind: str, environment: Mapping[str, str]) -> DeviceMemory:
    """The memory that a server on devices of a kind takes, see `sweeper.engine.devices`."""
    return GpuMemory(environment.get("CUDA_VISIBLE_DEVICES")) if kind == "cuda" else HostMemory()
