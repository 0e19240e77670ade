"""Prompts of an exact length that never repeat, cut from a bank of sentences.

Each prompt begins with a header of random tokens, so that no two of them share a first block in
the server's prefix cache, and goes on with sentences in random order, so that what the model
reads is language. A prompt is a function of (bank, seed, stream name, position) alone: the same
study sends the same prompts, and two load levels or trials, whose streams have different names,
never send the same one.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator, Sequence
from importlib import resources
from itertools import islice

from sweeper.errors import EngineError
from sweeper.load.address import ServerAddress
from sweeper.load.http import RequestFailedError, open_session, post_json

Prompt = list[int] | str
Bank = list[list[int]] | list[str]

HEADER_UNITS = 8
_TOKENIZE_AT_ONCE = 8
_TOKENIZE_TIMEOUT_S = 60.0
_MISSING_ENDPOINT = frozenset({404, 405, 501})
_ATTEMPTS_AT_A_NEW_HEADER = 100


def sentences() -> list[str]:
    """The bank's sentences: English, Chinese and code, one a line."""
    text = resources.files("sweeper.load").joinpath("data", "sentences.txt").read_text("utf-8")
    return [line for line in text.splitlines() if line]


def tokenize_bank(base_url: str, model: str, api_key: str | None) -> Bank:
    """The bank in the model's own tokens, from the server's ``/tokenize``.

    Returns:
        token ids of every sentence; or the sentences themselves if the server has no such
        endpoint. Then prompts are text, and only the server's `usage` knows their length.

    Raises:
        EngineError: the server has the endpoint and it does not work.
    """
    address = ServerAddress(base_url, model, api_key)
    try:
        return asyncio.run(_tokenize(address, sentences()))
    except RequestFailedError as error:
        if error.status in _MISSING_ENDPOINT:
            return sentences()
        raise EngineError(f"/tokenize failed: {error.message}", error.remedy) from error


async def _tokenize(address: ServerAddress, texts: list[str]) -> list[list[int]]:
    limit = asyncio.Semaphore(_TOKENIZE_AT_ONCE)
    async with open_session(address, _TOKENIZE_TIMEOUT_S) as session:

        async def tokens_of(text: str) -> list[int]:
            body = {"model": address.model, "prompt": text, "add_special_tokens": False}
            async with limit:
                answer = await post_json(session, address.url("/tokenize"), body)
            tokens = answer.get("tokens")
            if not isinstance(tokens, list) or not tokens:
                raise RequestFailedError("/tokenize answered without tokens")
            return [int(token) for token in tokens]

        first = await tokens_of(texts[0])  # a missing endpoint is found out with one request
        return [first, *await asyncio.gather(*map(tokens_of, texts[1:]))]


class PromptSource:
    """Endless prompts from one bank.

    Args:
        bank: token ids a sentence; or sentences, where the server does not tokenize.
        seed: the workload's seed.

    Attributes:
        exact: True if prompts are token ids and their length is therefore exact.
    """

    def __init__(self, bank: Bank, seed: int) -> None:
        if not bank or not all(bank):
            raise ValueError("the bank has no sentences, or an empty one")
        self.exact = not isinstance(bank[0], str)
        self._units: list[list[int]] | list[list[str]]
        if self.exact:
            self._units = [list(map(int, sentence)) for sentence in bank]
        else:
            self._units = [_words(str(sentence)) for sentence in bank]
        self._vocabulary = sorted({unit for sentence in self._units for unit in sentence})
        self._seed = seed

    def prompts(self, n: int, tokens: int, stream: str) -> list[Prompt]:
        """The first `n` prompts of `stream`, each of `tokens` tokens (words, if not exact)."""
        return list(islice(self.stream(tokens, stream), n))

    def stream(self, tokens: int, stream: str) -> Iterator[Prompt]:
        """All prompts of `stream`, made one by one as they are needed."""
        if tokens < 1:
            raise ValueError(f"a prompt of {tokens} tokens cannot be sent")
        rng = random.Random(f"{self._seed}/{stream}")  # str seeds are the same in every process
        used: set[tuple[int | str, ...]] = set()
        while True:
            header = self._header(rng, min(HEADER_UNITS, tokens), used)
            units = [*header, *self._body(rng, tokens - len(header))]
            yield [int(unit) for unit in units] if self.exact else " ".join(map(str, units))

    def _header(
        self, rng: random.Random, length: int, used: set[tuple[int | str, ...]]
    ) -> tuple[int | str, ...]:
        for _ in range(_ATTEMPTS_AT_A_NEW_HEADER):
            header = tuple(rng.choices(self._vocabulary, k=length))
            if header not in used:
                break
        # Prompts of one or two tokens run out of different headers; then they do repeat.
        used.add(header)
        return header

    def _body(self, rng: random.Random, length: int) -> Sequence[int | str]:
        body: list[int | str] = []
        while len(body) < length:
            body.extend(rng.choice(self._units))
        return body[:length]


def _words(sentence: str) -> list[str]:
    """Words of a sentence; the characters of a language that has no spaces."""
    return sentence.split() if " " in sentence else list(sentence)
