"""Completions that quality is judged by: greedy, not streamed, by token ids.

Failures are `QualityUnavailableError`, with the cause; an engine whose log-probabilities are not
numbers is a `BrokenOutputError`.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from sweeper.errors import SweeperError
from sweeper.load.address import ServerAddress
from sweeper.load.http import RequestFailedError, open_session, post_json
from sweeper.quality.reference import TokenScores

if TYPE_CHECKING:
    import aiohttp

AT_ONCE = 4
# What Python web servers say when an answer holds a NaN.
NAN_ANSWER = "not JSON compliant"
_Input = TypeVar("_Input")
_Output = TypeVar("_Output")


class QualityUnavailableError(SweeperError):
    """The output could not be judged. Says nothing about how good it is.

    Attributes:
        status: HTTP status of the answer that failed, None if it was not that.
    """

    def __init__(
        self,
        message: str,
        status: int | None = None,
        remedy: str = "read the server's log; with an engine that cannot score a prompt use "
        "quality=none",
    ) -> None:
        super().__init__(message, remedy)
        self.status = status


class BrokenOutputError(QualityUnavailableError):
    """The engine answers with log-probabilities that are not numbers: its output is broken."""


def ask_all(
    server: ServerAddress,
    timeout_s: float,
    inputs: Sequence[_Input],
    work: Callable[[aiohttp.ClientSession, _Input], Awaitable[_Output]],
    at_once: int = AT_ONCE,
) -> list[_Output]:
    """`work` on every input, in the order of the inputs; the first failure stops the rest.

    Args:
        server: that is asked.
        timeout_s: deadline of one request.
        inputs: one a call of `work`.
        work: asks the server in a session.
        at_once: how many inputs are worked on at a time.

    Raises:
        QualityUnavailableError: a request failed.
    """
    return asyncio.run(_all(server, timeout_s, inputs, work, at_once))


async def _all(
    server: ServerAddress,
    timeout_s: float,
    inputs: Sequence[_Input],
    work: Callable[[aiohttp.ClientSession, _Input], Awaitable[_Output]],
    at_once: int,
) -> list[_Output]:
    limit = asyncio.Semaphore(at_once)

    async def one(session: aiohttp.ClientSession, given: _Input) -> _Output:
        async with limit:
            return await work(session, given)

    async with open_session(server, timeout_s) as session:
        tasks = [asyncio.ensure_future(one(session, given)) for given in inputs]
        try:
            return list(await asyncio.gather(*tasks))
        except RequestFailedError as error:
            kind = BrokenOutputError if NAN_ANSWER in error.message else QualityUnavailableError
            raise kind(error.message, error.status) from error
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


async def write(
    session: aiohttp.ClientSession,
    server: ServerAddress,
    prompt: str | Sequence[int],
    tokens: int,
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Let the server write greedily: (ids of the prompt, ids written).

    Raises:
        QualityUnavailableError: it tells no ids, or not as many as were asked for.
    """
    # No min_tokens here: it would mask the end of sequence, and a token that only won because
    # another was masked is not the reference's first choice when it reads its text back.
    text = prompt if isinstance(prompt, str) else list(prompt)
    body = {"prompt": text, "max_tokens": tokens, "ignore_eos": True, "return_token_ids": True}
    choice = await _ask(session, server, body)
    written = choice.get("token_ids")
    prompt_ids = choice.get("prompt_token_ids") if isinstance(prompt, str) else text
    if not prompt_ids or not written:
        raise QualityUnavailableError("the server does not tell token ids (return_token_ids)")
    if len(written) != tokens:
        raise QualityUnavailableError(f"{tokens} tokens asked for, {len(written)} written")
    if not all(type(token) is int for token in [*prompt_ids, *written]):
        raise QualityUnavailableError("the server tells token ids that are no numbers")
    return tuple(prompt_ids), tuple(written)


async def read(
    session: aiohttp.ClientSession,
    server: ServerAddress,
    before: Sequence[int],
    scored: Sequence[int],
) -> TokenScores:
    """What the server thinks of `scored`, given all that stands before each token.

    Raises:
        QualityUnavailableError: it tells no scores.
        BrokenOutputError: they are no numbers.
    """
    body = {"prompt": [*before, *scored], "max_tokens": 1, "prompt_logprobs": 0}
    choice = await _ask(session, server, body)
    return _scores(choice.get("prompt_logprobs"), len(before), scored)


def _scores(entries: Any, before: int, scored: Sequence[int]) -> TokenScores:
    """Rank and log-probability of the last tokens, from vLLM's list of {token: score}."""
    if not isinstance(entries, list) or len(entries) != before + len(scored):
        raise QualityUnavailableError("the server does not tell prompt_logprobs for every token")
    ranks, logprobs = [], []
    for token, entry in zip(scored, entries[before:], strict=True):
        found = entry.get(str(token)) if isinstance(entry, dict) else None
        if not isinstance(found, dict) or found.get("rank") is None:
            raise QualityUnavailableError("the server does not tell a token's own rank")
        rank, logprob = found["rank"], found.get("logprob")
        if not isinstance(logprob, int | float) or not math.isfinite(logprob):
            raise BrokenOutputError("the engine's log-probabilities are not numbers")
        if type(rank) is not int:
            raise BrokenOutputError("the engine's ranks are not numbers")
        ranks.append(rank)
        logprobs.append(float(logprob))
    return TokenScores(tuple(ranks), tuple(logprobs))


async def _ask(
    session: aiohttp.ClientSession, server: ServerAddress, body: dict[str, Any]
) -> dict[str, Any]:
    """The one choice of a completion, greedy and not streamed."""
    full = {"model": server.model, "temperature": 0.0, "stream": False, **body}
    answer = await post_json(session, server.url("/v1/completions"), full)
    choices = answer.get("choices")
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        raise QualityUnavailableError("the server answered without choices")
    return choices[0]
