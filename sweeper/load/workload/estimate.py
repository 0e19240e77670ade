"""How many tokens a text has, guessed without a tokenizer."""

from __future__ import annotations

import math

TOKENS_A_WORD = 1.3
"""English under the tokenizers of current models: three words in four tokens."""

TOKENS_A_CHARACTER_WITHOUT_SPACES = 0.6
"""Chinese and Japanese, where the vocabulary has words of several characters."""


def fewest_tokens(text: str) -> int:
    """A count that a tokenizer hardly goes below: one a word, one for two Chinese characters."""
    wide = _wide(text)
    return max(1, len(_narrow(text).split()) + wide // 2)


def estimated_tokens(text: str) -> int:
    """The likely count, within a third or so for prose."""
    words = len(_narrow(text).split())
    return max(
        1, math.ceil(words * TOKENS_A_WORD + _wide(text) * TOKENS_A_CHARACTER_WITHOUT_SPACES)
    )


def _is_wide(letter: str) -> bool:
    return "\u3040" <= letter <= "\u9fff" or "\uac00" <= letter <= "\ud7af"


def _wide(text: str) -> int:
    return sum(map(_is_wide, text))


def _narrow(text: str) -> str:
    return "".join(" " if _is_wide(letter) else letter for letter in text)
