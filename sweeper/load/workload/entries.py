"""What a line of a prompt file asks for. Pure.

============================================================  ====================================
``{"prompt": "..."}`` or ``{"prompt": [1, 2, 3]}``            text, or token ids
``{"question": "..."}``                                       text
``{"messages": [{"role": "user", "content": "..."}, ...]}``   a chat, written out as plain text
``{"conversations": [{"from": "human", "value": "..."}]}``    ShareGPT; its first human turn
``{"body": {...}}``                                           any of these, as in a batch file
============================================================  ====================================

The length of the output is `output_tokens`, `output_len`, `output_length`, `max_tokens` or
`max_completion_tokens` where a line has one of them, else what the workload says. The answers in
a ShareGPT file are another model's: their length in tokens is not known and not guessed at.

Chats are written out as ``role: text``, a paragraph a message, with ``assistant:`` at the end:
requests go to the completions endpoint, which applies no chat template.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from sweeper.load.workload.item import Prompt

OUTPUT_KEYS = (
    "output_tokens",
    "output_len",
    "output_length",
    "max_tokens",
    "max_completion_tokens",
)
HUMAN = frozenset({"human", "user"})
EXPECTED = (
    'a line has "prompt" (text or token ids), "question", "messages" or "conversations", and '
    'may have "output_tokens", for example {"prompt": "Hello", "output_tokens": 64}'
)


class EntryError(ValueError):
    """A line that is not what it should be; the message says what is wrong with it."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One request of a file.

    Attributes:
        prompt: text or token ids.
        output_tokens: None where the line does not say.
    """

    prompt: Prompt
    output_tokens: int | None


def entry(line: Any, *, only: str | None = None) -> Entry | None:
    """The request a line asks for, None for a conversation in which no human speaks.

    Args:
        line: decoded JSON.
        only: the one shape that is allowed, None for all.

    Raises:
        EntryError: the line has no known shape, or something wrong in it.
    """
    if not isinstance(line, Mapping):
        raise EntryError(f"is {_kind(line)}, not an object")
    if isinstance(line.get("body"), Mapping):
        return entry(line["body"], only=only)
    for key, read in _SHAPES.items():
        if key in line and only in {None, key}:
            prompt = read(line[key])
            return None if prompt is None else Entry(prompt, _output_tokens(line))
    known = [only] if only else list(_SHAPES)
    held = ", ".join(map(repr, sorted(line))) or "nothing"
    raise EntryError(f"has none of {', '.join(map(repr, known))}; it has {held}")


def _output_tokens(line: Mapping[str, Any]) -> int | None:
    for key in OUTPUT_KEYS:
        value = line.get(key)
        if value is None:
            continue
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise EntryError(f"has {key!r} = {value!r}, not a number of tokens above 0")
        return value
    return None


def _prompt(value: Any) -> Prompt:
    if isinstance(value, list):
        ids = [token for token in value if isinstance(token, int) and not isinstance(token, bool)]
        if not ids or len(ids) != len(value) or min(ids) < 0:
            raise EntryError("has a 'prompt' that is a list, but not of token ids")
        return ids
    return _text("prompt", value)


def _question(value: Any) -> Prompt:
    return _text("question", value)


def _text(key: str, value: Any) -> str:
    if not isinstance(value, str):
        raise EntryError(f"has a {key!r} that is {_kind(value)}, not text")
    if not value.strip():
        raise EntryError(f"has a {key!r} that is empty")
    return value


def _messages(value: Any) -> Prompt:
    if not isinstance(value, list) or not value:
        raise EntryError("has 'messages' that are not a list of messages")
    parts = [f"{_field(one, 'role', 'messages')}: {_content(one)}" for one in value]
    return "\n\n".join([*parts, "assistant:"])


def _content(message: Mapping[str, Any]) -> str:
    content = message.get("content")
    if isinstance(content, str):
        return content
    if isinstance(content, list) and all(
        isinstance(part, Mapping) and isinstance(part.get("text"), str) for part in content
    ):
        return "\n".join(part["text"] for part in content)
    raise EntryError("has a message whose 'content' is not text; images and sound cannot be sent")


def _conversations(value: Any) -> Prompt | None:
    if not isinstance(value, list):
        raise EntryError("has 'conversations' that are not a list of turns")
    for turn in value:
        if _field(turn, "from", "conversations").lower() in HUMAN:
            said = _field(turn, "value", "conversations")
            if said.strip():
                return said
    return None


def _field(one: Any, key: str, of: str) -> str:
    value = one.get(key) if isinstance(one, Mapping) else None
    if not isinstance(value, str):
        raise EntryError(f"has {of!r} with an element without a text {key!r}")
    return value


def _kind(value: Any) -> str:
    names: dict[type, str] = {
        str: "text", list: "a list", dict: "an object", bool: "a truth value", type(None): "null"
    }  # fmt: skip
    return names.get(type(value), "a number")


_SHAPES: dict[str, Callable[[Any], Prompt | None]] = {
    "prompt": _prompt,
    "question": _question,
    "messages": _messages,
    "conversations": _conversations,
}
