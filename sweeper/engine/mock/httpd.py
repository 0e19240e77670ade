"""A small HTTP/1.1 server: enough for JSON endpoints and event streams, and quick to start."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any


@dataclass(frozen=True)
class Request:
    """A request as read from the wire."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        """The body as JSON. Raises ValueError if it is none."""
        return json.loads(self.body or b"null")


@dataclass(frozen=True)
class Response:
    """An answer; a stream of parts if `stream` is given, else `body`."""

    status: int = 200
    body: bytes = b""
    content_type: str = "application/json"
    stream: AsyncIterator[bytes] | None = None


class DropConnection(Exception):  # noqa: N818 - an instruction to the server, not an error
    """Raised by a handler or a stream to break the connection without an answer."""


Handler = Callable[[Request], Awaitable[Response]]


def as_json(data: Any, status: int = 200) -> Response:
    return Response(status, json.dumps(data).encode())


async def serve(handler: Handler, host: str, port: int) -> asyncio.Server:
    """Listen and answer every request with `handler`, keeping connections open."""

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while (request := await _read(reader)) is not None:
                await _write(writer, await handler(request))
                if request.headers.get("connection", "").lower() == "close":
                    break
        except DropConnection:
            writer.transport.abort()
        except (ConnectionError, asyncio.IncompleteReadError, ValueError):
            pass  # The client has gone, or sent no HTTP: there is nobody to answer.
        finally:
            with contextlib.suppress(ConnectionError):
                writer.close()

    return await asyncio.start_server(connected, host, port)


async def _read(reader: asyncio.StreamReader) -> Request | None:
    first = await reader.readline()
    if not first.strip():
        return None
    method, path, _ = first.decode("latin-1").split(" ", 2)
    headers: dict[str, str] = {}
    while (line := (await reader.readline()).decode("latin-1").strip()) != "":
        name, _, value = line.partition(":")
        headers[name.strip().lower()] = value.strip()
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Request(method, path.partition("?")[0], headers, body)


async def _write(writer: asyncio.StreamWriter, response: Response) -> None:
    reason = HTTPStatus(response.status).phrase
    head = f"HTTP/1.1 {response.status} {reason}\r\nContent-Type: {response.content_type}\r\n"
    if response.stream is None:
        writer.write(f"{head}Content-Length: {len(response.body)}\r\n\r\n".encode() + response.body)
        await writer.drain()
        return
    writer.write(f"{head}Transfer-Encoding: chunked\r\n\r\n".encode())
    await writer.drain()
    async for part in response.stream:
        writer.write(f"{len(part):x}\r\n".encode() + part + b"\r\n")
        await writer.drain()
    writer.write(b"0\r\n\r\n")
    await writer.drain()
