"""What a deployment writes itself: finds a decoding that is broken where reading is sound.

Agreement reads the reference's text all at once. That says nothing of what only happens when
tokens are made one by one: a KV cache read back in fp8, a drafter whose tokens are taken wrongly, a
batch that mixes requests. So a deployment also writes the suite, greedily, several prompts at once:

    identical, matched prefix   how far it writes what the reference wrote, one prompt at a time.
                                Greedy paths part at the first tie that rounding decides, so this
                                is reported, and beside it how far the defaults reproduce themselves
    stuck                       prompts whose text is a tight loop: "!!!!", "the the the"
    reads back                  share of its own tokens that it ranks first when it reads its text.
                                Reading is vouched for by agreement, so a low share is the fault
                                of writing, whatever was written

The last two have floors (`broken`). All of it is plain data for the journal, without text.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise, takewhile
from typing import TYPE_CHECKING, Any

from sweeper.load.address import ServerAddress
from sweeper.quality.asking import ask_all, read, write
from sweeper.quality.floor import Change, mean_change
from sweeper.quality.reference import Reference, ReferenceItem

if TYPE_CHECKING:
    import aiohttp

AT_ONCE = 8
"""Prompts written at a time: a batch, but none that a small memory could not hold."""
STUCK_SHARE = 0.2
"""A text is stuck if it has no more different pairs of neighbours than this share of all."""
MIN_TOKENS = 8
"""A shorter text repeats itself too easily to be called stuck."""
MAX_NEWLY_STUCK_SHARE = 1 / 3
"""Floor: from so many prompts on that are stuck and are not with the reference, it is broken."""
MAX_READS_BACK_DROP = 0.5
"""Floor: far beyond what rounding, or any quantization that is worth serving, does."""
SIGNIFICANCE = 0.05


@dataclass(frozen=True)
class WrittenText:
    """One prompt, completed.

    Attributes:
        ids: token ids written.
        hits: which of them it ranks first itself when it reads them; one a token.
    """

    ids: tuple[int, ...]
    hits: tuple[bool, ...]


def tokens_to_write(reference: Reference, asked: int) -> int:
    """Tokens a prompt: as many as asked for, and no more than the reference wrote."""
    return min(asked, *(len(item.reference_ids) for item in reference.items))


def write_suite(
    server: ServerAddress, reference: Reference, tokens: int, timeout_s: float
) -> list[WrittenText]:
    """Let a deployment write `tokens` tokens for each prompt, and read back what is its own.

    A text that is the reference's is not read again: what the reference thinks of it is known.

    Raises:
        QualityUnavailableError: a request failed.
    """

    async def texts(session: aiohttp.ClientSession, item: ReferenceItem) -> tuple[int, ...]:
        return (await write(session, server, item.prompt_ids, tokens))[1]

    async def judged(
        session: aiohttp.ClientSession, pair: tuple[ReferenceItem, tuple[int, ...]]
    ) -> WrittenText:
        item, ids = pair
        if ids == item.reference_ids[:tokens]:
            return WrittenText(ids, tuple(item.scores.hits[:tokens]))
        scores = await read(session, server, item.prompt_ids, ids)
        return WrittenText(ids, tuple(scores.hits))

    written = ask_all(server, timeout_s, reference.items, texts, at_once=AT_ONCE)
    return ask_all(server, timeout_s, list(zip(reference.items, written, strict=True)), judged)


def compare(reference: Reference, texts: Sequence[WrittenText]) -> dict[str, Any]:
    """What was written beside what the reference wrote, as plain data. Pure.

    Returns:
        ``prompts``, ``tokens`` (a prompt); ``identical`` (prompts), ``matched_prefix`` (mean
        share of a text); ``stuck``, ``reference_stuck``, ``newly_stuck`` (prompts);
        ``repetition``, ``reference_repetition`` (mean share of pairs of neighbours that stood
        before in the same text); ``reads_back`` (share), and ``reads_back_change``, with
        ``reads_back_change_se``, against the reference's own; ``digests``, one a prompt, which
        tell texts apart without telling them.
    """
    tokens = len(texts[0].ids)
    own = [item.reference_ids[:tokens] for item in reference.items]
    ours = [text.ids for text in texts]
    reading = _reading(reference, texts)
    hits = [hit for text in texts for hit in text.hits]
    stuck, own_stuck = list(map(is_stuck, ours)), list(map(is_stuck, own))
    matched = [_matched(a, b) for a, b in zip(ours, own, strict=True)]
    return {
        "prompts": len(texts),
        "tokens": tokens,
        "identical": sum(a == b for a, b in zip(ours, own, strict=True)),
        "matched_prefix": math.fsum(matched) / len(texts),
        "stuck": sum(stuck),
        "reference_stuck": sum(own_stuck),
        "newly_stuck": sum(a and not b for a, b in zip(stuck, own_stuck, strict=True)),
        "repetition": math.fsum(map(repetition, ours)) / len(texts),
        "reference_repetition": math.fsum(map(repetition, own)) / len(texts),
        "reads_back": sum(hits) / len(hits),
        "reads_back_change": reading.value,
        "reads_back_change_se": reading.se,
        "digests": digests(ours),
    }


def broken(written: Mapping[str, Any]) -> str | None:
    """How a deployment's decoding is broken, one line; None if it is not. Pure.

    Args:
        written: of `compare`; empty if nothing was written.
    """
    if not written:
        return None
    prompts, newly = int(written["prompts"]), int(written["newly_stuck"])
    if newly >= max(2, math.ceil(prompts * MAX_NEWLY_STUCK_SHARE)):
        return (
            f"it writes the same tokens again and again in {written['stuck']} of {prompts} "
            f"prompts, the reference in {written['reference_stuck']} (floor: newly in fewer than "
            "a third)"
        )
    reading = Change(
        float(written["reads_back_change"]), float(written["reads_back_change_se"]), prompts
    )
    if prompts > 1 and reading.is_below(MAX_READS_BACK_DROP):
        return (
            f"reading its own text, it would have written only {written['reads_back']:.0%} of the "
            f"tokens, {-reading.value:.2f} ± {reading.reach:.2f} less than the reference (floor "
            f"{MAX_READS_BACK_DROP}): its decoding does not follow the model"
        )
    return None


def is_stuck(ids: Sequence[int]) -> bool:
    """Whether a text is a tight loop from nearly its beginning."""
    return len(ids) >= MIN_TOKENS and 1.0 - repetition(ids) <= STUCK_SHARE


def repetition(ids: Sequence[int]) -> float:
    """Share of pairs of neighbouring tokens that stood before in the same text."""
    pairs = list(pairwise(ids))
    return 1.0 - len(set(pairs)) / len(pairs) if pairs else 0.0


def digests(texts: Sequence[Sequence[int]]) -> list[str]:
    """Eight hex digits a text."""
    return [hashlib.sha256(repr(list(ids)).encode()).hexdigest()[:8] for ids in texts]


def changed(texts: Sequence[str], others: Sequence[str]) -> list[bool]:
    """Which prompts were completed otherwise, by their digests."""
    return [a != b for a, b in zip(texts, others, strict=True)]


def is_beyond(changes: Sequence[bool], own: Sequence[bool]) -> bool:
    """True if more prompts changed than change by themselves.

    The same prompts on both sides, so only those count that changed on one side alone: an exact
    sign test, one-sided (W. Conover, "Practical Nonparametric Statistics", section 3.4).

    Args:
        changes: prompts that changed, one a prompt.
        own: prompts whose text the defaults do not reproduce, in the same order.
    """
    more = sum(a and not b for a, b in zip(changes, own, strict=True))
    less = sum(b and not a for a, b in zip(changes, own, strict=True))
    n = more + less
    return n > 0 and sum(math.comb(n, k) for k in range(more, n + 1)) / 2**n <= SIGNIFICANCE


def _reading(reference: Reference, texts: Sequence[WrittenText]) -> Change:
    """Reading its own text against the reference reading its own, place by place."""
    return mean_change(
        [
            [
                float(ours) - float(own)
                for ours, own in zip(text.hits, item.scores.hits, strict=False)
            ]
            for text, item in zip(texts, reference.items, strict=True)
        ]
    )


def _matched(ids: Sequence[int], own: Sequence[int]) -> float:
    same = takewhile(lambda pair: pair[0] == pair[1], zip(ids, own, strict=True))
    return sum(1 for _ in same) / len(own)
