"""Streaming POST requests over HTTP/1.1 with as little as possible between socket and reader.

A general HTTP client wakes a task for every piece of a response and lets a request wait its turn
between being sent and being written. With 128 streams in step that is most of the client's
processor time and milliseconds of TTFT that the server did not take. Here a request is written in
the moment it is sent, and each piece is read where it arrives, in the event loop's callback.
"""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from types import TracebackType
from urllib.parse import urlsplit

from sweeper.load.http1 import ResponseReader

OnPiece = Callable[[bytes, float], bool]
"""Takes a piece of the body and its time; False if no more of the response is wanted."""
_READ_BYTES = 1 << 16


class ClosedEarlyError(OSError):
    """The server closed the connection before the response was complete."""


class _EnoughError(Exception):
    """Whoever asked wants no more of the response."""


class _Connection(asyncio.BufferedProtocol):
    """One connection; at most one exchange at a time."""

    def __init__(self, buffer: memoryview) -> None:
        self._buffer = buffer  # shared: read and used up within one callback
        self._reader: ResponseReader | None = None
        self._finished: asyncio.Future[None] | None = None
        self.transport: asyncio.Transport | None = None
        self.now_s = 0.0
        self.idle_since_s = 0.0
        self.open = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport  # type: ignore[assignment]
        self.open = True

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        self.now_s = time.perf_counter()
        reader = self._reader
        if reader is None:
            self.abort()  # nobody has asked
            return
        try:
            reader.feed(bytes(self._buffer[:nbytes]))
        except Exception as error:  # handed to whoever waits for the response
            self._settle(error)
            return
        if reader.done:
            self._settle(None)

    def eof_received(self) -> bool:
        return False  # closes the transport; connection_lost says the rest

    def connection_lost(self, exc: Exception | None) -> None:
        self.open = False
        reader = self._reader
        if reader is None:
            return
        self.now_s = time.perf_counter()
        if exc is None and reader.end():
            self._settle(None)
        else:
            self._settle(exc or ClosedEarlyError("the server closed the connection early"))

    def begin(self, request: bytes, reader: ResponseReader) -> asyncio.Future[None]:
        """Write a request; the future is done with the response."""
        assert self.transport is not None
        self._reader = reader
        self._finished = asyncio.get_running_loop().create_future()
        self.transport.write(request)
        return self._finished

    def abort(self) -> None:
        self.open = False
        self._reader = None
        if self.transport is not None:
            self.transport.abort()

    def _settle(self, error: BaseException | None) -> None:
        self._reader = None
        if self._finished is not None and not self._finished.done():
            if error is None:
                self._finished.set_result(None)
            else:
                self._finished.set_exception(error)


@dataclass
class Wire:
    """Connections to one server.

    Args:
        url: where requests are posted.
        headers: sent with each.
        keepalive_s: how long an idle connection may be used again.
    """

    url: str
    headers: dict[str, str] = field(default_factory=dict, repr=False)
    keepalive_s: float = 3.0
    _idle: list[_Connection] = field(default_factory=list)
    _all: set[_Connection] = field(default_factory=set)

    def __post_init__(self) -> None:
        parts = urlsplit(self.url)
        self._host = parts.hostname or ""
        self._tls = ssl.create_default_context() if parts.scheme == "https" else None
        self._port = parts.port or (443 if self._tls else 80)
        path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        lines = [
            f"POST {path} HTTP/1.1",
            f"Host: {parts.netloc.rpartition('@')[2]}",
            "Content-Type: application/json",
            "Accept: */*",
            *(f"{name}: {value}" for name, value in self.headers.items()),
            "Content-Length: ",
        ]
        self._head = "\r\n".join(lines).encode("latin-1")
        self._buffer = memoryview(bytearray(_READ_BYTES))

    async def __aenter__(self) -> Wire:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for connection in self._all:
            connection.abort()
        self._all.clear()
        self._idle.clear()
        await asyncio.sleep(0)  # lets the transports close

    async def post(self, body: bytes, on_piece: OnPiece) -> tuple[int, bytes]:
        """Send a request and hand each piece of a 200's body to `on_piece` with its time.

        Returns:
            the status; and the body, if the status is not 200.

        Raises:
            OSError: no connection, it broke before the response was complete, or what came is no
                HTTP/1.1 response.
        """
        connection = self._take() or await self._connect()
        rest: list[bytes] = []

        def body_piece(piece: bytes) -> None:
            if reader.status != 200:
                rest.append(piece)
            elif not on_piece(piece, connection.now_s):
                raise _EnoughError

        reader = ResponseReader(body_piece)
        try:
            await connection.begin(b"%s%d\r\n\r\n%s" % (self._head, len(body), body), reader)
        except _EnoughError:
            self._drop(connection)
        except TimeoutError as error:  # the network's, not a deadline of whoever asks
            self._drop(connection)
            raise ConnectionError("the network gave up the connection") from error
        except BaseException:
            self._drop(connection)
            raise
        else:
            self._give_back(connection, reader)
        return reader.status or 0, b"".join(rest)

    def _take(self) -> _Connection | None:
        oldest_s = time.perf_counter() - self.keepalive_s
        while self._idle:
            connection = self._idle.pop()
            if connection.open and connection.idle_since_s >= oldest_s:
                return connection
            self._drop(connection)
        return None

    async def _connect(self) -> _Connection:
        loop = asyncio.get_running_loop()
        try:
            _, connection = await loop.create_connection(
                lambda: _Connection(self._buffer), self._host, self._port, ssl=self._tls
            )
        except TimeoutError as error:
            raise ConnectionError("the network gave up connecting") from error
        self._all.add(connection)
        return connection

    def _give_back(self, connection: _Connection, reader: ResponseReader) -> None:
        if reader.keeps_connection and connection.open:
            connection.idle_since_s = time.perf_counter()
            self._idle.append(connection)
        else:
            self._drop(connection)

    def _drop(self, connection: _Connection) -> None:
        self._all.discard(connection)
        connection.abort()
