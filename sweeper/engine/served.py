"""What all served engines share: from a launch request to a running server, and back to nothing.

A variant says how its server is started, what its log means, and what it tells of itself; the
process, the port, readiness and the end are the same for all.
"""

from __future__ import annotations

import json
import os
import secrets
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sweeper.config.deadlines import stall_s
from sweeper.config.schema import EngineConfig
from sweeper.engine import compile_cache
from sweeper.engine.comparison import Tolerance, ineffective, not_told
from sweeper.engine.device_memory import DeviceMemory, memory_of
from sweeper.engine.devices import devices_of
from sweeper.engine.local_http import Endpoint
from sweeper.engine.log_file import read_log
from sweeper.engine.occupancy import Occupancy
from sweeper.engine.ports import free_port
from sweeper.engine.process import ProcessGroup, inherited_environment
from sweeper.engine.protocol import (
    EngineFacts,
    LaunchFailure,
    LaunchRequest,
    ParameterValue,
    RunningServer,
)
from sweeper.engine.readiness import Readiness, State, wait_ready
from sweeper.engine.socket_folder import emptied
from sweeper.engine.stall import StallWatch
from sweeper.redaction import HIDDEN, carries_secret, redact_data
from sweeper.verdicts import Diagnosis, Phase

LOG_NAME = "server.log"
PORT_ATTEMPTS = 3


@dataclass(frozen=True)
class Command:
    """How a server is started.

    Attributes:
        argv: program and arguments.
        env: added to the inherited environment.
        flags: what was asked of the engine, by underscored name.
    """

    argv: tuple[str, ...]
    env: Mapping[str, str]
    flags: Mapping[str, Any] = field(default_factory=dict)


class ServedEngine(ABC):
    """An engine whose server is a process on this machine.

    Args:
        cfg: how the engine is started, whatever the deployment.
        cache_dir: folder for the engine's own caches.
    """

    name: str
    kind = "served"
    predicted = False
    needs_checkpoint = True
    tolerated: Sequence[Tolerance] = ()

    def __init__(self, cfg: EngineConfig, *, cache_dir: Path) -> None:
        self.cfg = cfg
        self.cache_dir = cache_dir
        self.pick_port: Callable[[], int] = free_port

    @abstractmethod
    def facts(self) -> EngineFacts:
        """Ask the installation (cached). Raises EngineError if it is not usable."""

    @abstractmethod
    def diagnose(self, log_text: str, phase: Phase, exit_code: int | None) -> Diagnosis:
        """Explain a failed launch from its log. Pure."""

    @abstractmethod
    def start_command(
        self, parameters: Mapping[str, ParameterValue], model_path: str
    ) -> tuple[dict[str, Any], dict[str, str]]:
        """Flags and environment that reproduce a deployment."""

    @abstractmethod
    def command(self, request: LaunchRequest, endpoint: Endpoint) -> Command:
        """How the server of a request is started on a port."""

    @abstractmethod
    def effective_args(self, endpoint: Endpoint, log_text: str) -> dict[str, Any]:
        """Arguments read back from a running server."""

    def echoed_args(self, log_text: str) -> dict[str, Any]:
        """Arguments as the server understood its command line; no proof that they had an effect.

        Pure. An engine that tells none has none.
        """
        return {}

    @abstractmethod
    def learnt(self, log_text: str) -> dict[str, float | int | str]:
        """Figures from the log of a server that started. Pure."""

    def devices(self) -> tuple[str, ...]:
        """Names of the devices a launch occupies, see `sweeper.engine.devices`."""
        return devices_of(self.facts().device, self._inherited())

    def device_memory(self) -> DeviceMemory | None:
        """The memory that has to come back after a launch; None looks at none."""
        return memory_of(self.facts().device, self._inherited())

    def compile_cache(self) -> Path | None:
        """Folder of compiled code that may be wiped if it is damaged; None if there is none."""
        return None

    def sockets(self) -> Path | None:
        """Folder of the sockets between an engine's own processes; None if it has none."""
        return None

    @contextmanager
    def serve(self, request: LaunchRequest) -> Iterator[RunningServer]:
        """Start a server and stop it on leaving, whatever happens. See `Engine.serve`."""
        place = Occupancy(self.devices(), self.device_memory(), self.cfg, request)
        with place, emptied(self.sockets()), ExitStack() as stack:
            yield self._launched(stack, request, place)

    @contextmanager
    def launch(self, request: LaunchRequest, place: Occupancy) -> Iterator[RunningServer]:
        """One launch on devices that are ours: on a free port, or if that was lost on another."""
        with ExitStack() as stack:
            yield self._on_some_port(stack, request, place)

    def _launched(
        self, stack: ExitStack, request: LaunchRequest, place: Occupancy
    ) -> RunningServer:
        """Launch; once more if the cache of compiled code was damaged and could be wiped."""
        if (folder := self.compile_cache()) is not None:
            with suppress(OSError):  # the engine makes its own then, and it is never wiped
                compile_cache.prepare(folder)
        try:
            return stack.enter_context(self.launch(request, place))
        except LaunchFailure as failure:
            if failure.halt is not None or not self._healed(failure, request):
                raise
        return stack.enter_context(self.launch(request, place))

    def _healed(self, failure: LaunchFailure, request: LaunchRequest) -> bool:
        """Wipe the cache of compiled code if it is to blame. False if it is not, or stays."""
        from sweeper.engine.failed_start import cache_is_to_blame

        folder, log_path = self.compile_cache(), request.run_dir / LOG_NAME
        if folder is None or not cache_is_to_blame(failure.diagnosis, read_log(log_path)):
            return False
        problem = compile_cache.wipe(folder, self.cache_dir.resolve())
        if problem is not None:
            request.tell(f"the engine's cache is damaged and was not wiped: {problem}")
            return False
        with suppress(OSError):
            log_path.rename(log_path.with_name("server-damaged-cache.log"))
        request.tell("the engine's cache of compiled code was damaged: wiped, starting once more")
        return True

    def _on_some_port(
        self, stack: ExitStack, request: LaunchRequest, place: Occupancy
    ) -> RunningServer:
        """Start on a free port; on another one if somebody took it meanwhile."""
        deadline = time.monotonic() + request.start_timeout_s
        for attempt in range(1, PORT_ATTEMPTS + 1):
            timeout_s = max(0.1, deadline - time.monotonic())
            try:
                return stack.enter_context(self._on_a_port(request, place, timeout_s))
            except LaunchFailure as failure:
                lost_port = failure.diagnosis.learnt.get("rule") in {"port_taken", "foreign_port"}
                if not lost_port or failure.halt is not None or attempt == PORT_ATTEMPTS:
                    raise
        raise AssertionError("the last attempt returns or raises")

    @contextmanager
    def _on_a_port(
        self, request: LaunchRequest, place: Occupancy, timeout_s: float
    ) -> Iterator[RunningServer]:
        endpoint = Endpoint(self.pick_port(), request.served_name, _new_key())
        request.run_dir.mkdir(parents=True, exist_ok=True)
        command = self.command(request, endpoint)
        note_command(request.run_dir, command)
        with self.process_group(request, command, place) as group:
            outcome = wait_ready(endpoint, group, timeout_s, self.stall_watch(request, place))
            if outcome.state is not State.READY:
                raise LaunchFailure(self.failed(outcome, group.log_path, timeout_s))
            yield self._running(group, endpoint, command, outcome.after_s)

    def stall_watch(self, request: LaunchRequest, place: Occupancy) -> StallWatch:
        """What tells a start that hangs from one that takes long."""
        timeout_s = stall_s(self.cfg.stall_timeout_s, request.start_timeout_s)
        return StallWatch(request.run_dir / LOG_NAME, timeout_s, place.device_bytes)

    def failed(self, outcome: Readiness, log_path: Path, timeout_s: float) -> Diagnosis:
        """Explain a launch that did not become ready."""
        # Reading logs takes hundreds of patterns, which most commands never need.
        from sweeper.engine.failed_start import explain_start, with_surroundings

        explained = explain_start(self.diagnose, outcome, read_log(log_path), timeout_s)
        return with_surroundings(explained, log_path)

    def _inherited(self) -> dict[str, str]:
        return {**os.environ, **self.cfg.env}

    def process_group(
        self,
        request: LaunchRequest,
        command: Command,
        place: Occupancy,
        pass_fds: tuple[int, ...] = (),
    ) -> ProcessGroup:
        """The processes of a launch, not started yet; they inherit the descriptors `pass_fds`."""
        named = () if request.record_path is None else (request.record_path,)
        group = ProcessGroup(
            command.argv,
            env={**inherited_environment(), **command.env},
            log_path=request.run_dir / LOG_NAME,
            token=request.token,
            stop_timeout_s=self.cfg.stop_timeout_s,
            record_paths=(*named, *place.records),
            pass_fds=pass_fds,
        )
        place.watch(group)
        return group

    def _running(
        self, group: ProcessGroup, endpoint: Endpoint, command: Command, after_s: float
    ) -> RunningServer:
        group.members(thorough=True)
        log_text = read_log(group.log_path)
        effective = self.effective_args(endpoint, log_text)
        known, learnt = self.in_effect(command, log_text, effective)
        return RunningServer(
            base_url=endpoint.base_url,
            served_name=endpoint.served_name,
            api_key=endpoint.api_key,
            pid=group.pid,
            ready_after_s=after_s,
            argv=command.argv,
            effective_args=known,
            learnt=learnt,
            is_alive=lambda: group.poll() is None,
            log_path=group.log_path,
            exit_code=group.poll,
        )

    def in_effect(
        self, command: Command, log_text: str, effective: Mapping[str, Any]
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Arguments that rule a started engine, and what was learnt from its log. Pure.

        Args:
            effective: what the engine itself tells of its arguments.

        Raises:
            LaunchFailure: a flag had no effect.
        """
        learnt: dict[str, Any] = dict(self.learnt(log_text))
        if unknown := not_told(command.flags, effective):
            learnt["not_told"] = unknown
        known = _over(self.echoed_args(log_text), effective)
        if ignored := ineffective(command.flags, known, tolerated=self.tolerated):
            from sweeper.engine.failed_start import without_effect

            raise LaunchFailure(without_effect(ignored, log_text))
        return known, learnt


def _over(echoed: Mapping[str, Any], effective: Mapping[str, Any]) -> dict[str, Any]:
    """What is in effect; where nothing tells, what the server understood."""
    known = {**echoed, **effective}
    for name, told in effective.items():
        understood = echoed.get(name)
        if isinstance(told, Mapping) and isinstance(understood, Mapping):
            known[name] = {**understood, **told}
    return known


def _new_key() -> str:
    """The API key of one launch, in a form that `sweeper.redaction` knows wherever it turns up."""
    return f"sk-sweeper-{secrets.token_urlsafe(24)}"


def note_command(run_dir: Path, command: Command) -> None:
    """Write `argv.json`, the launch as it was started, without secrets."""
    env = {k: HIDDEN if carries_secret(k, v) else v for k, v in sorted(command.env.items())}
    note = redact_data({"argv": list(command.argv), "env": env})
    (run_dir / "argv.json").write_text(json.dumps(note, indent=2) + "\n")
