"""Connections are used again, broken ones are told, and pieces arrive with their times."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from sweeper.load.http1 import MalformedResponseError
from sweeper.load.wire import ClosedEarlyError, Wire

OK = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
Answer = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


async def request_from(reader: asyncio.StreamReader) -> tuple[bytes, bytes]:
    head = await reader.readuntil(b"\r\n\r\n")
    length = next(
        int(line.partition(b":")[2])
        for line in head.lower().split(b"\r\n")
        if line.startswith(b"content-length")
    )
    return head, await reader.readexactly(length)


@asynccontextmanager
async def server(answer: Answer) -> AsyncIterator[str]:
    listener = await asyncio.start_server(answer, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}/v1/completions?x=1"
    finally:
        listener.close()


def answering(text: bytes, *, close: bool = False) -> Answer:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                await request_from(reader)
                writer.write(text)
                if close:
                    break
        except asyncio.IncompleteReadError:
            pass
        writer.close()

    return answer


def ignore(_: bytes, __: float) -> bool:
    return True


async def test_requests_are_written_whole_and_share_a_connection() -> None:
    seen: list[tuple[bytes, bytes]] = []
    connections = 0

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        for _ in range(2):
            seen.append(await request_from(reader))
            writer.write(OK + b"2\r\nhi\r\n0\r\n\r\n")
        writer.close()

    async with server(answer) as url, Wire(url, {"Authorization": "Bearer key"}) as wire:
        pieces: list[bytes] = []
        for body in (b"{1}", b"{22}"):
            assert await wire.post(body, lambda p, _: pieces.append(p) is None) == (200, b"")
    assert (connections, pieces, [body for _, body in seen]) == (
        1,
        [b"hi", b"hi"],
        [b"{1}", b"{22}"],
    )
    assert seen[0][0].startswith(b"POST /v1/completions?x=1 HTTP/1.1\r\nHost: 127.0.0.1:")
    assert b"\r\nAuthorization: Bearer key\r\n" in seen[0][0]


async def test_pieces_have_the_time_of_their_arrival() -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await request_from(reader)
        writer.write(OK + b"1\r\na\r\n")
        await asyncio.sleep(0.05)
        writer.write(b"1\r\nb\r\n0\r\n\r\n")
        writer.close()

    times: list[float] = []
    async with server(answer) as url, Wire(url) as wire:
        started_s = time.perf_counter()
        await wire.post(b"{}", lambda _, at: times.append(at) is None)
        ended_s = time.perf_counter()
    assert started_s <= times[0] < times[0] + 0.04 < times[1] <= ended_s


async def test_what_is_not_a_success_is_answered_with_its_body() -> None:
    text = b"HTTP/1.1 503 Busy\r\nContent-Length: 4\r\n\r\nwait"
    async with server(answering(text)) as url, Wire(url) as wire:
        assert await wire.post(b"{}", ignore) == (503, b"wait")


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (b"", ClosedEarlyError),
        (OK + b"5\r\nab", ClosedEarlyError),
        (b"HELLO\r\n\r\n", MalformedResponseError),
    ],
)
async def test_a_broken_response_is_an_error(text: bytes, error: type[OSError]) -> None:
    async with server(answering(text, close=True)) as url, Wire(url) as wire:
        with pytest.raises(error):
            await wire.post(b"{}", ignore)


async def test_no_server_is_an_error() -> None:
    async with server(answering(b"")) as url:
        pass
    async with Wire(url) as wire:
        with pytest.raises(OSError):
            await wire.post(b"{}", ignore)


async def test_a_connection_the_server_has_closed_is_not_used_again() -> None:
    async with server(answering(OK + b"0\r\n\r\n", close=True)) as url, Wire(url) as wire:
        for _ in range(3):
            assert await wire.post(b"{}", ignore) == (200, b"")
            await asyncio.sleep(0.02)


async def test_an_idle_connection_is_not_used_after_its_time() -> None:
    async with (
        server(answering(OK + b"0\r\n\r\n")) as url,
        Wire(url, keepalive_s=0.01) as wire,
    ):
        await wire.post(b"{}", ignore)
        (first,) = wire._all
        await asyncio.sleep(0.03)
        await wire.post(b"{}", ignore)
        assert first not in wire._all and len(wire._all) == 1


async def test_who_wants_no_more_ends_the_exchange() -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await request_from(reader)
        writer.write(OK + b"1\r\na\r\n")  # and never goes on
        await reader.read()
        writer.close()

    async with server(answer) as url, Wire(url) as wire:
        async with asyncio.timeout(5):
            assert await wire.post(b"{}", lambda *_: False) == (200, b"")
        assert not wire._all


async def test_a_cancelled_request_closes_its_connection() -> None:
    closed = asyncio.Event()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await request_from(reader)
        await reader.read()
        closed.set()
        writer.close()

    async with server(answer) as url, Wire(url) as wire:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await wire.post(b"{}", ignore)
        async with asyncio.timeout(5):
            await closed.wait()


async def test_a_fault_of_the_reader_is_not_lost() -> None:
    def broken(_: bytes, __: float) -> bool:
        raise KeyError("bug")

    async with server(answering(OK + b"1\r\na\r\n0\r\n\r\n")) as url, Wire(url) as wire:
        with pytest.raises(KeyError):
            await wire.post(b"{}", broken)


async def test_a_network_that_gives_up_is_no_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    async def give_up(*_: object, **__: object) -> None:
        raise TimeoutError(110, "Connection timed out")

    async with Wire("http://127.0.0.1:9/v1") as wire:
        monkeypatch.setattr(asyncio.get_running_loop(), "create_connection", give_up)
        with pytest.raises(ConnectionError, match="gave up"):
            await wire.post(b"{}", ignore)
