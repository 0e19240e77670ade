"""Whether a server still serves. A process that lives, or a /health that says so, is not enough."""

from __future__ import annotations

import http.client
import time
from urllib.parse import urlsplit

from sweeper.engine.local_http import Endpoint, call
from sweeper.engine.protocol import RunningServer

# Long enough for a queue of timed-out requests to be dropped, short against a launch.
ANSWER_TIMEOUT_S = 60.0
# The API process outlives a dead engine core for a moment, and its log gets the cause only then.
DYING_S = 5.0


def answers(server: RunningServer) -> bool:
    """Ask a live server for one more completion.

    Returns:
        True if it answered. If not, a server about to end has been given time to do so, for its
        exit code and the end of its log.
    """
    if server.is_alive() and _completes(server, ANSWER_TIMEOUT_S):
        return True
    deadline = time.monotonic() + DYING_S
    while server.is_alive() and time.monotonic() < deadline:
        time.sleep(0.1)
    return False


def _completes(server: RunningServer, timeout_s: float) -> bool:
    port = urlsplit(server.base_url).port
    if port is None:
        return False
    body = {"model": server.served_name, "prompt": "1 2 3", "max_tokens": 1}
    try:
        endpoint = Endpoint(port, server.served_name, server.api_key)
        return call(endpoint, "/v1/completions", body, timeout_s=timeout_s).status == 200
    except (OSError, http.client.HTTPException):
        return False
