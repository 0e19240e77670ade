"""Strangers on our port: what may happen between choosing a port and binding it."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from sweeper.engine.ports import LOOPBACK, free_port

# Answers every request as a healthy server would; with "shared" others may listen beside it.
_SERVER = """
import http.server, socket, sys
class Healthy(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b'{"data": [{"id": "gpt2"}]}')
    do_POST = do_GET
    def log_message(self, *words):
        pass
class Server(http.server.ThreadingHTTPServer):
    def server_bind(self):
        if sys.argv[2] == "shared":
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        super().server_bind()
server = Server(("127.0.0.1", int(sys.argv[1])), Healthy)
print("listening", flush=True)
server.serve_forever()
"""


@contextmanager
def taken(kind: str) -> Iterator[Callable[[], int]]:
    """A choice of ports whose every port is taken before our server can bind it.

    Args:
        kind: `listener` takes the port for itself and answers nothing; `server` answers like one;
            `shared` does too and lets others listen beside it, so that either may get a request.
    """
    if kind == "listener":
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as listener:
            listener.bind((LOOPBACK, 0))
            listener.listen()
            yield lambda: int(listener.getsockname()[1])
        return
    port = free_port()
    command = [sys.executable, "-c", _SERVER, str(port), kind]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            process.stdout.readline()
            yield lambda: port
        finally:
            process.kill()
