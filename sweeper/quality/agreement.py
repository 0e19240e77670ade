"""Teacher-forced agreement with the reference.

    reference server: prompt text ──greedy──▶ token ids ──read back──▶ its own scores
    any candidate:    the same token ids ──read back──▶ rank and log-probability of each token

All engines read the same tokens, so one early difference does not spoil the rest, and a change of
one token in a hundred can be told. Agreement is the share of reference tokens that the candidate
ranks first. The log-likelihood change is the mean over tokens of candidate minus reference.

Failures are `QualityUnavailableError`, with the cause; an engine whose log-probabilities are not
numbers is a `BrokenOutputError`.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from sweeper.errors import SweeperError
from sweeper.load.address import ServerAddress
from sweeper.load.http import RequestFailedError, open_session, post_json
from sweeper.quality.floor import binomial_se, clustered_se
from sweeper.quality.key import quality_key
from sweeper.quality.reference import Reference, ReferenceItem, TokenScores
from sweeper.quality.suite import SuitePrompt, suite_hash

if TYPE_CHECKING:
    import aiohttp

__all__ = [
    "Agreement",
    "BrokenOutputError",
    "QualityUnavailableError",
    "compare",
    "own_agreement",
    "quality_key",
    "score",
    "write_reference",
]

AT_ONCE = 4
# What Python web servers say when an answer holds a NaN.
_NAN_ANSWER = "not JSON compliant"
_Input = TypeVar("_Input")
_Output = TypeVar("_Output")


class QualityUnavailableError(SweeperError):
    """The output could not be judged. Says nothing about how good it is.

    Attributes:
        status: HTTP status of the answer that failed, None if it was not that.
    """

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(
            message,
            "read the server's log; with an engine that cannot score a prompt use quality=none",
        )
        self.status = status


class BrokenOutputError(QualityUnavailableError):
    """The engine answers with log-probabilities that are not numbers: its output is broken."""


@dataclass(frozen=True)
class Agreement:
    """How a candidate scores the reference text.

    Attributes:
        agreement: share of reference tokens the candidate ranks first.
        agreement_se: its binomial standard error. Tokens of one prompt resemble one another, so
            the true one is somewhat larger.
        loglik_change_nats: mean of candidate minus reference log-probability, a token.
        loglik_change_se_nats: its standard error from paired differences, clustered by prompt.
        tokens: reference tokens scored.
        by_kind: agreement by kind of prompt.
    """

    agreement: float
    agreement_se: float
    loglik_change_nats: float
    loglik_change_se_nats: float
    tokens: int
    by_kind: dict[str, float] = field(default_factory=dict)


def write_reference(
    server: ServerAddress, suite: Sequence[SuitePrompt], tokens: int, timeout_s: float
) -> Reference:
    """Let the reference write `tokens` greedy tokens for each prompt, and score them itself.

    Args:
        server: the unquantized model under engine defaults.
        suite: prompts; their text is sent once, from then on there are only token ids.
        tokens: tokens a prompt.
        timeout_s: deadline of one request.

    Raises:
        QualityUnavailableError: a request failed, or the server tells no token ids or scores.
    """

    async def item(session: aiohttp.ClientSession, prompt: SuitePrompt) -> ReferenceItem:
        prompt_ids, reference_ids = await _write(session, server, prompt.text, tokens)
        scores = await _read(session, server, prompt_ids, reference_ids)
        return ReferenceItem(prompt.id, prompt.kind, prompt_ids, reference_ids, scores)

    items = asyncio.run(_all(server, timeout_s, suite, item))
    return Reference(suite_hash(suite), server.model, tuple(items))


def score(server: ServerAddress, reference: Reference, timeout_s: float) -> Agreement:
    """Score a candidate. Raises QualityUnavailableError, see the module."""

    async def scores(session: aiohttp.ClientSession, item: ReferenceItem) -> TokenScores:
        return await _read(session, server, item.prompt_ids, item.reference_ids)

    return compare(reference, asyncio.run(_all(server, timeout_s, reference.items, scores)))


def own_agreement(reference: Reference) -> Agreement:
    """The reference's score against itself: the baseline's, and what candidates compare with."""
    return compare(reference, [item.scores for item in reference.items])


def compare(reference: Reference, scores: Sequence[TokenScores]) -> Agreement:
    """Agreement from scores, one a reference item in the same order. Pure."""
    first = 0
    changes: list[list[float]] = []
    kinds: dict[str, list[bool]] = {}
    for item, got in zip(reference.items, scores, strict=True):
        hits = [rank == 1 for rank in got.ranks]
        first += sum(hits)
        kinds.setdefault(item.kind, []).extend(hits)
        pairs = zip(got.logprobs, item.scores.logprobs, strict=True)
        changes.append([candidate - base for candidate, base in pairs])
    tokens = sum(map(len, changes))
    return Agreement(
        agreement=first / tokens,
        agreement_se=binomial_se(first, tokens),
        loglik_change_nats=math.fsum(math.fsum(c) for c in changes) / tokens,
        loglik_change_se_nats=clustered_se(changes),
        tokens=tokens,
        by_kind={kind: sum(hits) / len(hits) for kind, hits in kinds.items()},
    )


async def _all(
    server: ServerAddress,
    timeout_s: float,
    inputs: Sequence[_Input],
    work: Callable[[aiohttp.ClientSession, _Input], Awaitable[_Output]],
) -> list[_Output]:
    """`work` on every input, four at a time; the first failure stops the rest."""
    limit = asyncio.Semaphore(AT_ONCE)

    async def one(session: aiohttp.ClientSession, given: _Input) -> _Output:
        async with limit:
            return await work(session, given)

    async with open_session(server, timeout_s) as session:
        tasks = [asyncio.ensure_future(one(session, given)) for given in inputs]
        try:
            return list(await asyncio.gather(*tasks))
        except RequestFailedError as error:
            kind = BrokenOutputError if _NAN_ANSWER in error.message else QualityUnavailableError
            raise kind(error.message, error.status) from error
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


async def _write(
    session: aiohttp.ClientSession, server: ServerAddress, text: str, tokens: int
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    # No min_tokens here: it would mask the end of sequence, and a token that only won because
    # another was masked is not the reference's first choice when it reads its text back.
    body = {"prompt": text, "max_tokens": tokens, "ignore_eos": True, "return_token_ids": True}
    choice = await _ask(session, server, body)
    prompt_ids, written = choice.get("prompt_token_ids"), choice.get("token_ids")
    if not prompt_ids or not written:
        raise QualityUnavailableError("the server does not tell token ids (return_token_ids)")
    if len(written) != tokens:
        raise QualityUnavailableError(f"{tokens} tokens asked for, {len(written)} written")
    if not all(type(token) is int for token in [*prompt_ids, *written]):
        raise QualityUnavailableError("the server tells token ids that are no numbers")
    return tuple(prompt_ids), tuple(written)


async def _read(
    session: aiohttp.ClientSession,
    server: ServerAddress,
    prompt_ids: Sequence[int],
    reference_ids: Sequence[int],
) -> TokenScores:
    body = {"prompt": [*prompt_ids, *reference_ids], "max_tokens": 1, "prompt_logprobs": 0}
    choice = await _ask(session, server, body)
    return _scores(choice.get("prompt_logprobs"), len(prompt_ids), reference_ids)


def _scores(entries: Any, prompt_length: int, reference_ids: Sequence[int]) -> TokenScores:
    """Rank and log-probability of the last tokens, from vLLM's list of {token: score}."""
    if not isinstance(entries, list) or len(entries) != prompt_length + len(reference_ids):
        raise QualityUnavailableError("the server does not tell prompt_logprobs for every token")
    ranks, logprobs = [], []
    for token, entry in zip(reference_ids, entries[prompt_length:], strict=True):
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
