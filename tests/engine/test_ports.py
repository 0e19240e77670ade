"""Free ports, and whose a port is."""

from __future__ import annotations

import os
import socket
import subprocess
import sys

from sweeper.engine.ports import LOOPBACK, Owner, free_port, owner


def test_free_port_can_be_bound() -> None:
    with socket.socket() as server:
        server.bind((LOOPBACK, free_port()))


def test_port_belongs_to_those_who_listen() -> None:
    with socket.socket() as server:
        server.bind((LOOPBACK, 0))
        server.listen()
        port = server.getsockname()[1]
        assert owner(port, {os.getpid()}) is Owner.OURS
        assert owner(port, {1}) is Owner.FOREIGN
    assert owner(port, {os.getpid()}) is Owner.UNKNOWN


SHARER = """
import socket, sys
server = socket.socket()
server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
server.bind(("127.0.0.1", int(sys.argv[1])))
server.listen()
print("listening", flush=True)
sys.stdin.read()
"""


def test_a_port_that_two_share_is_not_ours() -> None:
    """Requests would go to either."""
    with socket.socket() as server:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        server.bind((LOOPBACK, 0))
        server.listen()
        port = server.getsockname()[1]
        assert owner(port, {os.getpid()}) is Owner.OURS
        command = [sys.executable, "-c", SHARER, str(port)]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        with subprocess.Popen(command, **pipes) as other:  # type: ignore[call-overload]
            assert other.stdout.readline() == b"listening\n"
            assert owner(port, {os.getpid()}) is Owner.FOREIGN
            other.kill()
