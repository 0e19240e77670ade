"""Free ports, and whose a port is."""

from __future__ import annotations

import os
import socket

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
