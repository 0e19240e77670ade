"""The imaginary model's language: tokens, what it writes, and how sure it is. Pure, deterministic.

After any four tokens one token is the model's first choice, found by a hash. A deployment that
loses quality ranks another one first after a fixed share of contexts, the same ones every time.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

CONTEXT = 4
EOS_SHARE = 1 / 200
QUALITY_LOSS = {"4": 0.05, "8": 0.015, "fp8": 0.01}

_PIECES = re.compile(r"\s*[^\s\w]|\s*\w+|\s+")
_OWN_WORD = re.compile(r" w(\d+)")


def _share(*parts: object) -> float:
    """A number in [0, 1) that is always the same for the same parts."""
    return zlib.crc32(repr(parts).encode()) / 2**32


@dataclass(frozen=True)
class Language:
    """A vocabulary and a deployment's way with it.

    Attributes:
        vocab_size: token ids are below it.
        loss: share of contexts in which the deployment's first choice is not the model's.
        flavour: name of the loss, so that two lossy deployments err in different places.
    """

    vocab_size: int
    loss: float = 0.0
    flavour: str = ""

    def encode(self, text: str) -> list[int]:
        """Token ids of a text; what `decode` wrote comes back the same."""
        return [self._id(piece) for piece in _PIECES.findall(text)]

    def decode(self, ids: Sequence[int]) -> str:
        return "".join(f" w{token}" for token in ids)

    def _id(self, piece: str) -> int:
        own = _OWN_WORD.fullmatch(piece)
        if own is not None and int(own.group(1)) < self.vocab_size:
            return int(own.group(1))
        return zlib.crc32(piece.encode()) % self.vocab_size

    def first_choice(self, context: Sequence[int]) -> int:
        """The undisturbed model's next token."""
        return zlib.crc32(repr(list(context[-CONTEXT:])).encode()) % self.vocab_size

    def errs(self, context: Sequence[int]) -> bool:
        """Whether this deployment ranks another token first here."""
        return _share(list(context[-CONTEXT:]), self.flavour) < self.loss

    def next_token(self, context: Sequence[int]) -> int:
        """What this deployment writes next."""
        choice = self.first_choice(context)
        return (choice + 1) % self.vocab_size if self.errs(context) else choice

    def ends(self, context: Sequence[int]) -> bool:
        """Whether the model would end its answer here."""
        return _share("end", list(context[-CONTEXT:])) < EOS_SHARE

    def judge(self, context: Sequence[int], token: int) -> tuple[float, int]:
        """Log-probability (nats) and rank of a token after a context."""
        noise = _share("p", list(context[-CONTEXT:]))
        first, wrong = self.first_choice(context), self.errs(context)
        if token == first:
            return (-0.9 - noise, 2) if wrong else (-0.1 - 0.2 * noise, 1)
        if wrong and token == (first + 1) % self.vocab_size:
            return -0.4 - 0.2 * noise, 1
        # Where it errs it is surer of its error, at the expense of all other tokens.
        unlikely = -6.0 - 4.0 * _share("q", token, noise) - (0.5 if wrong else 0.0)
        return unlikely, 3 + token % (self.vocab_size - 2)

    def prompt_logprobs(self, ids: Sequence[int], top: int) -> list[dict[str, Any] | None]:
        """One entry a prompt token, null for the first: id → its log-probability and rank.

        Args:
            ids: the prompt.
            top: best alternatives listed beside the prompt's own token; at most one is known.
        """
        entries: list[dict[str, Any] | None] = [None]
        for place in range(1, len(ids)):
            context = ids[max(0, place - CONTEXT) : place]
            shown = [ids[place]] + ([self.next_token(context)] if top > 0 else [])
            entries.append({str(token): self._entry(context, token) for token in shown})
        return entries[: len(ids)]

    def _entry(self, context: Sequence[int], token: int) -> dict[str, Any]:
        logprob, rank = self.judge(context, token)
        return {"logprob": logprob, "rank": rank, "decoded_token": self.decode([token])}


@dataclass(frozen=True)
class Writing:
    """How what a deployment writes departs from what it would choose when it reads.

    Attributes:
        stuck: it writes one and the same token for ever.
        slips: share of contexts after which it writes another token than its choice.
        batch_slips: the same, where several requests run at once.
    """

    stuck: bool = False
    slips: float = 0.0
    batch_slips: float = 0.0

    def next_token(self, language: Language, context: Sequence[int], running: int) -> int:
        """What is written next, `running` requests being in work."""
        if self.stuck:
            return 0
        choice = language.next_token(context)
        slips = self.slips + (self.batch_slips if running > 1 else 0.0)
        slipped = _share("slip", list(context[-CONTEXT:])) < slips
        return (choice + 7) % language.vocab_size if slipped else choice


def language_of(
    vocab_size: int, bits: str, quantization: str, kv_cache_dtype: str, losses: dict[str, float]
) -> Language:
    """The language of a deployment; `losses` by value replace the built-in shares."""
    loss = losses.get(quantization, QUALITY_LOSS.get(bits, 0.0))
    kv = "fp8" if "fp8" in kv_cache_dtype else kv_cache_dtype
    loss += losses.get(kv_cache_dtype, QUALITY_LOSS.get(kv, 0.0))
    return Language(vocab_size, min(1.0, loss), f"{quantization}/{kv_cache_dtype}")
