"""Prompts of an exact length that never repeat, cut from a bank of sentences.

Each prompt begins with a header of random tokens, so that no two of them share a first block in
the server's prefix cache, and goes on with sentences in random order, so that what the model
reads is language. A prompt is a function of (bank, seed, stream name, the lengths before it)
alone: the same study sends the same prompts, and two load levels or trials, whose streams have
different names, never send the same one.

Lengths are exact because nothing is encoded again: sentences are tokenized once by the server
itself, a prompt is cut and joined as token ids, and the server takes these ids as they are,
without a special token before or after. Text of the same ids could encode to more or fewer
tokens where two sentences meet. The server's `usage` is held against the length all the same.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator, Sequence
from functools import cache
from hashlib import sha256
from importlib import resources
from itertools import islice
from typing import cast

from sweeper.errors import EngineError
from sweeper.load.address import ServerAddress
from sweeper.load.http import RequestFailedError, open_session, post_json
from sweeper.load.workload.item import Prompt

Bank = list[list[int]] | list[str]
Unit = int | str
"""A token id; or a word, where the server does not tokenize."""

HEADER_UNITS = 8
_TOKENIZE_AT_ONCE = 8
_TOKENIZE_TIMEOUT_S = 60.0
_MISSING_ENDPOINT = frozenset({404, 405, 501})
_ATTEMPTS_AT_A_NEW_HEADER = 100
_HEADERS_NOT_WATCHED_FROM = 10**15
"""With so many different headers, a million prompts repeat one with a chance below 1 in 1000."""


def sentences() -> list[str]:
    """The bank's sentences: English, Chinese and code, one a line."""
    return [line for line in read_data("sentences.txt").decode().splitlines() if line]


def sentences_sha256() -> str:
    """Version of the bank's sentences."""
    return sha256(read_data("sentences.txt")).hexdigest()


@cache
def read_data(name: str) -> bytes:
    """A data file of this package, as it is."""
    return resources.files("sweeper.load").joinpath("data", name).read_bytes()


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
            if not all(type(token) is int for token in tokens):
                raise RequestFailedError("/tokenize answered with tokens that are no numbers")
            return tokens

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
        self._sentences: list[list[Unit]] = [
            list(words(one)) if isinstance(one, str) else [int(token) for token in one]
            for one in bank
        ]
        self._vocabulary = sorted({unit for one in self._sentences for unit in one}, key=str)
        self._seed = seed

    def prompts(self, n: int, tokens: int, stream: str) -> list[Prompt]:
        """The first `n` prompts of `stream`, each of `tokens` tokens (words, if not exact)."""
        return list(islice(self.stream(tokens, stream), n))

    def stream(self, tokens: int, stream: str) -> Iterator[Prompt]:
        """All prompts of `stream`, made one by one as they are needed."""
        writer = self.writer(stream)
        while True:
            yield self.prompt(writer.units(tokens))

    def writer(self, stream: str) -> PromptWriter:
        """Writes the prompts of `stream`, each of a length of its own."""
        rng = random.Random(f"{self._seed}/{stream}")  # str seeds are the same in every process
        return PromptWriter(self._sentences, self._vocabulary, rng)

    def passage(self, *name: str | int, tokens: int) -> list[Unit]:
        """A text known by its name: the same whenever it is asked for.

        No stream's prompts hold it by chance, whatever the stream is called.

        Args:
            name: any number of parts; different names, different texts.
            tokens: its length. A shorter passage of one name is the beginning of a longer one.
        """
        rng = random.Random(f"{self._seed}:{name!r}")
        return PromptWriter(self._sentences, self._vocabulary, rng).units(tokens)

    def prompt(self, units: Sequence[Unit]) -> Prompt:
        """What is sent: the ids themselves, or the words with spaces between."""
        if self.exact:
            return cast("list[int]", list(units))
        return " ".join(map(str, units))


class PromptWriter:
    """Prompts of one stream, one after the other; see `PromptSource.writer`."""

    def __init__(self, bank: list[list[Unit]], vocabulary: list[Unit], rng: random.Random) -> None:
        self._bank = bank
        self._vocabulary = vocabulary
        self._rng = rng
        self._used: set[tuple[Unit, ...]] = set()

    def units(self, tokens: int) -> list[Unit]:
        """The next prompt, `tokens` long. Raises ValueError if that is less than one."""
        if tokens < 1:
            raise ValueError(f"a prompt of {tokens} tokens cannot be sent")
        units = self._header(min(HEADER_UNITS, tokens))
        while len(units) < tokens:
            units.extend(self._rng.choice(self._bank))
        return units[:tokens]

    def _header(self, length: int) -> list[Unit]:
        header = self._rng.choices(self._vocabulary, k=length)
        if len(self._vocabulary) ** length >= _HEADERS_NOT_WATCHED_FROM:
            return header  # not remembered: memory stays flat over any number of requests
        for _ in range(_ATTEMPTS_AT_A_NEW_HEADER):
            if tuple(header) not in self._used:
                break
            header = self._rng.choices(self._vocabulary, k=length)
        # Prompts of one or two tokens run out of different headers; then they do repeat.
        self._used.add(tuple(header))
        return header


def words(text: str) -> list[str]:
    """Words of a text; its characters in a language that has no spaces."""
    return text.split() if " " in text else list(text)
