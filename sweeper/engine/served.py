"""What all served engines share: from a launch request to a running server, and back to nothing.

A variant says how its server is started, what its log means, and what it tells of itself; the
process, the port, readiness and the end are the same for all.
"""

from __future__ import annotations

import json
import secrets
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from sweeper.config.schema import EngineConfig
from sweeper.engine import diagnosis
from sweeper.engine.comparison import Tolerance, ineffective, not_told
from sweeper.engine.local_http import Endpoint
from sweeper.engine.log_lines import last_line, lines, tail
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
from sweeper.engine.secret_names import is_secret
from sweeper.verdicts import Diagnosis, Phase, Verdict

PORT_ATTEMPTS = 3
MAX_LOG_BYTES = 16_000_000
MAX_MENTIONS = 12
# Longer lines are the engine's list of all its settings.
MAX_MENTION_CHARS = 600


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

    @contextmanager
    def serve(self, request: LaunchRequest) -> Iterator[RunningServer]:
        """Start a server and stop it on leaving, whatever happens. See `Engine.serve`."""
        group, server = self._start(request)
        try:
            yield server
        finally:
            group.stop()

    def _start(self, request: LaunchRequest) -> tuple[ProcessGroup, RunningServer]:
        """Start on a free port; on another one if somebody took it meanwhile."""
        deadline = time.monotonic() + request.start_timeout_s
        for attempt in range(1, PORT_ATTEMPTS + 1):
            try:
                return self._start_once(request, max(0.1, deadline - time.monotonic()))
            except LaunchFailure as failure:
                lost_port = failure.diagnosis.learnt.get("rule") in {"port_taken", "foreign_port"}
                if not lost_port or attempt == PORT_ATTEMPTS:
                    raise
        raise AssertionError("the last attempt returns or raises")

    def _start_once(
        self, request: LaunchRequest, timeout_s: float
    ) -> tuple[ProcessGroup, RunningServer]:
        endpoint = Endpoint(self.pick_port(), request.served_name, secrets.token_urlsafe(24))
        request.run_dir.mkdir(parents=True, exist_ok=True)
        command = self.command(request, endpoint)
        note_command(request.run_dir, command)
        group = self.process_group(request, command)
        ready = False
        try:
            group.start()
            outcome = wait_ready(endpoint, group, timeout_s)
            if outcome.state is not State.READY:
                raise LaunchFailure(self._failed(outcome, read_log(group.log_path), timeout_s))
            server = self._running(group, endpoint, command, outcome.after_s)
            ready = True
            return group, server
        finally:
            if not ready:
                group.stop()

    def process_group(
        self, request: LaunchRequest, command: Command, pass_fds: tuple[int, ...] = ()
    ) -> ProcessGroup:
        """The processes of a launch, not started yet; they inherit the descriptors `pass_fds`."""
        return ProcessGroup(
            command.argv,
            env={**inherited_environment(), **command.env},
            log_path=request.run_dir / "server.log",
            token=request.token,
            stop_timeout_s=self.cfg.stop_timeout_s,
            record_path=request.record_path,
            pass_fds=pass_fds,
        )

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
            raise LaunchFailure(_without_effect(ignored, log_text))
        return known, learnt

    def _failed(self, outcome: Readiness, log_text: str, timeout_s: float) -> Diagnosis:
        """Explain why a server did not become ready."""
        if outcome.state is State.FOREIGN:
            return _foreign(outcome, log_text)
        if outcome.state is State.DIED:
            return self.diagnose(log_text, outcome.phase, outcome.exit_code)
        known = self.diagnose(log_text, Phase.START, outcome.exit_code)
        if known.verdict is not Verdict.UNKNOWN:
            return diagnosis.settle(known, outcome.phase)
        if outcome.state is State.TIMED_OUT:
            return _timed_out(outcome, log_text, timeout_s)
        return replace(
            known,
            verdict=Verdict.CRASH_UNDER_LOAD,
            phase=Phase.WARMUP,
            cause=outcome.detail if known.cause == diagnosis.NO_CAUSE else known.cause,
            remedy="the server says that it is healthy and cannot complete a prompt: leave this "
            "combination out, and see server.log in the trial's folder",
        )


def read_log(path: Path) -> str:
    """A server's log; of a very long one the beginning and the end, where causes stand."""
    try:
        with path.open("rb") as file:
            head = file.read(MAX_LOG_BYTES // 2)
            rest = file.read()
    except OSError as problem:
        return f"(the log cannot be read: {problem})"
    if len(rest) > MAX_LOG_BYTES // 2:
        rest = b"\n(...)\n" + rest[-MAX_LOG_BYTES // 2 :]
    return (head + rest).decode("utf-8", errors="replace")


def _over(echoed: Mapping[str, Any], effective: Mapping[str, Any]) -> dict[str, Any]:
    """What is in effect; where nothing tells, what the server understood."""
    known = {**echoed, **effective}
    for name, told in effective.items():
        understood = echoed.get(name)
        if isinstance(told, Mapping) and isinstance(understood, Mapping):
            known[name] = {**understood, **told}
    return known


def _without_effect(ignored: Mapping[str, str], log_text: str) -> Diagnosis:
    """Deployments that differ only in a flag without effect are one: the second has no number."""
    causes = "; ".join(f"{name} had no effect: {how}" for name, how in ignored.items())
    return Diagnosis(
        Verdict.INFEASIBLE_CONFIG,
        Phase.START,
        causes,
        f"take {', '.join(ignored)} out of the space or engine.args: this engine, with this model "
        "on this platform, puts a value of its own in its place",
        "\n".join(_mentions(ignored, log_text)) or tail(lines(log_text)),
        {"rule": "flag_without_effect", "ineffective": dict(ignored)},
    )


def _mentions(names: Iterable[str], log_text: str) -> list[str]:
    """Lines of the log that speak of a flag: among them stands why it was not followed."""
    words = [word for name in names for word in (name, name.replace("_", "-"))]
    found = [
        line.text
        for line in lines(log_text)
        if len(line.text) <= MAX_MENTION_CHARS and any(word in line.text for word in words)
    ]
    return found[:MAX_MENTIONS]


def _foreign(outcome: Readiness, log_text: str) -> Diagnosis:
    return Diagnosis(
        Verdict.INFRA,
        Phase.START,
        outcome.detail,
        "another server answers where ours should: end it, or keep it away from this machine's "
        "temporary ports",
        tail(lines(log_text)),
        {"rule": "foreign_port"},
    )


def _timed_out(outcome: Readiness, log_text: str, timeout_s: float) -> Diagnosis:
    last = last_line(lines(log_text))
    return Diagnosis(
        Verdict.STARTUP_TIMEOUT,
        outcome.phase,
        f"not ready after {timeout_s:.0f} s: {outcome.detail}; last line of the log: "
        f"{last or '(none)'}",
        "raise engine.start_timeout_s if the server was still at work; the next start finds the "
        "compile cache warm",
        tail(lines(log_text)),
        {"last_log_line": last} if last else {},
    )


def note_command(run_dir: Path, command: Command) -> None:
    """Write `argv.json`, the launch as it was started, without secrets."""
    env = {k: "(hidden)" if is_secret(k) else v for k, v in sorted(command.env.items())}
    note = {"argv": list(command.argv), "env": env}
    (run_dir / "argv.json").write_text(json.dumps(note, indent=2) + "\n")
