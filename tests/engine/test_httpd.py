"""The small HTTP server: keep-alive, streams, and clients that go away."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import time
from collections.abc import AsyncIterator

import pytest

from sweeper.engine.httpd import DropConnection, Request, Response, as_json, serve


class House:
    """A handler that notes what happens to its streams and waits."""

    def __init__(self) -> None:
        self.ended: list[str] = []

    async def handle(self, request: Request) -> Response:
        if request.path == "/stream":
            return Response(stream=self._parts(), content_type="text/event-stream")
        if request.path == "/three":
            return Response(stream=self._three())
        if request.path == "/wait":
            try:
                await asyncio.sleep(60)
            finally:
                self.ended.append("wait")
        if request.path == "/fault":
            raise ValueError("no good")
        if request.path == "/drop":
            raise DropConnection
        return as_json({"path": request.path, "body": request.body.decode()})

    async def _three(self) -> AsyncIterator[bytes]:
        for _ in range(3):
            yield b"part"

    async def _parts(self) -> AsyncIterator[bytes]:
        try:
            for _ in range(1000):
                yield b"part"
                await asyncio.sleep(0.01)
        finally:
            self.ended.append("stream")


@contextlib.asynccontextmanager
async def house() -> AsyncIterator[tuple[House, int]]:
    home = House()
    server = await serve(home.handle, "127.0.0.1", 0)
    async with server:
        yield home, server.sockets[0].getsockname()[1]


async def ask(port: int, *requests: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    for request in requests:
        writer.write(request.encode())
    await writer.drain()
    return reader, writer


async def answer(reader: asyncio.StreamReader) -> bytes:
    head = await reader.readuntil(b"\r\n\r\n")
    (length,) = [int(x.split(b":")[1]) for x in head.split(b"\r\n") if b"Content-Length" in x]
    return await reader.readexactly(length)


async def ended(home: House, count: int = 1) -> list[str]:
    for _ in range(200):
        if len(home.ended) >= count:
            break
        await asyncio.sleep(0.01)
    return home.ended


async def test_a_connection_serves_one_request_after_the_other() -> None:
    async with house() as (_, port):
        post = "POST /a HTTP/1.1\r\nContent-Length: 3\r\n\r\nxyz"
        reader, writer = await ask(port, post)
        assert b'"body": "xyz"' in await answer(reader)
        writer.write(b"GET /b HTTP/1.1\r\n\r\n")
        assert b'"path": "/b"' in await answer(reader)
        writer.close()


async def test_requests_sent_at_once_are_answered_in_order() -> None:
    async with house() as (_, port):
        reader, writer = await ask(port, "GET /a HTTP/1.1\r\n\r\nGET /b HTTP/1.1\r\n\r\n")
        assert b'"/a"' in await answer(reader)
        assert b'"/b"' in await answer(reader)
        writer.close()


async def test_close_is_heeded() -> None:
    async with house() as (_, port):
        reader, _writer = await ask(port, "GET /a HTTP/1.1\r\nConnection: close\r\n\r\n")
        assert (await reader.read()).endswith(b'""}')


async def test_small_parts_are_sent_at_once() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as bound:
        bound.bind(("127.0.0.1", 0))
        server = await serve(House().handle, "", 0, bound=bound)
        async with server:
            reader, writer = await ask(bound.getsockname()[1])
            took_s = []
            for _ in range(12):
                started = time.perf_counter()
                writer.write(b"GET /three HTTP/1.1\r\n\r\n")
                await reader.readuntil(b"0\r\n\r\n")
                took_s.append(time.perf_counter() - started)
            writer.close()
    # Once a connection is in use acknowledgements are delayed, by 40 ms or more each; what a busy
    # machine adds, it does not add every time.
    assert min(took_s[-6:]) < 0.03


async def test_a_stream_ends_with_its_client() -> None:
    async with house() as (home, port):
        reader, writer = await ask(port, "GET /stream HTTP/1.1\r\n\r\n")
        await reader.readuntil(b"part")
        writer.close()
        assert await ended(home) == ["stream"]


async def test_a_handler_that_still_waits_ends_with_its_client() -> None:
    async with house() as (home, port):
        _, writer = await ask(port, "GET /wait HTTP/1.1\r\n\r\n")
        await asyncio.sleep(0.05)
        assert home.ended == []
        writer.close()
        assert await ended(home) == ["wait"]


async def test_a_fault_of_the_handler_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    async with house() as (_, port):
        reader, writer = await ask(port, "GET /fault HTTP/1.1\r\n\r\n")
        assert b"ValueError: no good" in await answer(reader)
        writer.write(b"GET /b HTTP/1.1\r\n\r\n")
        assert b'"/b"' in await answer(reader)
        writer.close()
    assert "Traceback" in capsys.readouterr().err


async def test_a_dropped_connection_has_no_answer() -> None:
    async with house() as (_, port):
        reader, _writer = await ask(port, "GET /drop HTTP/1.1\r\n\r\n")
        with contextlib.suppress(ConnectionError):
            assert await reader.read() == b""


async def test_what_is_no_http_ends_the_connection_only() -> None:
    async with house() as (_, port):
        reader, _writer = await ask(port, "nonsense\r\n\r\n")
        assert await reader.read() == b""
        reader, _writer = await ask(port, "GET /a HTTP/1.1\r\n\r\n")
        assert b'"/a"' in await answer(reader)
