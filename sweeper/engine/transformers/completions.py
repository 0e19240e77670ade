"""`/v1/completions`, in the shape of vLLM's answers."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import AsyncIterator, Sequence
from typing import Any

from sweeper.engine.httpd import Response, as_json
from sweeper.engine.transformers.asks import Ask
from sweeper.engine.transformers.jobs import Board, Job
from sweeper.engine.transformers.loading import LoadedModel
from sweeper.engine.transformers.scoring import Scores
from sweeper.engine.transformers.text import TextStream
from sweeper.engine.transformers.worker import Worker


def refused(message: str, status: int = 400) -> Response:
    kind = "NotFoundError" if status == 404 else "BadRequestError"
    kind = "InternalServerError" if status == 500 else kind
    return as_json({"error": {"message": message, "type": kind, "code": status}}, status)


class Completions:
    """Answers completion requests through a worker."""

    def __init__(self, loaded: LoadedModel, worker: Worker, board: Board, served_name: str) -> None:
        self._loaded = loaded
        self._worker = worker
        self._board = board
        self._served_name = served_name

    async def answer(self, body: Any) -> Response:
        """One request, as JSON or as a stream of events."""
        try:
            ask = Ask.read(body, self._loaded.tokenizer)
        except (KeyError, TypeError, ValueError, AttributeError) as problem:
            plain = isinstance(problem, ValueError)
            return refused(str(problem) if plain else f"not a completion request: {problem!r}")
        if body.get("model") != self._served_name:
            return refused(f"there is no model {body.get('model')!r} here", 404)
        jobs = [Job(prompt, ask.decoding) for prompt in ask.prompts]
        refusal = self._refusal(ask, jobs)
        if refusal is not None:
            return refused(refusal)
        scores: list[Scores] | None = None
        if ask.prompt_logprobs is not None:
            scores = [await self._worker.score(p, ask.prompt_logprobs) for p in ask.prompts]
            if not _all_numbers(scores):
                return refused("a log-probability is no number, which is not JSON compliant", 500)
        for job in jobs:
            self._board.add(job)
            self._worker.submit(job)
        if ask.stream:
            events = self._events(ask, jobs)
            return Response(content_type="text/event-stream; charset=utf-8", stream=events)
        return await self._whole(ask, jobs, scores)

    def _refusal(self, ask: Ask, jobs: Sequence[Job]) -> str | None:
        if not jobs:
            return "there is no prompt"
        if ask.prompt_logprobs is not None and ask.stream:
            return "prompt_logprobs are not streamed: stream must be false"
        if ask.prompt_logprobs is not None and self._loaded.random_weights:
            return "the weights are random: prompt_logprobs would say nothing about the model"
        misfits = (self._misfit(job) for job in jobs)
        misfit = next((found for found in misfits if found is not None), None)
        return misfit or self._worker.refusal(jobs[0])

    def _misfit(self, job: Job) -> str | None:
        """Why the model cannot take a prompt; None if it can."""
        limit = self._loaded.max_model_len
        if not job.prompt:
            return "the prompt is empty"
        if not all(0 <= token < self._loaded.vocab_size for token in job.prompt):
            return f"a token id is outside the vocabulary of {self._loaded.vocab_size}"
        if len(job.prompt) + job.decoding.max_tokens > limit:
            return (
                f"a prompt of {len(job.prompt)} tokens and {job.decoding.max_tokens} tokens of "
                f"output are longer than the model's context of {limit} tokens"
            )
        return None

    async def _whole(
        self, ask: Ask, jobs: Sequence[Job], scores: Sequence[Scores] | None
    ) -> Response:
        try:
            for job in jobs:
                while await job.events.get() is not None:
                    pass
        finally:
            self._let_go(jobs)
        for job in jobs:
            if job.error is not None:
                return refused(job.error, 500)
        choices = [
            self._choice(ask, jobs, n, c, scores)
            for n in range(len(jobs))
            for c in range(ask.decoding.beams)
        ]
        return as_json({**self._frame(choices), "usage": _usage(jobs)})

    def _choice(
        self,
        ask: Ask,
        jobs: Sequence[Job],
        number: int,
        answer: int,
        scores: Sequence[Scores] | None,
    ) -> dict[str, Any]:
        job = jobs[number]
        choice = job.choices[answer]
        text = TextStream(self._loaded.tokenizer, job.prompt, skip_special=ask.skip_special)
        part = _part(number * ask.decoding.beams + answer, text.add(choice.written, last=True))
        part["finish_reason"] = choice.finish_reason
        part["prompt_logprobs"] = scores[number] if scores is not None else None
        if ask.token_ids:
            part |= {"token_ids": choice.written, "prompt_token_ids": job.prompt}
        return part

    async def _events(self, ask: Ask, jobs: Sequence[Job]) -> AsyncIterator[bytes]:
        try:
            beams = ask.decoding.beams
            texts = [
                TextStream(self._loaded.tokenizer, job.prompt, skip_special=ask.skip_special)
                for job in jobs
                for _ in range(beams)
            ]
            async for number, answer, tokens in _merged(jobs):
                reason = jobs[number].choices[answer].finish_reason
                # Tokens may be behind what is already written: only the last carry the reason.
                behind = jobs[number].events.qsize() > (1 if beams == 1 else 0)
                last = reason is not None and (beams > 1 or not behind)
                index = number * beams + answer
                text = texts[index].add(tokens, last=last)
                if not text and not last and not ask.token_ids:
                    continue
                part = _part(index, text)
                part["finish_reason"] = reason if last else None
                if ask.token_ids:
                    part["token_ids"] = tokens
                yield _event(self._frame([part]))
            failed = next((job.error for job in jobs if job.error is not None), None)
            if failed is not None:
                yield _event({"error": {"message": failed, "code": 500}})
                return
            if ask.include_usage:
                yield _event({**self._frame([]), "usage": _usage(jobs)})
            yield b"data: [DONE]\n\n"
        finally:
            self._let_go(jobs)

    def _let_go(self, jobs: Sequence[Job]) -> None:
        """The answer is complete, or nobody waits for it any more."""
        for job in jobs:
            if not job.is_over:
                self._worker.cancel(job)
            self._board.drop(job)

    def _frame(self, choices: list[dict[str, Any]]) -> dict[str, Any]:
        return {
            "id": "cmpl",
            "object": "text_completion",
            "created": 0,
            "model": self._served_name,
            "choices": choices,
        }


def _part(index: int, text: str) -> dict[str, Any]:
    return {"index": index, "text": text, "logprobs": None, "finish_reason": None}


async def _merged(jobs: Sequence[Job]) -> AsyncIterator[tuple[int, int, list[int]]]:
    """(job, choice, new tokens) of several jobs as they come."""
    if len(jobs) == 1:
        while (event := await jobs[0].events.get()) is not None:
            yield 0, *event
        return
    waiting = {asyncio.ensure_future(job.events.get()): n for n, job in enumerate(jobs)}
    try:
        while waiting:
            done, _ = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            for future in done:
                number = waiting.pop(future)
                event = future.result()
                if event is not None:
                    yield number, *event
                    waiting[asyncio.ensure_future(jobs[number].events.get())] = number
    finally:
        for future in waiting:
            future.cancel()


def _usage(jobs: Sequence[Job]) -> dict[str, int]:
    prompt = sum(len(job.prompt) for job in jobs)
    written = sum(len(choice.written) for job in jobs for choice in job.choices)
    return {
        "prompt_tokens": prompt,
        "completion_tokens": written,
        "total_tokens": prompt + written,
    }


def _all_numbers(scores: Sequence[Scores]) -> bool:
    entries = (entry for of_prompt in scores for entry in of_prompt if entry is not None)
    return all(math.isfinite(told["logprob"]) for entry in entries for told in entry.values())


def _event(data: dict[str, Any]) -> bytes:
    # Without spaces, as other servers write it.
    return b"data: " + json.dumps(data, separators=(",", ":")).encode() + b"\n\n"
