"""A launch's hold on its devices, from before its start to after its end.

    lock the devices → end what a dead tuner left there → memory at rest
        → launch → ... → stopped
    → memory back as before → unlock

The lock is kept until memory is back, so that whoever waits for it finds the devices as empty as
they will be. What does not come back is `StopFailure`, or the `halt` of a failed start.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Self

from sweeper.config.schema import EngineConfig
from sweeper.engine import device_memory, orphans, runtime_folder
from sweeper.engine.device_lock import DeviceBusyError, DeviceLock, lock_path
from sweeper.engine.device_memory import DeviceMemory, Reading, Unrest
from sweeper.engine.orphans import LaunchRecord
from sweeper.engine.process import ProcessGroup
from sweeper.engine.protocol import LaunchFailure, LaunchRequest, StopFailure
from sweeper.errors import EngineError
from sweeper.verdicts import Diagnosis, Phase, Verdict

_BY_MEMORY = {Verdict.CAPACITY, Verdict.INFRA, Verdict.UNKNOWN}


class Occupancy:
    """The devices of one launch. A context manager.

    Args:
        devices: their names; none takes no lock.
        memory: theirs; None looks at none.
        cfg: `device_wait_s` and `memory_patience_s`.
        request: whose launch it is, and who is told.
    """

    def __init__(
        self,
        devices: Sequence[str],
        memory: DeviceMemory | None,
        cfg: EngineConfig,
        request: LaunchRequest,
    ) -> None:
        self._devices = tuple(sorted(set(devices)))
        self._memory = memory
        self._cfg = cfg
        self._request = request
        self._lock: DeviceLock | None = None
        self._before: Reading | None = None
        self._groups: list[ProcessGroup] = []
        self.records: tuple[Path, ...] = ()

    def watch(self, group: ProcessGroup) -> None:
        """Count the processes of a group as the launch's own."""
        self._groups.append(group)

    def device_bytes(self) -> int:
        """Memory that is held on the devices now, by whomever; 0 if it is not told."""
        now = self._memory.read() if self._memory is not None and self._memory.is_exact else None
        return 0 if now is None else int((now.total_gib - now.free_gib) * 2**30)

    def __enter__(self) -> Self:
        """Take the devices.

        Raises:
            LaunchFailure: they are not free, or not at rest.
        """
        try:
            self._take()
        except DeviceBusyError as busy:
            self._release()
            raise LaunchFailure(_infra(busy.message, busy.remedy, "device_busy")) from busy
        except StopFailure as left:
            self._release()
            cause = _infra(left.message, left.remedy, "device_busy")
            raise LaunchFailure(cause, halt=left.diagnosis) from left
        except EngineError as problem:
            self._release()
            raise LaunchFailure(_infra(problem.message, problem.remedy, "no_lock")) from problem
        except BaseException:
            self._release()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            # On Ctrl-C nobody is made to wait; the next start looks for itself.
            if error is None or isinstance(error, Exception):
                self._leave(error)
        finally:
            self._release()

    def _take(self) -> None:
        if self._devices:
            folder, own = runtime_folder.shared_folder(), runtime_folder.own_folder()
            note = {"study": self._request.study} if self._request.study else {}
            lock = DeviceLock(self._devices, folder, note)
            lock.acquire(self._cfg.device_wait_s, self._request.tell)
            self._lock = lock
            self.records = tuple(
                (own / lock_path(own, name).name).with_suffix(".json") for name in self._devices
            )
            self._reap()
        if self._memory is None:
            return
        found = device_memory.wait_at_rest(self._memory, self._cfg.memory_patience_s)
        if isinstance(found, Unrest):
            raise LaunchFailure(
                _infra(
                    found.text,
                    "end the processes that use the device, or wait until they have loaded",
                    "memory_unstable",
                )
            )
        self._before = found

    def _reap(self) -> None:
        """End what tuners left here that died; those that live would hold the lock."""
        for path in self.records:
            if LaunchRecord(path).tuner_lives():
                raise DeviceBusyError(
                    f"a living tuner notes a launch on this device in {path}, and does not hold "
                    "its lock",
                    "stop that tuner; its lock file was removed while it ran",
                )
            for pid in orphans.reap(path):
                self._request.tell(f"ended process {pid}, left on this device by a killed tuner")

    def _leave(self, error: Exception | None) -> None:
        if isinstance(error, StopFailure):
            return
        if isinstance(error, LaunchFailure):
            self._explain(error)
            if error.halt is not None:
                return
        unrest = self._not_back()
        if unrest is None:
            return
        failure = StopFailure(
            unrest.text,
            "see which process holds the memory and end it; if there is none, the driver keeps "
            "it: restart the container or reset the device, then resume the study",
        )
        if isinstance(error, LaunchFailure):
            error.halt = failure.diagnosis
        else:
            raise failure from error

    def _not_back(self) -> Unrest | None:
        if self._memory is None or self._before is None:
            return None
        ours = {pid for group in self._groups for pid in group.pids()}
        patience_s = self._cfg.memory_patience_s
        return device_memory.wait_back(
            self._memory, self._before, ours, patience_s, self._request.tell
        )

    def _explain(self, failure: LaunchFailure) -> None:
        """Name who else holds memory, where a start may have failed by that.

        What was there before stays the deployment's matter: it has to fit beside it. What came
        meanwhile is not its fault.
        """
        found = failure.diagnosis
        now = self._memory.read() if self._memory is not None else None
        if found.verdict not in _BY_MEMORY or now is None or self._before is None:
            return
        ours = {pid for group in self._groups for pid in group.pids()}
        foreign = [holder for holder in now.holders if holder.pid not in ours]
        if not foreign:
            return
        known = sum(holder.gib or 0.0 for holder in foreign)
        then = sum(holder.gib or 0.0 for holder in self._before.holders)
        shown = device_memory.shown(foreign)
        came = known - then > self._before.tolerance_gib and found.verdict is Verdict.CAPACITY
        failure.diagnosis = replace(
            found,
            verdict=Verdict.INFRA if came else found.verdict,
            cause=f"{found.cause}; meanwhile {shown}" if came else found.cause,
            remedy="end the other processes on the device" if came else found.remedy,
            evidence=f"{found.evidence}\non the device beside the launch: {shown}".strip(),
            learnt={**found.learnt, "foreign_memory_gib": round(known, 2)},
        )

    def _release(self) -> None:
        if self._lock is not None:
            self._lock.release()
            self._lock = None


def _infra(cause: str, remedy: str, rule: str) -> Diagnosis:
    return Diagnosis(Verdict.INFRA, Phase.START, cause, remedy, learnt={"rule": rule})
