"""A tiny OpenAI-compatible server in a thread, with faults that can be dialled."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from sweeper.load.address import ServerAddress

VOCABULARY = 5000
API_KEY = "stub-key"


@dataclass
class Dials:
    """How the stub behaves.

    `fault` maps the number of a request (from 0, warm-up included) to a fault or None:
    http_500, empty_first, reasoning, tool_call, no_usage, no_content, no_finish, reset, stall,
    error_event, old_error_event, short, not_json, late_reset; nan_500 where nothing is streamed.
    """

    fault: Callable[[int], str | None] = lambda number: None
    first_token_s: float = 0.0
    token_s: float = 0.0
    tokens_per_chunk: int = 1
    tokenize_status: int = 200
    metrics: bool = True
    prefix_hit_share: float = 0.0
    server_token_factor: float = 1.0
    disagree_every: int = 0
    logprob_shift: float = 0.0
    nan_logprobs: bool = False
    token_ids: bool = True
    slow_requests: int = 0
    slow_every: int = 0
    slow_s: float = 0.0


@dataclass
class Stub:
    dials: Dials
    bodies: list[dict[str, Any]] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    in_flight: int = 0
    max_in_flight: int = 0
    counters: dict[str, float] = field(
        default_factory=lambda: {"generation": 0.0, "queries": 0.0, "hits": 0.0}
    )
    base_url: str = ""

    @property
    def address(self) -> ServerAddress:
        return ServerAddress(self.base_url, "stub", API_KEY)

    async def tokenize(self, request: web.Request) -> web.Response:
        self.paths.append(request.path)
        if self.dials.tokenize_status != 200:
            return web.Response(status=self.dials.tokenize_status, text="no such page")
        return web.json_response({"tokens": tokens_of((await request.json())["prompt"])})

    async def metrics(self, request: web.Request) -> web.Response:
        self.paths.append(request.path)
        if not self.dials.metrics:
            return web.Response(status=404)
        values = {
            "vllm:generation_tokens_total": self.counters["generation"],
            "vllm:prefix_cache_queries_total": self.counters["queries"],
            "vllm:prefix_cache_hits_total": self.counters["hits"],
            "vllm:num_preemptions_total": 0.0,
            "vllm:num_requests_running": float(self.in_flight),
            "vllm:num_requests_waiting": 0.0,
            "vllm:kv_cache_usage_perc": 0.01 * self.in_flight,
        }
        lines = [f'{name}{{engine="0"}} {value}' for name, value in values.items()]
        return web.Response(text="\n".join(lines) + "\n")

    async def completions(self, request: web.Request) -> web.StreamResponse:
        if request.headers.get("Authorization") != f"Bearer {API_KEY}":
            return web.json_response({"error": {"message": "unauthorized"}}, status=401)
        body = await request.json()
        number = len(self.bodies)
        self.bodies.append(body)
        self.in_flight += 1
        self.max_in_flight = max(self.max_in_flight, self.in_flight)
        try:
            await self._dawdle(number)
            if body.get("stream"):
                return await self._stream(request, body, self.dials.fault(number))
            return await self._answer(body, self.dials.fault(number))
        finally:
            self.in_flight -= 1

    async def _dawdle(self, number: int) -> None:
        """The first `slow_requests`, and every `slow_every`-th one, begin `slow_s` late."""
        dials = self.dials
        every = dials.slow_every and number % dials.slow_every == 0
        if number < dials.slow_requests or every:
            await asyncio.sleep(dials.slow_s)

    async def _answer(self, body: dict[str, Any], fault: str | None) -> web.Response:
        if fault == "stall":
            await asyncio.sleep(3600)
        if fault == "http_500":
            return web.json_response({"error": {"message": "engine is dead"}}, status=500)
        if fault == "nan_500":
            message = "Out of range float values are not JSON compliant: nan"
            return web.json_response({"error": {"message": message}}, status=500)
        prompt = ids_of(body["prompt"])
        output: list[int] = []
        for _ in range(body["max_tokens"]):
            output.append(next_token([*prompt, *output]))
        choice: dict[str, Any] = {"index": 0, "text": "x" * len(output), "finish_reason": "length"}
        if body.get("return_token_ids") and self.dials.token_ids:
            choice |= {"token_ids": output, "prompt_token_ids": prompt}
        if body.get("prompt_logprobs") is not None:
            choice["prompt_logprobs"] = self._prompt_logprobs(prompt)
        text = json.dumps({"choices": [choice], "usage": usage(prompt, len(output))})
        return web.Response(text=text, content_type="application/json")

    def _prompt_logprobs(self, prompt: list[int]) -> list[dict[str, Any] | None]:
        entries: list[dict[str, Any] | None] = [None]
        for position in range(1, len(prompt)):
            token = prompt[position]
            greedy = next_token(prompt[:position]) == token
            if self.dials.disagree_every and position % self.dials.disagree_every == 0:
                greedy = False
            logprob = (-0.1 if greedy else -3.0) + self.dials.logprob_shift
            if self.dials.nan_logprobs:
                logprob = float("nan")
            entry = {"logprob": logprob, "rank": 1 if greedy else 7, "decoded_token": "x"}
            entries.append({str(token): entry})
        return entries

    async def _stream(
        self, request: web.Request, body: dict[str, Any], fault: str | None
    ) -> web.StreamResponse:
        prompt = ids_of(body["prompt"])
        if fault == "http_500":
            return web.json_response({"error": {"message": "engine\nis dead"}}, status=500)
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        async for event in self._events(body["max_tokens"], prompt, fault):
            if event == "RESET":
                assert request.transport is not None
                request.transport.abort()
                return response
            await response.write(f"data: {event}\n\n".encode())
        return response

    async def _events(
        self, output_tokens: int, prompt: list[int], fault: str | None
    ) -> AsyncIterator[str]:
        if fault in {"empty_first", "no_content"}:
            yield chunk(text="")
        await asyncio.sleep(self.dials.first_token_s)
        count = output_tokens - 3 if fault == "short" else output_tokens
        position = 0
        while position < count:
            if position:
                await asyncio.sleep(self.dials.token_s)
            if fault == "stall" and position:
                await asyncio.sleep(3600)
            if fault in {"reset", "error_event", "old_error_event", "not_json"} and position:
                yield broken_event(fault)
                return
            position += self.dials.tokens_per_chunk
            yield content_chunk(fault)
        if fault != "no_finish":
            yield chunk(text="", finish="length")
        self._count(prompt, count)
        if fault != "no_usage":
            yield compact({"choices": [], "usage": usage(prompt, count)})
        yield "[DONE]"
        if fault == "late_reset":
            yield "RESET"

    def _count(self, prompt: list[int], output: int) -> None:
        self.counters["generation"] += output * self.dials.server_token_factor
        self.counters["queries"] += len(prompt)
        self.counters["hits"] += len(prompt) * self.dials.prefix_hit_share


def ids_of(prompt: str | list[int]) -> list[int]:
    return tokens_of(prompt) if isinstance(prompt, str) else prompt


def tokens_of(text: str) -> list[int]:
    return [sum(map(ord, word)) % VOCABULARY for word in text.split()]


def next_token(context: list[int]) -> int:
    """The stub's model: greedy and deterministic."""
    return (sum(context[-3:]) * 31 + len(context)) % VOCABULARY


def usage(prompt: list[int], output: int) -> dict[str, int]:
    return {"prompt_tokens": len(prompt), "completion_tokens": output}


def chunk(text: str, finish: str | None = None) -> str:
    return compact({"choices": [{"index": 0, "text": text, "finish_reason": finish}]})


def content_chunk(fault: str | None) -> str:
    if fault == "no_content":
        return chunk(text="")
    if fault == "reasoning":
        return compact({"choices": [{"index": 0, "delta": {"reasoning_content": "hm"}}]})
    if fault == "tool_call":
        return compact({"choices": [{"index": 0, "delta": {"tool_calls": [{"index": 0}]}}]})
    return chunk(text=" word")


def broken_event(fault: str) -> str:
    return {
        "reset": "RESET",
        "error_event": compact({"error": {"message": "EngineCore died", "code": 500}}),
        "old_error_event": compact({"object": "error", "message": "EngineCore died"}),
        "not_json": "{never closed",
    }[fault]


def compact(data: dict[str, Any]) -> str:
    return json.dumps(data, separators=(",", ":"))


@contextmanager
def running(dials: Dials | None = None) -> Iterator[Stub]:
    """A stub on a free port of 127.0.0.1, stopped on leaving."""
    stub = Stub(dials or Dials())
    loop = asyncio.new_event_loop()
    started = threading.Event()

    async def start() -> web.AppRunner:
        app = web.Application()
        app.router.add_post("/v1/completions", stub.completions)
        app.router.add_post("/tokenize", stub.tokenize)
        app.router.add_get("/metrics", stub.metrics)
        runner = web.AppRunner(app, shutdown_timeout=0.1, handler_cancellation=True)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        stub.base_url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        return runner

    def work() -> None:
        asyncio.set_event_loop(loop)
        runner = loop.run_until_complete(start())
        started.set()
        loop.run_forever()
        loop.run_until_complete(runner.cleanup())
        loop.close()

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    assert started.wait(10)
    try:
        yield stub
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
