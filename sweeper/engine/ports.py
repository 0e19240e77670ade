"""Ports on the loopback interface: a free one, and whose a listening one is."""

from __future__ import annotations

import socket
from collections.abc import Collection
from enum import Enum

LOOPBACK = "127.0.0.1"


class Owner(Enum):
    """Who listens on a port."""

    OURS = "ours"
    FOREIGN = "foreign"
    """Somebody else listens, alone or beside us (SO_REUSEPORT lets two share a port)."""
    UNKNOWN = "unknown"
    """The system does not tell who listens there."""


def free_port() -> int:
    """A TCP port that was free on 127.0.0.1 a moment ago.

    Another program may take it before the server does; the launch is then tried on another port.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.bind((LOOPBACK, 0))
        return int(probe.getsockname()[1])


def owner(port: int, pids: Collection[int]) -> Owner:
    """Whether the processes `pids`, and only they, listen on a port.

    Args:
        port: TCP port; a wildcard address counts as listening on loopback.
        pids: the processes of our launch.
    """
    import psutil

    try:
        sockets = psutil.net_connections(kind="tcp")
    except (psutil.Error, OSError):
        return Owner.UNKNOWN
    listeners = {
        entry.pid
        for entry in sockets
        if entry.status == psutil.CONN_LISTEN and entry.laddr and entry.laddr.port == port
    }
    if not listeners:
        return Owner.UNKNOWN
    return Owner.OURS if listeners <= set(pids) else Owner.FOREIGN
