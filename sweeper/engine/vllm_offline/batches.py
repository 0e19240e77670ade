"""Batches and texts to a worker, and its answers back in the engine's own words."""

from __future__ import annotations

import time
from itertools import count
from typing import Any

from sweeper.engine.protocol import BatchJob, BatchRequest, BatchResult
from sweeper.engine.vllm_offline.channel import Channel, ChannelError
from sweeper.errors import EngineError

TOKENIZE_TIMEOUT_S = 60.0
MAX_ERROR_CHARS = 300


class Batches:
    """A worker that has written its first completion.

    Args:
        channel: to it, with no message under way.
    """

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._numbers = count(1)
        self._lost: str | None = None

    def measure(self, job: BatchJob) -> BatchResult:
        """Run a batch. What goes wrong is in the result; see `BatchResult.ended_early`."""
        begun = time.monotonic()
        sampling = {
            "temperature": job.temperature,
            "ignore_eos": job.ignore_eos,
            "top_p": job.top_p,
            "top_k": job.top_k,
            "seed": job.seed,
        }
        message = {
            "op": "measure",
            "prompts": list(job.prompts),
            "output_tokens": list(job.output_tokens),
            "sampling": {name: value for name, value in sampling.items() if value is not None},
        }
        try:
            answer = self._ask(message, job.timeout_s)
            return _result(answer, len(job.prompts), time.monotonic() - begun)
        except ChannelError as problem:
            return _failed(str(problem), len(job.prompts), time.monotonic() - begun)

    def tokenize(self, texts: list[str]) -> list[list[int]]:
        """Token ids of texts, without special tokens. Raises EngineError if there is no answer."""
        try:
            answer = self._ask({"op": "tokenize", "texts": texts}, TOKENIZE_TIMEOUT_S)
            if "error" in answer:
                raise ChannelError(str(answer["error"]))
            return [[int(token) for token in tokens] for tokens in answer["tokens"]]
        except (ChannelError, KeyError, TypeError, ValueError) as problem:
            raise EngineError(
                f"the engine does not tokenize: {problem}", "see server.log in the trial's folder"
            ) from problem

    def _ask(self, message: dict[str, Any], timeout_s: float) -> dict[str, Any]:
        """One question and its answer; after a question without one there is no other.

        A late answer would be taken for that of the next question, and the engine is still at work
        on what it was asked before.
        """
        if self._lost is not None:
            raise ChannelError(f"an earlier question had no answer: {self._lost}")
        number = next(self._numbers)
        deadline = time.monotonic() + timeout_s
        try:
            self._channel.send({**message, "id": number}, deadline)
            answer: dict[str, Any] = self._channel.receive(deadline)
            if answer.get("id") != number:
                raise ChannelError(f"the worker answered another question: {answer.get('id')}")
        except BaseException as problem:
            # Also when the user interrupts: the answer may come later.
            self._lost = str(problem) or type(problem).__name__
            raise
        return answer


def _result(answer: dict[str, Any], asked: int, waited_s: float) -> BatchResult:
    if "error" in answer:
        return _failed(str(answer["error"]), asked, waited_s)
    try:
        requests = tuple(_request(request) for request in answer["requests"])
        duration_s = float(answer["duration_s"])
        counters = {str(name): float(value) for name, value in answer["counters"].items()}
        cpu_s = float(answer["engine_cpu_s"])
    except (KeyError, TypeError, ValueError, AttributeError) as problem:
        raise ChannelError(f"the worker's answer lacks something: {problem!r}") from problem
    if len(requests) != asked:
        return _failed(f"{len(requests)} of {asked} requests were answered", asked, waited_s)
    return BatchResult(requests, duration_s, counters, cpu_s)


def _request(told: dict[str, Any]) -> BatchRequest:
    return BatchRequest(
        prompt_tokens=int(told["prompt_tokens"]),
        output_tokens=int(told["output_tokens"]),
        first_token_s=told["first_token_s"],
        finished_s=told["finished_s"],
        finish_reason=told["finish_reason"],
    )


def _failed(error: str, asked: int, waited_s: float) -> BatchResult:
    line = " ".join(error.split())[:MAX_ERROR_CHARS]
    request = BatchRequest(None, None, error=line)
    return BatchResult((request,) * asked, waited_s, ended_early=line)
