"""Whether a server still serves. A process that lives, or a /health that says so, is not enough."""

from __future__ import annotations

import http.client
import time

from sweeper.engine.local_http import call_url
from sweeper.engine.protocol import BatchJob, RunningServer
from sweeper.engine.readiness import has_choice
from sweeper.errors import EngineError
from sweeper.trial.patience import patiently

# Long enough for a queue of timed-out requests to be dropped, short against a launch.
ANSWER_TIMEOUT_S = 60.0
# The API process outlives a dead engine core for a moment, and its log gets the cause only then.
DYING_S = 5.0
PROMPT = "1 2 3"


def answers(server: RunningServer) -> bool:
    """Ask a live server for one more completion; a direct engine for a batch of one.

    Returns:
        True if it answered. If not, a server about to end has been given time to do so, for its
        exit code and the end of its log.
    """
    if server.is_alive():
        # The deadline of a socket counts from its last byte; this one counts from the question.
        try:
            answered = patiently(
                lambda: _completes(server, ANSWER_TIMEOUT_S),
                server,
                what="one more completion",
                timeout_s=ANSWER_TIMEOUT_S + 1.0,
            )
        except EngineError:
            answered = False
        if answered:
            return True
    let_die(server)
    return False


def let_die(server: RunningServer) -> None:
    """Give a server that is about to end the time to do so, for its exit code and its log."""
    deadline = time.monotonic() + DYING_S
    while server.pid and server.is_alive() and time.monotonic() < deadline:
        time.sleep(0.1)


def _completes(server: RunningServer, timeout_s: float) -> bool:
    if server.answer is not None:
        return True  # there is nothing to complete with: that it lives is all
    if server.measure is not None:
        return server.measure(BatchJob([PROMPT], [1], timeout_s)).ended_early is None
    body = {"model": server.served_name, "prompt": PROMPT, "max_tokens": 1}
    try:
        reply = call_url(
            server.base_url,
            "/v1/completions",
            body,
            api_key=server.api_key,
            timeout_s=timeout_s,
        )
    except (OSError, http.client.HTTPException):
        return False
    return reply.status == http.HTTPStatus.OK and has_choice(reply)
