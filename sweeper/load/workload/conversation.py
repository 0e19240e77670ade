"""Conversations: each request holds all that was said before, the model's own answers included.

    turn 0   User: <new text> Assistant:
    turn 1   User: ... Assistant: <what the model wrote> User: <new text> Assistant:

Prompts are text, not token ids: the model's answer is part of the next one, and of an answer only
the text is known. Its ids are not told by every server, and ids put together at the seams are
not what a tokenizer makes of the whole. So only the server's `usage` knows how long a prompt is;
each user's text aims at `input_tokens`, by the lengths of the sentences it is made of.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import partial

from sweeper.config.schema import WorkloadConfig
from sweeper.load.prompts import Bank, sentences, sentences_sha256
from sweeper.load.workload.estimate import estimated_tokens
from sweeper.load.workload.item import WorkItem
from sweeper.load.workload.lengths import LengthSource

USER, ASSISTANT = "User: ", "\nAssistant:"
BETWEEN = "\n\n"
FRAME_TOKENS = 9
"""What the words around a user's text take, about."""

OPENING_DIGITS = 16


class Conversation:
    """Users who talk to the model for `turns` requests each, pausing `think_time_s` between."""

    exact = False
    shares_prefix = True

    def __init__(self, cfg: WorkloadConfig, bank: Bank, seed: int) -> None:
        self._turns = cfg.turns
        self._think_time_s = cfg.think_time_s
        self._seed = seed
        self._lengths = LengthSource(cfg, seed)
        self._bank = list(zip(sentences(), _sizes(bank), strict=True))
        self.conditions: dict[str, object] = {
            "kind": "conversation",
            **self._lengths.conditions,
            "turns": cfg.turns,
            "think_time_s": cfg.think_time_s,
            "seed": seed,
            "prompts": "text",
            "sentences_sha256": sentences_sha256(),
        }

    def items(self, stream: str) -> Iterator[WorkItem]:
        """First requests of endless conversations; the others come by `WorkItem.next_turn`.

        What a user says depends on the stream, the conversation and the turn alone, however the
        conversations of a level overlap.
        """
        number = 0
        while True:
            yield self._turn((stream, number), 0, "", "")
            number += 1

    def _turn(self, name: tuple[str, int], turn: int, before: str, answer: str) -> WorkItem:
        rng = random.Random(f"{self._seed}:conversation:{(*name, turn)!r}")
        input_tokens, output_tokens = next(self._lengths.pairs(*name, turn))
        said = self._text(rng, max(1, input_tokens - FRAME_TOKENS), opening=turn == 0)
        prompt = f"{before}{answer}{BETWEEN if before else ''}{USER}{said}{ASSISTANT}"
        is_last = turn + 1 >= self._turns
        return WorkItem(
            prompt=prompt,
            output_tokens=output_tokens,
            next_turn=None if is_last else partial(self._turn, name, turn + 1, prompt),
            think_time_s=0.0 if is_last else self._think_time_s,
            turn=turn,
        )

    def _text(self, rng: random.Random, tokens: int, *, opening: bool) -> str:
        """Sentences of about so many tokens; the first ones of a conversation open with a number.

        The number is in the server's first block and keeps conversations apart in its cache.
        """
        parts: list[str] = []
        if opening:
            parts.append(f"#{rng.getrandbits(4 * OPENING_DIGITS):0{OPENING_DIGITS}x}")
            tokens -= OPENING_DIGITS * 3 // 4  # hexadecimal digits, about
        while tokens > 0:
            sentence, size = rng.choice(self._bank)
            parts.append(sentence if size <= tokens else _cut(sentence, tokens / size))
            tokens -= size
        return " ".join(part for part in parts if part)


def _cut(sentence: str, share: float) -> str:
    """The beginning of a sentence, as a share of it, at a space where it has spaces."""
    if " " not in sentence:
        return sentence[: max(1, round(len(sentence) * share))]
    words = sentence.split()
    return " ".join(words[: max(1, round(len(words) * share))])


def _sizes(bank: Bank) -> list[int]:
    """Tokens of every sentence: the server's count where `bank` is that of all sentences."""
    texts = sentences()
    if len(bank) == len(texts) and not isinstance(bank[0], str):
        return [len(sentence) for sentence in bank]
    return [estimated_tokens(text) for text in texts]
