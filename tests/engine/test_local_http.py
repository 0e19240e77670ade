"""A question to a server has an end, whatever the server does."""

from __future__ import annotations

import http.client
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import pytest

from sweeper.engine import local_http
from sweeper.engine.local_http import call_url
from sweeper.engine.ports import LOOPBACK

HEAD = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


@contextmanager
def answering(answer: Callable[[socket.socket], None]) -> Iterator[str]:
    """A server for one question; its address."""
    with socket.socket() as listener:
        listener.bind((LOOPBACK, 0))
        listener.listen()

        def serve() -> None:
            connection, _ = listener.accept()
            with connection, suppress(OSError):
                connection.recv(65536)
                answer(connection)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"http://{LOOPBACK}:{listener.getsockname()[1]}"
        thread.join(10)
        assert not thread.is_alive(), "the connection was not closed"


def drip(connection: socket.socket) -> None:
    """A byte at a time: every wait is short, and there is no end."""
    connection.sendall(HEAD)
    while True:
        connection.sendall(b"1\r\na\r\n")
        time.sleep(0.02)


def flood(connection: socket.socket) -> None:
    connection.sendall(HEAD)
    while True:
        connection.sendall(b"10000\r\n" + b"a" * 65536 + b"\r\n")


def test_an_answer_that_drips_for_ever_is_out_of_time() -> None:
    with answering(drip) as url:
        started = time.monotonic()
        with pytest.raises(TimeoutError):
            call_url(url, "/", api_key=None, timeout_s=0.5)
        assert time.monotonic() - started < 5


def test_an_answer_without_end_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_http, "MAX_REPLY_BYTES", 1 << 20)
    with answering(flood) as url, pytest.raises(OSError, match="longer than"):
        call_url(url, "/", api_key=None, timeout_s=30)


def test_an_answer_that_breaks_off_is_none() -> None:
    def broken(connection: socket.socket) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc")

    with answering(broken) as url, pytest.raises(http.client.IncompleteRead):
        call_url(url, "/", api_key=None, timeout_s=5)


@pytest.mark.parametrize("length", [0, 10, 200_000])
def test_a_whole_answer_is_read_whole(length: int) -> None:
    def whole(connection: socket.socket) -> None:
        head = f"HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n".encode()
        connection.sendall(head + b"a" * length)

    with answering(whole) as url:
        reply = call_url(url, "/", api_key=None, timeout_s=5)
    assert (reply.status, reply.text) == (200, "a" * length)
