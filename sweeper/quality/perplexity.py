"""Perplexity on a text: how well a deployment foresees what people wrote.

    reference: text ──pieces──▶ its server's token ids ──▶ windows, kept ──read──▶ log-probabilities
    candidate:                                             the same windows ──read──▶ its own

Windows are read apart, each from its beginning, so that they are independent and a short context is
enough. The first token of a window has nothing before it and is not scored. The change against the
reference is paired, token by token, and its error is clustered by window.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Sequence
from importlib import resources
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from sweeper.quality.asking import QualityUnavailableError, ask_all, read, write
from sweeper.quality.floor import mean_change
from sweeper.quality.part import PartJob, PartResult
from sweeper.quality.reference import LONGEST_TOKENS

if TYPE_CHECKING:
    import aiohttp

WINDOW_TOKENS = 256
MIN_WINDOW_TOKENS = 16
"""A shorter rest of a piece is left out: its tokens have hardly any context."""
PIECE_BYTES = 800
"""No tokenizer in use makes more tokens than bytes, so a piece fits any context that can serve."""


def measure(job: PartJob) -> PartResult:
    """Read the reference's windows, or make them first if this server is the reference.

    Raises:
        QualityUnavailableError: a request failed, or the text cannot be read or is too short.
    """
    if job.kept is not None:
        windows = [tuple(map(int, window)) for window in job.kept["windows"]]
        own = [list(map(float, scores)) for scores in job.kept["logprobs"]]
        return PartResult(found(_read_all(job, windows), own))
    text = load_text(job.config.text_path)
    windows = _windows(job, text)
    if len(windows) < 2:
        raise QualityUnavailableError(
            f"the text of quality.text_path={job.config.text_path} gives fewer than two windows of "
            f"{MIN_WINDOW_TOKENS} tokens, so its error cannot be told",
            remedy="name a longer text, or leave it out for the one that comes with sweeper",
        )
    logprobs = _read_all(job, windows)
    kept = {
        "text_sha256": hashlib.sha256(text.encode()).hexdigest(),
        "windows": [list(window) for window in windows],
        "logprobs": logprobs,
        LONGEST_TOKENS: 1 + max(map(len, windows)),
    }
    return PartResult(found(logprobs, logprobs), kept)


def found(logprobs: Sequence[Sequence[float]], own: Sequence[Sequence[float]]) -> dict[str, float]:
    """The figures, from log-probabilities by window. Pure.

    Args:
        logprobs: of the candidate, natural logarithms, one list a window.
        own: of the reference, the same tokens.

    Returns:
        ``nats_per_token`` (lower is better) with ``nats_se``; ``perplexity``, its exponential;
        ``tokens``, ``windows``; ``change_nats`` (candidate minus reference, positive is worse) with
        ``change_se_nats``.
    """
    level = mean_change([[-value for value in window] for window in logprobs])
    change = mean_change(
        [
            [theirs - ours for ours, theirs in zip(window, base, strict=True)]
            for window, base in zip(logprobs, own, strict=True)
        ]
    )
    return {
        "nats_per_token": level.value,
        "nats_se": level.se,
        "perplexity": math.exp(level.value),
        "tokens": sum(map(len, logprobs)),
        "windows": len(logprobs),
        "change_nats": change.value,
        "change_se_nats": change.se,
    }


def load_text(path: str | None) -> str:
    """The text, by default the one that comes with sweeper.

    Raises:
        QualityUnavailableError: it cannot be read.
    """
    if path is None:
        return resources.files("sweeper.quality").joinpath("data", "text.txt").read_text("utf-8")
    try:
        return Path(path).expanduser().read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise QualityUnavailableError(
            f"quality.text_path={path} cannot be read: {error}",
            remedy="name a UTF-8 text file, or leave it out for the text that comes with sweeper",
        ) from error


def pieces(text: str, limit_bytes: int = PIECE_BYTES) -> Iterator[str]:
    """A text in pieces of whole lines, or of words where a line is too long, in its order. Pure.

    Every piece is at most `limit_bytes` long in UTF-8 and has more than blanks. Joined, they are
    the text without its blank stretches between pieces.
    """
    held = ""
    for part in _atoms(text, limit_bytes):
        if held and len((held + part).encode()) > limit_bytes:
            yield held
            held = ""
        held += part
        if held.isspace():
            held = ""
    if held:
        yield held


def _atoms(text: str, limit_bytes: int) -> Iterator[str]:
    """Lines; words of a line that is too long; characters of such a word."""
    for line in text.splitlines(keepends=True):
        if len(line.encode()) <= limit_bytes:
            yield line
            continue
        for number, word in enumerate(line.split(" ")):
            spaced = f" {word}" if number else word
            yield from [spaced] if len(spaced.encode()) <= limit_bytes else spaced


def _windows(job: PartJob, text: str) -> list[tuple[int, ...]]:
    """Token ids of the text, up to `quality.text_tokens` of them, in windows."""
    limit = job.config.text_tokens
    # Four bytes a token is usual; half of that leaves room, and what is too much is cut off.
    enough = list(islice(pieces(text), 1 + limit * 8 // PIECE_BYTES))

    async def ids(session: aiohttp.ClientSession, piece: str) -> tuple[int, ...]:
        return (await write(session, job.server, piece, 1))[0]

    left, windows = limit, []
    for piece in ask_all(job.server, job.config.request_timeout_s, enough, ids):
        for start in range(0, len(piece), WINDOW_TOKENS):
            window = piece[start : start + WINDOW_TOKENS][:left]
            if len(window) >= MIN_WINDOW_TOKENS:
                windows.append(window)
                left -= len(window)
    return windows


def _read_all(job: PartJob, windows: Sequence[tuple[int, ...]]) -> list[list[float]]:
    """Log-probabilities of all tokens of each window but its first."""

    async def scores(session: aiohttp.ClientSession, window: tuple[int, ...]) -> list[float]:
        return list((await read(session, job.server, window[:1], window[1:])).logprobs)

    return ask_all(job.server, job.config.request_timeout_s, windows, scores)
