"""Teacher-forced agreement with the reference.

    reference server: prompt text ──greedy──▶ token ids ──read back──▶ its own scores
    any candidate:    the same token ids ──read back──▶ rank and log-probability of each token

All engines read the same tokens, so one early difference does not spoil the rest, and a change of
one token in a hundred can be told. Agreement is the share of reference tokens that the candidate
ranks first; its change is that share minus the reference's own. The log-likelihood change is the
mean over tokens of candidate minus reference. Both changes are paired, token by token.

Failures are those of `sweeper.quality.asking`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sweeper.load.address import ServerAddress
from sweeper.quality.asking import (
    AT_ONCE,
    BrokenOutputError,
    QualityUnavailableError,
    ask_all,
    read,
    write,
)
from sweeper.quality.floor import Change, binomial_se, mean_change, share_change
from sweeper.quality.key import quality_key
from sweeper.quality.reference import Reference, ReferenceItem, TokenScores
from sweeper.quality.suite import SuitePrompt, suite_hash

if TYPE_CHECKING:
    import aiohttp

__all__ = [
    "AT_ONCE",
    "Agreement",
    "BrokenOutputError",
    "QualityUnavailableError",
    "compare",
    "own_agreement",
    "quality_key",
    "score",
    "write_reference",
]


@dataclass(frozen=True)
class Agreement:
    """How a candidate scores the reference text.

    Attributes:
        agreement: share of reference tokens the candidate ranks first.
        agreement_se: its binomial standard error. Tokens of one prompt resemble one another, so
            the true one is somewhat larger; what ranks is `change`.
        change: agreement minus the reference's own, paired.
        loglik_change: candidate minus reference log-probability, a token, in nats; paired.
        tokens: reference tokens scored.
        by_kind: agreement by kind of prompt.
    """

    agreement: float
    agreement_se: float
    change: Change
    loglik_change: Change
    tokens: int
    by_kind: dict[str, float] = field(default_factory=dict)


def write_reference(
    server: ServerAddress, suite: Sequence[SuitePrompt], tokens: int, timeout_s: float
) -> Reference:
    """Let the reference write `tokens` greedy tokens for each prompt, and score them itself.

    It writes one prompt at a time, so that no batch has a part in what the reference is.

    Args:
        server: the unquantized model under engine defaults.
        suite: prompts; their text is sent once, from then on there are only token ids.
        tokens: tokens a prompt.
        timeout_s: deadline of one request.

    Raises:
        QualityUnavailableError: a request failed, or the server tells no token ids or scores.
    """

    async def written(
        session: aiohttp.ClientSession, prompt: SuitePrompt
    ) -> tuple[tuple[int, ...], tuple[int, ...]]:
        return await write(session, server, prompt.text, tokens)

    async def scores(
        session: aiohttp.ClientSession, ids: tuple[tuple[int, ...], tuple[int, ...]]
    ) -> TokenScores:
        return await read(session, server, *ids)

    texts = ask_all(server, timeout_s, suite, written, at_once=1)
    own = ask_all(server, timeout_s, texts, scores)
    items = tuple(
        ReferenceItem(prompt.id, prompt.kind, *ids, found)
        for prompt, ids, found in zip(suite, texts, own, strict=True)
    )
    return Reference(suite_hash(suite), server.model, items)


def score(server: ServerAddress, reference: Reference, timeout_s: float) -> Agreement:
    """Score a candidate. Raises QualityUnavailableError, see the module."""

    async def scores(session: aiohttp.ClientSession, item: ReferenceItem) -> TokenScores:
        return await read(session, server, item.prompt_ids, item.reference_ids)

    return compare(reference, ask_all(server, timeout_s, reference.items, scores))


def own_agreement(reference: Reference) -> Agreement:
    """The reference's score against itself: the baseline's, and what candidates compare with."""
    return compare(reference, [item.scores for item in reference.items])


def compare(reference: Reference, scores: Sequence[TokenScores]) -> Agreement:
    """Agreement from scores, one a reference item in the same order. Pure."""
    pairs = list(zip(reference.items, scores, strict=True))
    hits = [got.hits for _, got in pairs]
    kinds: dict[str, list[bool]] = {}
    for (item, _), found in zip(pairs, hits, strict=True):
        kinds.setdefault(item.kind, []).extend(found)
    changes = [
        [ours - own for ours, own in zip(got.logprobs, item.scores.logprobs, strict=True)]
        for item, got in pairs
    ]
    first, tokens = sum(map(sum, hits)), sum(map(len, hits))
    return Agreement(
        agreement=first / tokens,
        agreement_se=binomial_se(first, tokens),
        change=share_change(hits, [item.scores.hits for item, _ in pairs]),
        loglik_change=mean_change(changes),
        tokens=tokens,
        by_kind={kind: sum(found) / len(found) for kind, found in kinds.items()},
    )
