"""Answers that are none: what a broken server, or none at all, sends over HTTP."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator

from sweeper.engine.httpd import Response, as_json

PART_BYTES = 1 << 16
PAUSE_S = 0.02


def garbage_answer(kind: str, *, stream: bool) -> Response:
    """The answer of a kind of `sweeper.engine.mock.fault.GARBAGE`.

    Args:
        kind: which.
        stream: whether a stream of events was asked for.
    """
    if kind == "error_in_200":
        return as_json({"error": {"message": "EngineCore encountered an issue.", "code": 500}})
    if kind == "not_numbers":
        return _of_lines([_NOT_NUMBERS], stream)
    if kind == "broken_json":
        return _of_lines(['{"choices": [{"text": "a"'], stream)
    if kind == "no_tokens":
        return Response(content_type=_EVENTS, stream=_no_tokens())
    return Response(stream=_RAW[kind](), raw=True)


_EVENTS = "text/event-stream"
_NOT_NUMBERS = (
    '{"choices": [{"index": 0, "text": "a", "finish_reason": "length", "token_ids": ["a"],'
    ' "prompt_token_ids": [NaN], "prompt_logprobs": [null, {"a": {"logprob": NaN, "rank": NaN}}]}],'
    ' "tokens": [NaN, "a"], "count": NaN,'
    ' "usage": {"prompt_tokens": NaN, "completion_tokens": Infinity}}'
)


def _of_lines(lines: list[str], stream: bool) -> Response:
    if not stream:
        return Response(body="".join(lines).encode())
    events = "".join(f"data: {line}\n\n" for line in [*lines, "[DONE]"])
    return Response(body=events.encode(), content_type=_EVENTS)


async def _no_tokens() -> AsyncIterator[bytes]:
    """Events for ever, none of which has a token."""
    event = json.dumps({"choices": [{"index": 0, "text": "", "finish_reason": None}]})
    while True:
        yield f"data: {event}\n\n".encode()
        await asyncio.sleep(PAUSE_S)


async def _truncated_chunk() -> AsyncIterator[bytes]:
    yield _head("Transfer-Encoding: chunked") + b'400\r\ndata: {"choices": [{"text": "a"'


async def _not_utf8() -> AsyncIterator[bytes]:
    body = b'data: {"choices": [{"text": "\xff\xfe\xb5\x00"}]}\n\ndata: [DONE]\n\n'
    yield _head(f"Content-Length: {len(body)}") + body


async def _huge_header() -> AsyncIterator[bytes]:
    yield b"HTTP/1.1 200 OK\r\nX-Long: " + b"a" * (1 << 20) + b"\r\n\r\n"


async def _endless_body() -> AsyncIterator[bytes]:
    """Bytes as fast as they are taken, and no end."""
    yield _head("Transfer-Encoding: chunked")
    part = b"%x\r\n" % PART_BYTES + b"a" * PART_BYTES + b"\r\n"
    while True:
        yield part
        await asyncio.sleep(0)


async def _no_http() -> AsyncIterator[bytes]:
    yield b"220 mail.example ESMTP\r\n" + bytes(range(256))


_RAW = {
    "truncated_chunk": _truncated_chunk,
    "not_utf8": _not_utf8,
    "huge_header": _huge_header,
    "endless_body": _endless_body,
    "no_http": _no_http,
}


def _head(header: str) -> bytes:
    return f"HTTP/1.1 200 OK\r\nContent-Type: {_EVENTS}\r\n{header}\r\n\r\n".encode()
