"""A small HTTP/1.1 server: enough for JSON endpoints and event streams, and quick to start.

A client that goes away is noticed while its answer is still being made: the handler, or the stream
it returned, is cancelled and can let go of what it holds.
"""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import json
import socket
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, NoReturn


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
    """An answer; a stream of parts if `stream` is given, else `body`.

    A `raw` stream is sent as it is, head included, and then the connection is broken.
    """

    status: int = 200
    body: bytes = b""
    content_type: str = "application/json"
    stream: AsyncIterator[bytes] | None = None
    raw: bool = False


class DropConnection(Exception):  # noqa: N818 - an instruction to the server, not an error
    """Raised by a handler or a stream to break the connection without an answer."""


Handler = Callable[[Request], Awaitable[Response]]


def as_json(data: Any, status: int = 200) -> Response:
    return Response(status, json.dumps(data).encode())


async def route(
    request: Request,
    *,
    api_key: str,
    get: Callable[[str], Response],
    post: Callable[[str, Any], Awaitable[Response]],
    refuse: Callable[[str], Response],
) -> Response:
    """Answer a request of an OpenAI-style API. All but `/health` is for those with the key.

    Args:
        request: as it came.
        api_key: bearer token; empty asks for none.
        get: path → answer.
        post: (path, JSON body) → answer.
        refuse: message → HTTP 400, for a body that is no JSON.
    """
    given = request.headers.get("authorization", "").encode()
    authorised = not api_key or hmac.compare_digest(given, f"Bearer {api_key}".encode())
    if request.path != "/health" and not authorised:
        return as_json({"error": "Unauthorized"}, 401)
    if request.method == "GET":
        return get(request.path)
    try:
        body = request.json()
    except (ValueError, RecursionError) as problem:
        return refuse(f"the body is no JSON: {problem}")
    return await post(request.path, body)


async def serve(
    handler: Handler, host: str, port: int, *, bound: socket.socket | None = None
) -> asyncio.Server:
    """Listen and answer every request with `handler`, keeping connections open.

    Args:
        handler: from a request to its answer.
        host, port: where to listen.
        bound: a socket already bound, taken instead of `host` and `port`.

    Raises:
        OSError: the port is taken.
    """

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # Otherwise small parts wait for the client's acknowledgement, which it delays by 40 ms.
        # asyncio sees to this only for sockets that it made itself.
        writer.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            await _converse(reader, writer, handler)
        except DropConnection:
            writer.transport.abort()
        except (ConnectionError, asyncio.IncompleteReadError, ValueError):
            pass  # The client has gone, or sent no HTTP: there is nobody to answer.
        finally:
            with contextlib.suppress(ConnectionError):
                writer.close()

    if bound is not None:
        return await asyncio.start_server(connected, sock=bound)
    return await asyncio.start_server(connected, host, port)


async def _converse(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, handler: Handler
) -> None:
    """One request after the other, until the client has had enough."""
    # The first byte of the next request, or the end of the connection, is always awaited: it is
    # how a client that goes away shows while its answer is being made.
    ahead = asyncio.ensure_future(reader.read(1))
    try:
        while (request := await _read(await ahead, reader)) is not None:
            ahead = asyncio.ensure_future(reader.read(1))
            answering = asyncio.ensure_future(_answer(writer, handler, request))
            try:
                await asyncio.wait({answering, ahead}, return_when=asyncio.FIRST_COMPLETED)
                if not answering.done() and _has_gone(ahead):
                    return
                await answering
            finally:
                await _end(answering)
            if request.headers.get("connection", "").lower() == "close":
                return
    finally:
        await _end(ahead)


def _has_gone(ahead: asyncio.Future[bytes]) -> bool:
    return ahead.exception() is not None or not ahead.result()


async def _end(task: asyncio.Future[Any]) -> None:
    """Cancel a task that still runs, and wait for what it does on leaving."""
    if not task.done():
        task.cancel()
        await asyncio.wait({task})
    if not task.cancelled():
        task.exception()  # retrieved, so that the loop does not report it as forgotten


async def _answer(writer: asyncio.StreamWriter, handler: Handler, request: Request) -> None:
    try:
        response = await handler(request)
    except DropConnection:
        raise
    except Exception as problem:  # a fault of the handler's: told to the client and in the log
        traceback.print_exc()
        message = f"{type(problem).__name__}: {problem}"
        response = as_json({"error": {"message": message, "code": 500}}, 500)
    await _write(writer, response)


async def _read(first_byte: bytes, reader: asyncio.StreamReader) -> Request | None:
    first = first_byte and first_byte + await reader.readline()
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
    try:
        if response.raw:
            await _write_raw(writer, response.stream)
        writer.write(f"{head}Transfer-Encoding: chunked\r\n\r\n".encode())
        await writer.drain()
        async for part in response.stream:
            writer.write(f"{len(part):x}\r\n".encode() + part + b"\r\n")
            await writer.drain()
        writer.write(b"0\r\n\r\n")
        await writer.drain()
    finally:
        # Ends the stream now, wherever it stands: left to the garbage collector it ends some time.
        close = getattr(response.stream, "aclose", None)
        if close is not None:
            await close()


async def _write_raw(writer: asyncio.StreamWriter, parts: AsyncIterator[bytes]) -> NoReturn:
    async for part in parts:
        writer.write(part)
        await writer.drain()
    raise DropConnection
