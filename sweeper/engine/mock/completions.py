"""`/v1/completions` of the mock, in the shape of vLLM's answers."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import AsyncIterator
from collections.abc import Sequence as Ordered
from dataclasses import dataclass
from typing import Any

from sweeper.engine.httpd import Response, as_json
from sweeper.engine.mock.faults import Faults
from sweeper.engine.mock.language import CONTEXT, Language
from sweeper.engine.mock.scheduler import Scheduler, Sequence

DEFAULT_MAX_TOKENS = 16


@dataclass(frozen=True)
class Ask:
    """A completion request, read."""

    prompts: list[list[int]]
    max_tokens: int
    min_tokens: int
    ignore_eos: bool
    stream: bool
    include_usage: bool
    logprobs: int | None
    prompt_logprobs: int | None
    token_ids: bool
    echo: bool = False

    @property
    def judged(self) -> bool:
        """Whether the answer tells more than the text."""
        return self.token_ids or self.logprobs is not None or self.prompt_logprobs is not None

    @classmethod
    def read(cls, body: Any, language: Language) -> Ask:
        """Raises KeyError, TypeError or ValueError if it is no request."""
        limit = body.get("max_tokens")
        return cls(
            prompts=_prompts(body["prompt"], language),
            max_tokens=DEFAULT_MAX_TOKENS if limit is None else int(limit),
            min_tokens=int(body.get("min_tokens") or 0),
            ignore_eos=bool(body.get("ignore_eos")),
            stream=bool(body.get("stream")),
            include_usage=bool((body.get("stream_options") or {}).get("include_usage")),
            logprobs=body.get("logprobs"),
            prompt_logprobs=body.get("prompt_logprobs"),
            token_ids=bool(body.get("return_token_ids")),
            echo=bool(body.get("echo")),
        )


def _prompts(prompt: Any, language: Language) -> list[list[int]]:
    """Text, token ids, or a list of either, as token ids."""
    if isinstance(prompt, str):
        return [language.encode(prompt)]
    if prompt and all(isinstance(item, int) for item in prompt):
        return [list(prompt)]
    return [language.encode(item) if isinstance(item, str) else list(item) for item in prompt]


def bad_request(message: str, status: int = 400) -> Response:
    return as_json(
        {"error": {"message": message, "type": "BadRequestError", "code": status}}, status
    )


class Completions:
    """Answers completion requests from a scheduler."""

    def __init__(self, scheduler: Scheduler, faults: Faults, served_name: str) -> None:
        self.scheduler = scheduler
        self.language = scheduler.language
        self.faults = faults
        self.served_name = served_name

    async def answer(self, body: Any) -> Response:
        """One request, as JSON or as a stream of events."""
        try:
            ask = Ask.read(body, self.language)
        except (KeyError, TypeError, ValueError, AttributeError) as problem:
            return bad_request(f"not a completion request: {problem!r}")
        if body.get("model") != self.served_name:
            return bad_request(f"The model `{body.get('model')}` does not exist.", 404)
        refusal = self._refusal(ask)
        if refusal is not None:
            return bad_request(refusal)
        struck = await self.faults.at_completion(judged=ask.judged, stream=ask.stream)
        if struck is not None:
            return struck
        sequences = [self._sequence(ask, prompt) for prompt in ask.prompts]
        if ask.stream:
            events = self._events(ask, sequences)
            return Response(content_type="text/event-stream; charset=utf-8", stream=events)
        return as_json(await self._whole(ask, sequences))

    def _refusal(self, ask: Ask) -> str | None:
        limit = self.scheduler.machine.max_model_len
        for prompt in ask.prompts:
            if not prompt:
                return "The prompt is empty."
            if any(not 0 <= token < self.language.vocab_size for token in prompt):
                return "Token id is out of vocabulary."
            if len(prompt) + ask.max_tokens > limit:
                return (
                    f"This model's maximum context length is {limit} tokens. However, you "
                    f"requested {ask.max_tokens} output tokens and your prompt contains "
                    f"{len(prompt)} tokens."
                )
        return None if ask.prompts else "There is no prompt."

    def _sequence(self, ask: Ask, prompt: list[int]) -> Sequence:
        sequence = Sequence(prompt, max(1, ask.max_tokens), ask.min_tokens, ask.ignore_eos)
        self.scheduler.add(sequence)
        return sequence

    async def _whole(self, ask: Ask, sequences: Ordered[Sequence]) -> dict[str, Any]:
        try:
            for sequence in sequences:
                while await sequence.events.get() is not None:
                    pass
        finally:
            for sequence in sequences:
                self.scheduler.abort(sequence)
        answer = self._frame([self._choice(ask, n, s) for n, s in enumerate(sequences)])
        if not self.faults.no_usage:
            answer["usage"] = _usage(sequences)
        return answer

    async def _events(self, ask: Ask, sequences: Ordered[Sequence]) -> AsyncIterator[bytes]:
        try:
            if self.faults.empty_first_chunk:
                yield _event(self._frame([self._part(ask, n, []) for n in range(len(sequences))]))
            async for number, tokens in _merged(sequences):
                part = self._part(ask, number, tokens)
                sequence = sequences[number]
                if sequence.finish_reason is not None and sequence.events.qsize() == 1:
                    part["finish_reason"] = sequence.finish_reason
                yield _event(self._frame([part]))
            if ask.include_usage and not self.faults.no_usage:
                yield _event({**self._frame([]), "usage": _usage(sequences)})
            yield b"data: [DONE]\n\n"
        finally:
            for sequence in sequences:
                self.scheduler.abort(sequence)

    def _frame(self, choices: list[dict[str, Any]]) -> dict[str, Any]:
        return {
            "id": "cmpl-mock",
            "object": "text_completion",
            "created": 0,
            "model": self.served_name,
            "choices": choices,
        }

    def _part(self, ask: Ask, number: int, tokens: list[int]) -> dict[str, Any]:
        return {
            "index": number,
            "text": self.language.decode(tokens),
            "logprobs": None,
            "finish_reason": None,
            "stop_reason": None,
            "token_ids": tokens if ask.token_ids else None,
        }

    def _choice(self, ask: Ask, number: int, sequence: Sequence) -> dict[str, Any]:
        choice = self._part(ask, number, sequence.written)
        choice["finish_reason"] = sequence.finish_reason
        choice["prompt_logprobs"] = None
        choice["prompt_token_ids"] = sequence.prompt if ask.token_ids else None
        if ask.prompt_logprobs is not None:
            scores = self.language.prompt_logprobs(sequence.prompt, ask.prompt_logprobs)
            choice["prompt_logprobs"] = _spoilt(scores) if self.faults.nan_scores else scores
        if ask.echo:
            choice["text"] = self.language.decode(sequence.prompt) + choice["text"]
        if ask.logprobs is not None:
            choice["logprobs"] = self._logprobs(sequence, echo=ask.echo)
        return choice

    def _logprobs(self, sequence: Sequence, *, echo: bool) -> dict[str, Any]:
        """Of the tokens written; with `echo` of the prompt too, whose first has none."""
        ids = sequence.prompt + sequence.written
        words: list[str] = []
        values: list[float | None] = []
        offsets, offset = [], 0
        for place in range(0 if echo else len(sequence.prompt), len(ids)):
            words.append(self.language.decode([ids[place]]))
            context = ids[max(0, place - CONTEXT) : place]
            values.append(self.language.judge(context, ids[place])[0] if place else None)
            offsets.append(offset)
            offset += len(words[-1])
        tops = [
            None if value is None else {word: value}
            for word, value in zip(words, values, strict=True)
        ]
        return {
            "tokens": words,
            "token_logprobs": values,
            "top_logprobs": tops,
            "text_offset": offsets,
        }


async def _merged(sequences: Ordered[Sequence]) -> AsyncIterator[tuple[int, list[int]]]:
    """New tokens of several sequences as they come, with the sequence's number."""
    if len(sequences) == 1:
        while (tokens := await sequences[0].events.get()) is not None:
            yield 0, tokens
        return
    waiting = {
        asyncio.ensure_future(sequence.events.get()): number
        for number, sequence in enumerate(sequences)
    }
    while waiting:
        done, _ = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        for future in done:
            number = waiting.pop(future)
            tokens = future.result()
            if tokens is not None:
                yield number, tokens
                waiting[asyncio.ensure_future(sequences[number].events.get())] = number


def _spoilt(scores: list[dict[str, Any] | None]) -> list[dict[str, Any] | None]:
    """As a kernel that computes NaN would have it."""
    nan = {"logprob": math.nan, "rank": math.nan}
    return [entry and {token: {**told, **nan} for token, told in entry.items()} for entry in scores]


def _usage(sequences: Ordered[Sequence]) -> dict[str, int]:
    prompt = sum(len(sequence.prompt) for sequence in sequences)
    written = sum(len(sequence.written) for sequence in sequences)
    return {
        "prompt_tokens": prompt,
        "completion_tokens": written,
        "total_tokens": prompt + written,
    }


def _event(data: dict[str, Any]) -> bytes:
    return b"data: " + json.dumps(data).encode() + b"\n\n"
