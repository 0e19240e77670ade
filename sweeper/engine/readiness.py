"""When a server is ready: it has answered a real completion, is ours, and its process lives.

start ──(process ends)──────────────────────────────→ DIED
  │  /health                                             ▲
  ├── 200 → socket and name ours? ──no──→ FOREIGN        │
  │            └─ yes → completion ──(process ends)──────┘
  │                        ├── 200 with a choice → READY
  │                        └── anything else ────→ REFUSED
  ├──────(deadline, in any state)────→ TIMED_OUT
  └──────(nothing moves for too long)→ STALLED
"""

from __future__ import annotations

import http.client
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Protocol, TypeVar

from sweeper.engine.local_http import Endpoint, Reply, call
from sweeper.engine.ports import Owner, owner
from sweeper.engine.procfs import Identity
from sweeper.engine.stall import StallWatch
from sweeper.verdicts import Phase

T = TypeVar("T")

POLL_S = 0.05
HEALTH_PAUSE_S = 0.1
HEALTH_TIMEOUT_S = 5.0
MEMBERS_PAUSE_S = 1.0
PROBE_TOKENS = 4


class Watched(Protocol):
    """What readiness needs of a process group."""

    def poll(self) -> int | None: ...

    def members(self, *, thorough: bool = False) -> set[Identity]: ...


class State(Enum):
    """How waiting for a server ended."""

    READY = "ready"
    DIED = "died"
    TIMED_OUT = "timed out"
    STALLED = "stalled"
    """It lives, and nothing of it has moved for too long."""
    REFUSED = "refused"
    """The server says that it is healthy and cannot complete a prompt."""
    FOREIGN = "foreign"
    """What answers on the port is not, or not only, our server."""


@dataclass(frozen=True)
class Readiness:
    """The end of waiting.

    Attributes:
        state: how it ended.
        phase: START before the server was healthy, WARMUP from then on.
        after_s: seconds waited.
        detail: one line on what was seen.
        exit_code: of the process, if it ended.
    """

    state: State
    phase: Phase
    after_s: float
    detail: str = ""
    exit_code: int | None = None


class _DiedError(Exception):
    pass


class _TimedOutError(Exception):
    pass


class _StalledError(Exception):
    pass


class _Wait:
    """One wait: the clock, the process, and the server behind the port."""

    def __init__(
        self, endpoint: Endpoint, process: Watched, timeout_s: float, stall: StallWatch | None
    ) -> None:
        self.endpoint = endpoint
        self.process = process
        self.stall = stall
        self.started = time.monotonic()
        self.deadline = self.started + timeout_s
        self.phase = Phase.START
        self.seen = "nothing answered on its port"
        self._next_look = self.started

    def end(self, state: State, detail: str) -> Readiness:
        after_s = time.monotonic() - self.started
        one_line = " ".join(detail.split())  # it quotes what was answered, whatever that is
        return Readiness(state, self.phase, after_s, one_line, self.process.poll())

    def check(self) -> None:
        """Raise if the process has ended, has stalled, or the deadline has passed."""
        if self.process.poll() is not None:
            raise _DiedError
        now = time.monotonic()
        if now >= self.deadline:
            raise _TimedOutError
        if now >= self._next_look:
            # Descent is lost when a parent dies: note the members while it lives.
            members = self.process.members()
            self._next_look = now + MEMBERS_PAUSE_S
            still = self.stall.look(members) if self.stall is not None else None
            if still is not None:
                raise _StalledError(still)

    def pause(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            self.check()
            time.sleep(POLL_S)
        self.check()

    def watched(self, action: Callable[[], T]) -> T:
        """Do something slow, and go on watching process and deadline meanwhile."""
        results: list[T] = []
        errors: list[Exception] = []

        def run() -> None:
            try:
                results.append(action())
            except Exception as problem:
                errors.append(problem)

        thread = threading.Thread(target=run, daemon=True, name="sweeper-readiness")
        thread.start()
        while thread.is_alive():
            self.check()
            thread.join(POLL_S)
        if errors:
            raise errors[0]
        return results[0]

    def ask(self, path: str, body: dict[str, object] | None = None, limit_s: float = 1e9) -> Reply:
        timeout_s = max(POLL_S, min(limit_s, self.deadline - time.monotonic()))
        return self.watched(lambda: call(self.endpoint, path, body, timeout_s=timeout_s))


def wait_ready(
    endpoint: Endpoint, process: Watched, timeout_s: float, stall: StallWatch | None = None
) -> Readiness:
    """Wait until a server has answered a completion, or cannot.

    The process is looked at every 50 ms, whatever else goes on, so an early death is noticed at
    once.

    Args:
        endpoint: where the server will answer.
        process: its process group.
        timeout_s: deadline for the first completion, counted from now.
        stall: asked once a second whether anything of it moves; None leaves that to the deadline.
    """
    wait = _Wait(endpoint, process, timeout_s, stall)
    try:
        _until_healthy(wait)
        wait.phase = Phase.WARMUP
        wait.seen = "it was healthy and did not answer a completion"
        problem = _not_ours(wait)
        if problem is not None:
            return wait.end(State.FOREIGN, problem)
        return _first_completion(wait)
    except _TimedOutError:
        return wait.end(State.TIMED_OUT, wait.seen)
    except _StalledError as problem:
        return wait.end(State.STALLED, f"{wait.seen}; {problem}")
    except _DiedError:
        return wait.end(State.DIED, "the process ended")


def _until_healthy(wait: _Wait) -> None:
    while True:
        wait.check()
        try:
            status = wait.ask("/health", limit_s=HEALTH_TIMEOUT_S).status
        except (OSError, http.client.HTTPException):
            status = None
        if status == http.HTTPStatus.OK:
            return
        if status is not None:
            wait.seen = f"/health answered HTTP {status}"
        wait.pause(HEALTH_PAUSE_S)


def _not_ours(wait: _Wait) -> str | None:
    """Why the server on the port cannot be trusted to be ours; None if it can."""
    pids = {member.pid for member in wait.process.members(thorough=True)}
    if owner(wait.endpoint.port, pids) is Owner.FOREIGN:
        return f"another program listens on port {wait.endpoint.port}"
    try:
        reply = wait.ask("/v1/models", limit_s=HEALTH_TIMEOUT_S)
        names = [str(model["id"]) for model in reply.json()["data"]]
    except (OSError, http.client.HTTPException, ValueError, KeyError, TypeError) as problem:
        wait.pause(POLL_S)
        return f"/v1/models does not name the model: {type(problem).__name__}: {problem}"
    if names != [wait.endpoint.served_name]:
        return f"the server calls its model {names}, ours is {wait.endpoint.served_name!r}"
    return None


def _first_completion(wait: _Wait) -> Readiness:
    body: dict[str, object] = {
        "model": wait.endpoint.served_name,
        "prompt": "The",
        "max_tokens": PROBE_TOKENS,
        "temperature": 0,
        "ignore_eos": True,
    }
    try:
        reply = wait.ask("/v1/completions", body)
    except TimeoutError:
        raise _TimedOutError from None
    except (OSError, http.client.HTTPException) as problem:
        # A dying server breaks the connection just before its process ends.
        wait.pause(1.0)
        return wait.end(State.REFUSED, f"first completion: {type(problem).__name__}: {problem}")
    if reply.status != http.HTTPStatus.OK:
        return wait.end(State.REFUSED, f"first completion: HTTP {reply.status}: {reply.text[:300]}")
    if not has_choice(reply):
        return wait.end(State.REFUSED, f"first completion is empty: {reply.text[:300]}")
    wait.check()
    return wait.end(State.READY, "a completion was answered")


def has_choice(reply: Reply) -> bool:
    """Whether an answer is a completion; a broken server may say 200 to say anything else."""
    try:
        return bool(reply.json()["choices"])
    except (ValueError, KeyError, TypeError):
        return False
