"""A server at the other end of `tracking.uri` that misbehaves in one way."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

HTML = b"<html><body>Welcome to nginx!</body></html>"


def answer(status: str, body: bytes, kind: str = "text/html") -> bytes:
    head = f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n"
    return head.encode() + b"Connection: close\r\n\r\n" + body


def error(status: str, code: str) -> bytes:
    body = json.dumps({"error_code": code, "message": f"{code} it is"}).encode()
    return answer(status, body, "application/json")


ANSWERS = {
    "html": answer("200 OK", HTML),
    "not_found": answer("404 Not Found", HTML),
    "unauthorized": answer("401 Unauthorized", b"who are you"),
    "broken": error("500 Internal Server Error", "INTERNAL_ERROR"),
    "unavailable": answer("503 Service Unavailable", HTML),
    "no_permission": error("403 Forbidden", "PERMISSION_DENIED"),
    "garbage": b"\x00\x01 this is not HTTP\r\n\r\n",
    "cut": b"HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n{",
}
KINDS = [*ANSWERS, "silent", "drip", "slow", "hang_up"]


@contextmanager
def bad_server(kind: str, slow_s: float = 8.0) -> Iterator[str]:
    """Serve one misbehaviour on a free port; yields its URI."""
    over = threading.Event()
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while not over.is_set():
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            threading.Thread(
                target=_talk, args=(connection, kind, slow_s, over), daemon=True
            ).start()

    threading.Thread(target=serve, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        over.set()
        listener.close()


def _talk(connection: socket.socket, kind: str, slow_s: float, over: threading.Event) -> None:
    with contextlib.suppress(OSError), connection:
        if kind == "hang_up":
            return
        connection.recv(1 << 16)
        if kind == "silent":
            over.wait(600)
        elif kind == "slow":
            over.wait(slow_s)
            connection.sendall(ANSWERS["broken"])
        elif kind == "drip":
            for byte in answer("200 OK", b" " * 100_000):
                connection.sendall(bytes([byte]))
                if over.wait(0.05):
                    return
        else:
            connection.sendall(ANSWERS[kind])
