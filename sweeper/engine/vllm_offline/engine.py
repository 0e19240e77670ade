"""The `vllm_offline` engine: vLLM's `LLM` class in a process of its own, given whole batches.

The deployment's flags are those of engine `vllm`; the class takes them under the same names. Its
process group, its log and the end of both are those of every engine; only the conversation goes
over a socket pair instead of HTTP (see `sweeper.engine.vllm_offline.worker`).
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from sweeper.engine.flag_check import BOOLEAN, SWITCH
from sweeper.engine.log_file import read_log
from sweeper.engine.occupancy import Occupancy
from sweeper.engine.process import ProcessGroup
from sweeper.engine.protocol import EngineFacts, LaunchFailure, LaunchRequest, RunningServer
from sweeper.engine.readiness import MEMBERS_PAUSE_S, Readiness, State
from sweeper.engine.served import Command, note_command
from sweeper.engine.stall import StallWatch
from sweeper.engine.vllm import effective, flags, log_facts
from sweeper.engine.vllm.checking import Installed
from sweeper.engine.vllm.engine import VllmEngine, model_flags, model_place
from sweeper.engine.vllm.told import Told
from sweeper.engine.vllm_offline.batches import Batches
from sweeper.engine.vllm_offline.channel import (
    Channel,
    ChannelError,
    WorkerDiedError,
    WorkerSilentError,
)
from sweeper.redaction import carries_secret
from sweeper.verdicts import Diagnosis, Phase

WORKER = Path(__file__).with_name("worker.py")
# A worker that has closed the channel is about to end; its exit code is worth a moment.
DYING_S = 5.0


class VllmOfflineEngine(VllmEngine):
    """vLLM without its server, of whatever version the configured interpreter has.

    Args:
        cfg: `engine.args` become arguments of every `LLM`; a deployment's own parameters win.
        cache_dir: vLLM's caches are kept in its subfolder `vllm`.

    Raises:
        ConfigError: an option that does not exist, or a flag that belongs to the launch.
    """

    name = "vllm_offline"
    kind = "direct"

    def facts(self) -> EngineFacts:
        """The installed vLLM. Raises EngineError if there is none."""
        return replace(super().facts(), name=self.name)

    def takes(self, answer: Told | None) -> Installed:
        """What the class `LLM` takes: no flags of the server, and none in a negative form."""
        installed = super().takes(answer)
        if answer is None or installed.flags is None or not answer.engine_fields:
            return installed
        taken = [
            replace(flag, aliases=(), kind=BOOLEAN if flag.kind == SWITCH else flag.kind)
            for flag in installed.flags
            if flag.name in answer.engine_fields
        ]
        title = f"the LLM class of {installed.engine}"
        return replace(installed, engine=title, flags=tuple(taken), command_line=False)

    def diagnose(self, log_text: str, phase: Phase, exit_code: int | None) -> Diagnosis:
        """Explain a failed launch from its log. Pure."""
        # Imported when it is needed: hundreds of patterns that most commands never compile.
        from sweeper.engine.vllm_offline.diagnosis import diagnose_offline

        return diagnose_offline(log_text, phase, exit_code)

    @contextmanager
    def launch(self, request: LaunchRequest, place: Occupancy) -> Iterator[RunningServer]:
        """Start a worker and stop it on leaving, whatever happens. See `ServedEngine.launch`."""
        asked = self._arguments(request)
        request.run_dir.mkdir(parents=True, exist_ok=True)
        group: ProcessGroup | None = None
        channel = Channel(lambda: group is not None and group.poll() is None)
        try:
            command, secrets = self._worker_command(request, asked, channel.worker_fd)
            note_command(request.run_dir, command)
            group = self.process_group(request, command, place, (channel.worker_fd,))
            with group:
                channel.close_worker_end()
                stall = self.stall_watch(request, place)
                waiting = _Waiting(group, channel, request.start_timeout_s, stall)
                outcome, told = waiting.until_ready(secrets)
                if outcome.state is not State.READY:
                    timeout_s = request.start_timeout_s
                    raise LaunchFailure(self.failed(outcome, group.log_path, timeout_s))
                yield self._ready(
                    request, command, group, channel, after_s=outcome.after_s, told=told
                )
        finally:
            channel.close()

    def _arguments(self, request: LaunchRequest) -> dict[str, Any]:
        """Arguments of `LLM` beside the model, by the flags' names."""
        asked, _ = flags.deployment_flags(request.parameters)
        return {**self._args, **model_flags(request), **asked}

    def _worker_command(
        self, request: LaunchRequest, asked: Mapping[str, Any], fd: int
    ) -> tuple[Command, dict[str, Any]]:
        """The command, and the arguments that are kept off the command line."""
        secrets = {name: value for name, value in asked.items() if carries_secret(name, value)}
        shown = {name: as_argument(name, v) for name, v in asked.items() if name not in secrets}
        # Without statistics there are no times and counters of requests.
        llm = {"model": model_place(request.model_path), "disable_log_stats": False, **shown}
        argv = (self._installation.python, str(WORKER), "--fd", str(fd), "--llm", json.dumps(llm))
        models = [request.model_path, *flags.further_models(asked)]
        _, env = flags.deployment_flags(request.parameters)
        command = Command(argv, {**self._environment(models), **self.cfg.env, **env}, asked)
        return command, secrets

    def _ready(
        self,
        request: LaunchRequest,
        command: Command,
        group: ProcessGroup,
        channel: Channel,
        *,
        after_s: float,
        told: Any,
    ) -> RunningServer:
        """A worker that has written. Raises LaunchFailure for a flag without effect."""
        group.members(thorough=True)
        log_text = read_log(group.log_path)
        told = {**log_facts.effective(log_text), **effective.from_server_info(told)}
        known, learnt = self.in_effect(command, log_text, told)
        batches = Batches(channel)
        return RunningServer(
            base_url="",
            served_name=request.served_name,
            api_key="",
            pid=group.pid,
            ready_after_s=after_s,
            argv=command.argv,
            effective_args=known,
            learnt=learnt,
            is_alive=lambda: group.poll() is None,
            log_path=group.log_path,
            exit_code=group.poll,
            measure=batches.measure,
            tokenize=batches.tokenize,
        )


class _StalledError(Exception):
    """Nothing of the worker has moved for too long; says what stood still."""


class _Waiting:
    """From the start of a worker to its first completion."""

    def __init__(
        self, group: ProcessGroup, channel: Channel, timeout_s: float, stall: StallWatch
    ) -> None:
        self._group = group
        self._stall = stall
        self._channel = channel
        self._started = time.monotonic()
        self._deadline = self._started + timeout_s
        self._phase = Phase.START
        self._next_look = self._started

    def until_ready(self, secrets: Mapping[str, Any]) -> tuple[Readiness, Any]:
        """How waiting ended, and what a ready worker told of its configuration."""
        try:
            self._channel.send({"op": "start", "secrets": dict(secrets)}, self._deadline)
            self._expect("loaded")
            self._phase = Phase.WARMUP
            ready = self._expect("ready")
        except WorkerDiedError as problem:
            self._let_die()
            return self._end(State.DIED, str(problem)), None
        except WorkerSilentError:
            seen = "the engine was still loading"
            if self._phase is Phase.WARMUP:
                seen = "it was loaded and did not write a completion"
            return self._end(State.TIMED_OUT, seen), None
        except _StalledError as problem:
            return self._end(State.STALLED, str(problem)), None
        except ChannelError as problem:
            return self._end(State.REFUSED, str(problem)), None
        return self._end(State.READY, "a completion was written"), ready.get("effective")

    def _expect(self, event: str) -> dict[str, Any]:
        message: dict[str, Any] = self._channel.receive(self._deadline, self._look)
        if message.get("event") != event:
            raise ChannelError(f"the worker said {str(message)[:80]} where {event!r} was due")
        return message

    def _look(self) -> None:
        """Descent is lost when a parent dies: note the members while it lives."""
        if time.monotonic() < self._next_look:
            return
        self._next_look = time.monotonic() + MEMBERS_PAUSE_S
        still = self._stall.look(self._group.members())
        if still is not None:
            raise _StalledError(still)

    def _let_die(self) -> None:
        until = time.monotonic() + DYING_S
        while self._group.poll() is None and time.monotonic() < until:
            time.sleep(0.05)

    def _end(self, state: State, detail: str) -> Readiness:
        after_s = time.monotonic() - self._started
        return Readiness(state, self._phase, after_s, detail, self._group.poll())


def as_argument(name: str, value: Any) -> Any:
    """A flag's value as the class takes it: only the command line knows "auto" for a length."""
    return -1 if name == "max_model_len" and value == "auto" else value
