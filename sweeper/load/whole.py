"""A completion that is answered in one piece, as beam search has to be. Pure."""

from __future__ import annotations

from typing import Any

from sweeper.load.stream import StreamState

MAX_ANSWER_BYTES = 1 << 26
"""Above any answer; without a limit a broken server fills the memory."""


class WholeAnswer(StreamState):
    """State of one response that is not streamed: everything is known at its end.

    Of several answers (the beams that were kept) a user reads one. Servers count one or all of
    them: a count that is exactly that of all, each of the length asked for, is told as one's.

    Args:
        asked_tokens: output length asked for.
        keep_text: also keep the output's text, that of the best answer.
    """

    def __init__(self, asked_tokens: int, *, keep_text: bool = False) -> None:
        super().__init__(keep_text=keep_text)
        self._asked_tokens = asked_tokens
        self._body = bytearray()
        self._answers = 0

    def feed(self, piece: bytes, now_s: float) -> bool:
        """Take in what the network delivered; nothing of it is read before the end."""
        self._body += piece
        if len(self._body) > MAX_ANSWER_BYTES:
            self._body.clear()
            self.error = f"the answer is longer than {MAX_ANSWER_BYTES} bytes"
        return self.error is None

    def close(self, now_s: float) -> None:
        """The response is complete."""
        if self.error is not None:
            return
        self._decode(bytes(self._body), now_s)
        if self.error is None:
            self.done_s = now_s

    def _choices(self, choices: Any, now_s: float) -> None:
        best = choices[:1] if isinstance(choices, list) else ()
        self._answers = len(choices) if isinstance(choices, list) else 0
        super()._choices(list(best), now_s)

    def _usage(self, usage: Any) -> None:
        super()._usage(usage)
        if self.output_tokens == self._asked_tokens * self._answers:
            self.output_tokens = self._asked_tokens
