"""What one streamed completion has told so far. Pure: bytes and times in, facts out.

    waiting ──content──▶ flowing ──finish_reason──▶ finished ──usage, [DONE]──▶ done
       └────────────────────┴── error event, malformed event ──▶ failed

Tokens come only from the server's `usage`: a chunk may carry any number of tokens (speculative
decoding, stream intervals), or none (role deltas, half a character).
"""

from __future__ import annotations

import json
from typing import Any

from sweeper.load.records import RequestOutcome
from sweeper.load.sse import EndlessEventError, SseParser

MAX_ERROR_CHARS = 200

_DONE = b"[DONE]"
_FAILED_FINISHES = frozenset({"abort", "error"})
_DELTA_TEXT = ("content", "reasoning_content", "reasoning")


class StreamState:
    """State of one response.

    Attributes:
        first_token_s: time of the first piece with non-empty content, None before.
        chunks: events with content so far.
        prompt_tokens: from `usage`, None if it has not come.
        output_tokens: from `usage`, None if it has not come.
        finish_reason: the server's word, None before the finish.
        done_s: time at which ``[DONE]`` came, None before.
        error: one line if the stream itself reported a failure.

    Args:
        keep_text: also collect the output's text, which costs decoding every event.
    """

    def __init__(self, *, keep_text: bool = False) -> None:
        self._parser = SseParser()
        self._parts: list[str] | None = [] if keep_text else None
        self._mould: tuple[bytes, bytes] | None = None
        self.first_token_s: float | None = None
        self.chunks = 0
        self.prompt_tokens: int | None = None
        self.output_tokens: int | None = None
        self.finish_reason: str | None = None
        self.done_s: float | None = None
        self.error: str | None = None

    def feed(self, piece: bytes, now_s: float) -> bool:
        """Take in what the network delivered at `now_s` (seconds, any monotonic clock).

        Returns:
            False once the stream has reported a failure: what follows is not worth reading.
        """
        try:
            for data in self._parser.feed(piece):
                self._event(data, now_s)
        except EndlessEventError as error:
            self.error = f"the server sent no event: {error}"
        return self.error is None

    def close(self, now_s: float) -> None:
        """The connection has ended in good order."""
        for data in self._parser.close():
            self._event(data, now_s)

    @property
    def text(self) -> str | None:
        """The output so far, None unless it was asked to be kept."""
        return None if self._parts is None else "".join(self._parts)

    def verdict(self) -> tuple[RequestOutcome, str | None]:
        """How the response ended, judged after `close`; second is the error line, None if OK."""
        if self.error is not None:
            return RequestOutcome.ERROR, self.error
        if self.finish_reason in _FAILED_FINISHES:
            return RequestOutcome.ERROR, f"the server ended the request: {self.finish_reason}"
        missing = self._missing()
        return (RequestOutcome.INCOMPLETE, missing) if missing else (RequestOutcome.OK, None)

    def _missing(self) -> str | None:
        checks = (
            (self.first_token_s is None, "the stream had no content"),
            (self.output_tokens is None or self.prompt_tokens is None, "the stream had no usage"),
            (self.output_tokens == 0, "usage counts no output tokens"),
            (self.finish_reason is None, "the stream ended without a finish_reason"),
        )
        return next((message for failed, message in checks if failed), None)

    def _event(self, data: bytes, now_s: float) -> None:
        if self.error is not None or self.done_s is not None:
            return
        if data == _DONE:
            self.done_s = now_s
        elif self._mould is not None and _fits(self._mould, data):
            self.chunks += 1
        elif self.first_token_s is not None and self._parts is None and _is_plain_text_chunk(data):
            self.chunks += 1
            self._mould = self._mould or _mould_of(data)
        else:
            self._decode(data, now_s)

    def _decode(self, data: bytes, now_s: float) -> None:
        try:
            event = json.loads(data)
        except (ValueError, RecursionError):
            self.error = "the server sent an event that is not JSON"
            return
        if not isinstance(event, dict):
            self.error = "the server sent an event that is not a JSON object"
            return
        if (message := error_message(event)) is not None:
            self.error = f"error in the stream: {message}"
            return
        self._choices(event.get("choices"), now_s)
        self._usage(event.get("usage"))

    def _choices(self, choices: Any, now_s: float) -> None:
        for choice in choices if isinstance(choices, list) else ():
            if not isinstance(choice, dict):
                continue
            if _has_content(choice):
                self.chunks += 1
                if self._parts is not None:
                    self._parts.append(_text_of(choice))
                if self.first_token_s is None:
                    self.first_token_s = now_s
            if choice.get("finish_reason") is not None:
                self.finish_reason = str(choice["finish_reason"])

    def _usage(self, usage: Any) -> None:
        if not isinstance(usage, dict):
            return
        prompt, output = usage.get("prompt_tokens"), usage.get("completion_tokens")
        if isinstance(prompt, int):
            self.prompt_tokens = prompt
        if isinstance(output, int):
            self.output_tokens = output


def error_message(event: dict[str, Any]) -> str | None:
    """One line from an OpenAI-style error object, None if `event` is none.

    Only the server's message is kept: validation errors may echo the request beside it.
    """
    error = event.get("error")
    if error is None and event.get("object") == "error":
        error = event
    if error is None:
        return None
    message = error.get("message", "no message") if isinstance(error, dict) else error
    return one_line(str(message))


def one_line(text: str) -> str:
    """`text` without line breaks, shortened to `MAX_ERROR_CHARS`."""
    flat = " ".join(text.split())
    return flat if len(flat) <= MAX_ERROR_CHARS else flat[: MAX_ERROR_CHARS - 1] + "…"


def _has_content(choice: dict[str, Any]) -> bool:
    if choice.get("text"):
        return True
    delta = choice.get("delta")
    if not isinstance(delta, dict):
        return False
    return any(delta.get(key) for key in _DELTA_TEXT) or _has_tool_call(delta)


def _text_of(choice: dict[str, Any]) -> str:
    """What the user sees of a piece of content: reasoning and tool calls are not part of it."""
    delta = choice.get("delta")
    text = choice.get("text") or (delta.get("content") if isinstance(delta, dict) else "")
    return text if isinstance(text, str) else ""


def _has_tool_call(delta: dict[str, Any]) -> bool:
    return bool(delta.get("tool_calls")) or bool(delta.get("function_call"))


def _is_plain_text_chunk(data: bytes) -> bool:
    """True if this event only adds text, told without decoding it.

    Decoding every chunk is most of the client's work at high rates. The patterns cannot occur
    inside a JSON string, where the quotes would be escaped; whatever does not match exactly
    (other spacing, usage, an error, an empty text) is decoded.
    """
    return (
        b'"finish_reason":null' in data
        and b'"text":"' in data
        and b'"text":""' not in data
        and b'"usage":{' not in data
        and b'"error":' not in data
        and data.endswith(b"}")
    )


def _mould_of(data: bytes) -> tuple[bytes, bytes] | None:
    """What stands before and after the text of a plain chunk; None if its end is not plain.

    All chunks of a response are the same but for their text.
    """
    before, mark, rest = data.partition(b'"text":"')
    text, quote, after = rest.partition(b'"')
    if text.endswith(b"\\") or b'"text":' in after:
        return None
    return before + mark, quote + after


def _fits(mould: tuple[bytes, bytes], data: bytes) -> bool:
    """True if `data` is the chunk of the mould with another text, which is not empty."""
    before, after = mould
    if not (data.startswith(before) and data.endswith(after)):
        return False
    text = data[len(before) : -len(after)]
    return bool(text) and b'"' not in text and not text.endswith(b"\\")
