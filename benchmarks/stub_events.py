"""What the stub writes: events in the form in which vLLM sends them."""

from __future__ import annotations

import json
from typing import Any

_ID = "cmpl-0123456789abcdef0123456789abcdef"


def event(model: str, chat: bool, finish: str | None) -> bytes:
    """One token, with the fields and the order of fields that vLLM sends."""
    content: dict[str, Any] = {"delta": {"content": " word"}} if chat else {"text": " word"}
    choice = {
        "index": 0,
        **content,
        "logprobs": None,
        "finish_reason": finish,
        "stop_reason": None,
        "prompt_token_ids": None,
        "token_ids": None,
    }
    kind = "chat.completion.chunk" if chat else "text_completion"
    return _data({"id": _ID, "object": kind, "created": 0, "model": model, "choices": [choice]})


def usage_event(model: str, prompt_tokens: int, tokens: int) -> bytes:
    usage = _usage(prompt_tokens, tokens)
    return _data({"id": _ID, "created": 0, "model": model, "choices": [], "usage": usage})


def _usage(prompt_tokens: int, tokens: int) -> dict[str, int]:
    return {
        "prompt_tokens": prompt_tokens,
        "total_tokens": prompt_tokens + tokens,
        "completion_tokens": tokens,
    }


def answer_at_once(prompt_tokens: int, tokens: int, model: str) -> str:
    choice = {"index": 0, "text": " word" * tokens, "finish_reason": "length"}
    usage = _usage(prompt_tokens, tokens)
    return json.dumps({"id": _ID, "model": model, "choices": [choice], "usage": usage})


def _data(event: dict[str, Any]) -> bytes:
    return f"data: {json.dumps(event, separators=(',', ':'))}\n\n".encode()


def framed(data: bytes) -> bytes:
    """`data` as one HTTP chunk."""
    return b"%x\r\n%s\r\n" % (len(data), data)
