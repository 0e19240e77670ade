"""Token ids as text, piece by piece: characters are given out when they are whole."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

CONTEXT_TOKENS = 4
WINDOW_TOKENS = 32
UNFINISHED = "\ufffd"
MOST_HELD = 3
"""A character has at most four bytes, so at most three stand there unfinished. Some tokenizers show
them as one mark, some as one each; more marks than that will never become a character."""


class Decoder(Protocol):
    """The part of a tokenizer that is needed."""

    def decode(self, token_ids: list[int], *, skip_special_tokens: bool) -> str: ...


class TextStream:
    """Text of one answer as its tokens come.

    A few tokens of the prompt are decoded along, because a first word's space depends on them.

    Args:
        tokenizer: decodes.
        prompt: token ids before the answer.
        skip_special: leave special tokens out of the text.
    """

    def __init__(self, tokenizer: Decoder, prompt: Sequence[int], *, skip_special: bool) -> None:
        self._tokenizer = tokenizer
        self._skip_special = skip_special
        self._ids = list(prompt[-CONTEXT_TOKENS:])
        self._given = _without_unfinished(self._decode(self._ids))

    def add(self, tokens: Sequence[int], *, last: bool = False) -> str:
        """Text that is new with these tokens; with `last` all that was held back, too."""
        self._ids += tokens
        text = self._decode(self._ids)
        whole = text if last else _without_unfinished(text)
        if len(whole) <= len(self._given):
            return ""
        new = whole[len(self._given) :]
        self._given = whole
        if whole == text:
            self._shorten(CONTEXT_TOKENS)
        elif len(self._ids) > WINDOW_TOKENS:
            self._shorten(WINDOW_TOKENS // 2)
        return new

    def _shorten(self, tokens: int) -> None:
        """Keep only the last tokens, so that each piece costs the same wherever it stands."""
        self._ids = self._ids[-tokens:]
        self._given = _without_unfinished(self._decode(self._ids))

    def _decode(self, ids: list[int]) -> str:
        return self._tokenizer.decode(ids, skip_special_tokens=self._skip_special)


def _without_unfinished(text: str) -> str:
    """A text without the marks at its end that may yet become a character."""
    marks = len(text) - len(text.rstrip(UNFINISHED))
    return text[: len(text) - min(marks, MOST_HELD)]
