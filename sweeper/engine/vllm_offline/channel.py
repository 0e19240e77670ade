"""JSON lines to and from a worker, with a deadline and an eye on its process."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Callable, Mapping
from typing import Any

POLL_S = 0.05
READ_BYTES = 1 << 16


class ChannelError(Exception):
    """The worker does not answer (any more), or not in the agreed form; one line says how."""


class WorkerDiedError(ChannelError):
    """The worker's process ended, or it closed the channel."""


class WorkerSilentError(ChannelError):
    """No answer before the deadline."""


class Channel:
    """Our end of a socket pair. Owned by whoever starts the worker.

    Args:
        alive: whether the worker's process still runs.
    """

    def __init__(self, alive: Callable[[], bool]) -> None:
        self._ours, self._theirs = socket.socketpair()
        self._ours.settimeout(POLL_S)
        self._alive = alive
        self._received = b""

    @property
    def worker_fd(self) -> int:
        """Number of the file that the worker is to inherit."""
        return self._theirs.fileno()

    def close_worker_end(self) -> None:
        """To be called once the worker has been started, so that its end is seen."""
        self._theirs.close()

    def close(self) -> None:
        """Close both ends; the worker takes it as the word to end."""
        self._ours.close()
        self._theirs.close()

    def send(self, message: Mapping[str, Any], deadline: float) -> None:
        """Send one message.

        Args:
            deadline: on the monotonic clock.

        Raises:
            ChannelError: it could not be delivered.
        """
        data = memoryview((json.dumps(message) + "\n").encode())
        while data:
            try:
                data = data[self._ours.send(data) :]
            except TimeoutError:
                self._check(deadline)
            except OSError as problem:
                raise WorkerDiedError(f"the worker is gone: {problem}") from None

    def receive(self, deadline: float, meanwhile: Callable[[], None] | None = None) -> Any:
        """The next message.

        Args:
            deadline: on the monotonic clock.
            meanwhile: called every 50 ms while nothing comes.

        Raises:
            WorkerDiedError: the process ended, or closed the channel.
            WorkerSilentError: the deadline passed.
            ChannelError: what came is no JSON object.
        """
        while b"\n" not in self._received:
            if not self._read():
                self._check(deadline)
                if meanwhile is not None:
                    meanwhile()
        line, _, self._received = self._received.partition(b"\n")
        try:
            message = json.loads(line)
        except ValueError:
            raise ChannelError(f"the worker sent no JSON: {line[:80]!r}") from None
        if not isinstance(message, dict):
            raise ChannelError(f"the worker sent no object: {line[:80]!r}")
        return message

    def _read(self) -> bool:
        """Take what has come; False if nothing came for 50 ms."""
        try:
            data = self._ours.recv(READ_BYTES)
        except TimeoutError:
            return False
        except OSError as problem:
            raise WorkerDiedError(f"the worker broke the channel: {problem}") from None
        if not data:
            raise WorkerDiedError("the worker closed the channel")
        self._received += data
        return True

    def _check(self, deadline: float) -> None:
        if not self._alive():
            raise WorkerDiedError("the engine's process ended")
        if time.monotonic() >= deadline:
            raise WorkerSilentError("no answer before the deadline")
