"""An OpenAI-compatible server that does nothing but emit tokens by the clock, and keeps the truth.

    python -m benchmarks.stub_server --core 1 --token-ms 20

prints ``{"port": N}`` when it listens. One process, one thread, the standard library alone. Each
stream gets one server-sent event a token, each in an HTTP chunk and a write of its own, as vLLM
writes them. The time of every emission is noted before it is written; ``GET /truth`` tells all,
``POST /reset`` forgets it. With ``--token-ms 0`` events are written as fast as the client takes
them, several a write, to find out how many it can take.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import os
import signal
import time
from array import array
from dataclasses import dataclass, field
from typing import Any

from benchmarks.stub_events import answer_at_once, event, framed, usage_event

MODEL = "stub"
_HIGH_WATER_BYTES = 1 << 18


@dataclass(frozen=True)
class Beat:
    """When tokens come.

    Attributes:
        token_s: between two tokens of a stream; 0 for as fast as the client takes them.
        first_s: from a request's arrival to its first token.
        tokens_per_write: events a write where `token_s` is 0.
        model: name the server answers to.
    """

    token_s: float = 0.02
    first_s: float = 0.02
    tokens_per_write: int = 16
    model: str = MODEL


@dataclass
class Noted:
    """The truth of one request. Seconds of CLOCK_MONOTONIC, the same for all processes."""

    arrival_s: float
    prompt_tokens: int
    due_s: float
    emitted_s: array[float] = field(default_factory=lambda: array("d"))
    asked: int = 0
    ended: bool = False


@dataclass
class Server:
    """What all connections share."""

    beat: Beat
    noted: list[Noted] = field(default_factory=list)
    prompt_tokens: int = 0
    tokens: int = 0

    def truth(self) -> dict[str, Any]:
        """Everything noted since the start or the last reset."""
        return {
            "token_s": self.beat.token_s,
            "first_s": self.beat.first_s,
            "cpu_s": time.process_time(),
            "requests": [
                {
                    "arrival_s": noted.arrival_s,
                    "due_s": noted.due_s,
                    "prompt_tokens": noted.prompt_tokens,
                    "asked": noted.asked,
                    "ended": noted.ended,
                    "emitted_s": list(noted.emitted_s),
                }
                for noted in self.noted
            ],
        }

    def metrics(self) -> str:
        return (
            f'vllm:generation_tokens_total{{engine="0"}} {self.tokens}\n'
            f'vllm:prompt_tokens_total{{engine="0"}} {self.prompt_tokens}\n'
        )


class Connection(asyncio.Protocol):
    """One client connection: HTTP/1.1 with keep-alive, one request at a time."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._loop = asyncio.get_running_loop()
        self._buffer = b""
        self._paused = False
        self._timer: asyncio.TimerHandle | asyncio.Handle | None = None
        self._noted: Noted | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        transport.set_write_buffer_limits(_HIGH_WATER_BYTES)

    def connection_lost(self, _: Exception | None) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def pause_writing(self) -> None:
        self._paused = True

    def resume_writing(self) -> None:
        self._paused = False
        if self._noted is not None and not self._server.beat.token_s:
            self._timer = self._loop.call_soon(self._rush)

    def data_received(self, data: bytes) -> None:
        arrival_s = time.monotonic()
        self._buffer += data
        while (end := self._buffer.find(b"\r\n\r\n")) >= 0:
            head, rest = self._buffer[:end], self._buffer[end + 4 :]
            length = _content_length(head)
            if len(rest) < length:
                return
            body, self._buffer = rest[:length], rest[length:]
            self._answer(head, body, arrival_s)

    def _answer(self, head: bytes, body: bytes, arrival_s: float) -> None:
        path = head.split(b" ", 2)[1].split(b"?")[0]
        if path in {b"/v1/completions", b"/v1/chat/completions"}:
            self._complete(json.loads(body), path.endswith(b"chat/completions"), arrival_s)
        elif path == b"/truth":
            self._whole(json.dumps(self._server.truth()))
        elif path == b"/reset":
            self._server.noted.clear()
            self._whole("{}")
        elif path == b"/metrics":
            self._whole(self._server.metrics(), "text/plain")
        elif path == b"/tokenize":
            words = str(json.loads(body).get("prompt", "")).split()
            self._whole(json.dumps({"tokens": [5 + sum(map(ord, w)) % 5000 for w in words] or [5]}))
        elif path in {b"/health", b"/ping", b"/"}:
            self._whole("{}")
        elif path == b"/v1/models":
            card = {"id": self._server.beat.model, "object": "model", "max_model_len": 32768}
            self._whole(json.dumps({"object": "list", "data": [card]}))
        else:
            self._whole('{"detail":"Not Found"}', status="404 Not Found")

    def _whole(self, text: str, kind: str = "application/json", status: str = "200 OK") -> None:
        body = text.encode()
        head = f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n"
        self._transport.write(head.encode() + body)

    def _complete(self, asked: dict[str, Any], chat: bool, arrival_s: float) -> None:
        beat = self._server.beat
        tokens = int(asked.get("max_tokens") or asked.get("max_completion_tokens") or 16)
        prompt_tokens = _prompt_length(asked)
        noted = Noted(arrival_s, prompt_tokens, arrival_s + beat.first_s, asked=tokens)
        self._server.noted.append(noted)
        self._server.prompt_tokens += prompt_tokens
        if not asked.get("stream"):
            self._whole(answer_at_once(prompt_tokens, tokens, beat.model))
            noted.ended = True
            return
        self._noted = noted
        self._chunk = framed(event(beat.model, chat, None))
        usage = usage_event(beat.model, prompt_tokens, tokens)
        self._last = framed(event(beat.model, chat, "length"))
        self._tail = framed(usage) + framed(b"data: [DONE]\n\n") + b"0\r\n\r\n"
        self._transport.write(
            b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\n"
            b"transfer-encoding: chunked\r\n\r\n"
        )
        if beat.token_s:
            self._timer = self._loop.call_at(noted.due_s, self._tick)
        else:
            self._timer = self._loop.call_soon(self._rush)

    def _tick(self) -> None:
        noted = self._noted
        assert noted is not None
        emitted = noted.emitted_s
        emitted.append(time.monotonic())
        self._server.tokens += 1
        if len(emitted) == noted.asked:
            self._transport.write(self._last)
            self._end(noted)
            return
        self._transport.write(self._chunk)
        due_s = noted.due_s + len(emitted) * self._server.beat.token_s
        self._timer = self._loop.call_at(due_s, self._tick)

    def _rush(self) -> None:
        noted = self._noted
        if noted is None or self._paused:
            return
        left = noted.asked - len(noted.emitted_s)
        count = min(self._server.beat.tokens_per_write, left)
        noted.emitted_s.extend([time.monotonic()] * count)
        self._server.tokens += count
        if count == left:
            self._transport.write(self._chunk * (count - 1) + self._last)
            self._end(noted)
            return
        self._transport.write(self._chunk * count)
        if not self._paused:  # a full buffer calls back when it has drained
            self._timer = self._loop.call_soon(self._rush)

    def _end(self, noted: Noted) -> None:
        noted.ended = True
        self._noted = self._timer = None
        self._transport.write(self._tail)


def _content_length(head: bytes) -> int:
    for line in head.split(b"\r\n")[1:]:
        name, _, value = line.partition(b":")
        if name.strip().lower() == b"content-length":
            return int(value)
    return 0


def _prompt_length(asked: dict[str, Any]) -> int:
    """Token ids are counted; of text, the words (this server has no tokenizer)."""
    prompt = asked.get("prompt")
    if prompt is None:
        prompt = " ".join(str(message.get("content", "")) for message in asked["messages"])
    return len(prompt) if isinstance(prompt, list) else len(str(prompt).split())


async def serve(beat: Beat, host: str, port: int, ready: Any = print) -> None:
    """Serve until SIGTERM or SIGINT; `ready` is called with one JSON line first."""
    loop = asyncio.get_running_loop()
    shared = Server(beat)
    listener = await loop.create_server(
        lambda: Connection(shared), host, port, backlog=4096, reuse_address=True
    )
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    ready(json.dumps({"port": listener.sockets[0].getsockname()[1]}), flush=True)
    await stop.wait()
    listener.close()


def main() -> None:
    """Command line; see the module's docstring."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--core", type=int, default=None, help="pin to this core")
    parser.add_argument("--token-ms", type=float, default=20.0)
    parser.add_argument("--first-ms", type=float, default=None, help="default: as --token-ms")
    parser.add_argument("--tokens-per-write", type=int, default=16, help="with --token-ms 0")
    parser.add_argument("--model", default=MODEL)
    args = parser.parse_args()
    if args.core is not None:
        os.sched_setaffinity(0, {args.core})
    first_ms = args.token_ms if args.first_ms is None else args.first_ms
    beat = Beat(args.token_ms / 1e3, first_ms / 1e3, args.tokens_per_write, args.model)
    gc.freeze()
    gc.disable()  # a collection would be a pause in the beat
    asyncio.run(serve(beat, args.host, args.port))


if __name__ == "__main__":
    main()
