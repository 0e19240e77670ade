"""Work that waits for a server, done so that it cannot wait for ever.

Whatever a library waits for, a socket, a lock, a name server, the work is left behind after its
deadline, and at once when the server dies. It ends by itself when the server has been stopped.
"""

from __future__ import annotations

import http.client
import threading
import time
from collections.abc import Callable, Mapping
from typing import TypeVar

from sweeper.engine.local_http import call_url
from sweeper.engine.protocol import RunningServer
from sweeper.errors import EngineError
from sweeper.load.hang import Stillness
from sweeper.load.server_metrics import parse

T = TypeVar("T")

POLL_S = 0.1
ASK_TIMEOUT_S = 10.0
ASKS_IN_A_HANG = 6
MAX_ASK_EVERY_S = 10.0


class LateError(EngineError):
    """Work was not done in time; the server may well live."""


class HungError(EngineError):
    """The server lives, and has got on with nothing for too long."""


class DiedError(EngineError):
    """The server's process ended."""


def patiently(
    work: Callable[[], T],
    server: RunningServer,
    *,
    what: str,
    timeout_s: float,
    hang_timeout_s: float | None = None,
) -> T:
    """Do `work` with an eye on clock and server.

    Args:
        work: may block.
        server: that it asks.
        what: for messages, what is done.
        timeout_s: deadline.
        hang_timeout_s: how long none of the server's counters may move; None does not look. A
            server that tells none is given until the deadline.

    Raises:
        LateError: it was not done in time.
        HungError: the server hangs.
        DiedError: it died.
        Exception: what `work` raised.
    """
    results: list[T] = []
    problems: list[BaseException] = []

    def run() -> None:
        try:
            results.append(work())
        except BaseException as problem:  # it is raised again, on the other side
            problems.append(problem)

    thread = threading.Thread(target=run, daemon=True, name=f"sweeper-{what.replace(' ', '-')}")
    thread.start()
    watch = _Watch(server, what, timeout_s, hang_timeout_s)
    while thread.is_alive():
        thread.join(POLL_S)
        if thread.is_alive():
            watch.look()
    if problems:
        raise problems[0]
    return results[0]


class _Watch:
    def __init__(
        self, server: RunningServer, what: str, timeout_s: float, hang_timeout_s: float | None
    ) -> None:
        self._server = server
        self._what = what
        self._timeout_s = timeout_s
        self._deadline = time.monotonic() + timeout_s
        self._still = None if hang_timeout_s is None else Stillness(hang_timeout_s)
        self._ask_every_s = min(MAX_ASK_EVERY_S, (hang_timeout_s or 0.0) / ASKS_IN_A_HANG)
        self._next_ask = time.monotonic()

    def look(self) -> None:
        """Raise if waiting is of no more use."""
        if not self._server.is_alive():
            raise DiedError(f"{self._what}: the server died", "see server.log of the trial")
        now_s = time.monotonic()
        if now_s >= self._deadline:
            raise LateError(
                f"{self._what} was not done within {self._timeout_s:g} s",
                "see server.log of the trial, or raise quality.timeout_s or engine.start_timeout_s",
            )
        if self._still is None or now_s < self._next_ask:
            return
        self._still.saw_tokens(0, 0, now_s)
        self._still.saw_counters(_counters(self._server), time.monotonic())
        now_s = time.monotonic()
        self._next_ask = now_s + self._ask_every_s
        if self._still.is_hang(now_s, any_begun=False):
            raise HungError(
                f"{self._what}: the server hangs: none of its counters moved for "
                f"{self._still.silent_s(now_s):.0f} s",
                "leave this combination out, or raise engine.hang_timeout_s",
            )


def _counters(server: RunningServer) -> Mapping[str, float]:
    """What the server counts now; empty if it does not tell."""
    if not server.base_url:
        return {}
    try:
        reply = call_url(
            server.base_url, "/metrics", api_key=server.api_key, timeout_s=ASK_TIMEOUT_S
        )
    except (OSError, http.client.HTTPException):
        return {}
    return parse(reply.text) if reply.status == http.HTTPStatus.OK else {}
