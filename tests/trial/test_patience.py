"""Waiting for a server that ends: with the work, the clock, or the server."""

from __future__ import annotations

import http.server
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from sweeper.trial import patience
from sweeper.trial.patience import DiedError, HungError, LateError, patiently
from tests.trial.test_vital import running


def server(alive: Callable[[], bool] = lambda: True, url: str = "") -> Any:
    return running(url, is_alive=alive)


def forever() -> None:
    threading.Event().wait(30)


def test_work_that_is_done_is_given_back_and_its_fault_is_raised() -> None:
    assert patiently(lambda: 7, server(), what="counting", timeout_s=5) == 7
    with pytest.raises(ZeroDivisionError):
        patiently(lambda: 1 / 0, server(), what="counting", timeout_s=5)


def test_work_that_never_ends_is_left_behind() -> None:
    begun = time.monotonic()
    with pytest.raises(LateError, match=r"counting was not done within 0\.2 s"):
        patiently(forever, server(), what="counting", timeout_s=0.2)
    assert time.monotonic() - begun < 5


def test_a_server_that_dies_ends_the_wait_at_once() -> None:
    ends = time.monotonic() + 0.3
    with pytest.raises(DiedError):
        patiently(forever, server(lambda: time.monotonic() < ends), what="x", timeout_s=60)
    assert time.monotonic() < ends + 5


@contextmanager
def counting(step: int) -> Iterator[str]:
    """A server of metrics whose counter grows by `step` at each look."""
    value = [0]

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            value[0] += step
            self.send_response(200)
            self.end_headers()
            self.wfile.write(f"vllm:generation_tokens_total {value[0]}\n".encode())

        def log_message(self, *_: Any) -> None: ...

    there = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=there.serve_forever, args=(0.02,), daemon=True).start()
    yield f"http://127.0.0.1:{there.server_address[1]}"
    there.shutdown()
    there.server_close()


def test_a_server_whose_counters_stand_still_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "POLL_S", 0.02)
    with counting(0) as url, pytest.raises(HungError, match="hangs"):
        patiently(forever, server(url=url), what="x", timeout_s=60, hang_timeout_s=0.5)


def test_a_server_that_counts_is_given_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "POLL_S", 0.02)
    with counting(1) as url, pytest.raises(LateError):
        patiently(forever, server(url=url), what="x", timeout_s=1.5, hang_timeout_s=0.8)


def test_a_server_that_tells_nothing_is_given_its_time() -> None:
    with pytest.raises(LateError):
        patiently(forever, server(), what="x", timeout_s=0.8, hang_timeout_s=0.2)
