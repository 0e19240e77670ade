"""What one request asks for, and what every kind of workload offers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

Prompt = list[int] | str


@dataclass(frozen=True, slots=True)
class WorkItem:
    """One request to send.

    Attributes:
        prompt: token ids, or text where the server does not tokenize or the workload is text.
        output_tokens: tokens to write.
        input_tokens: length of the prompt in tokens, None where only the server can tell.
        at_s: when a recorded trace has it arrive, seconds from the trace's start, unscaled; None
            where the level decides.
        next_turn: for a conversation: makes the following request from this one's output text;
            None after the last turn. The client keeps an output's text only if this is set.
        think_time_s: pause of the user before that following request.
        turn: number of earlier turns.
    """

    prompt: Prompt
    output_tokens: int
    input_tokens: int | None = None
    at_s: float | None = None
    next_turn: Callable[[str], WorkItem] | None = None
    think_time_s: float = 0.0
    turn: int = 0


class Workload(Protocol):
    """Endless requests, the same for the same names.

    Attributes:
        exact: True if every item's `input_tokens` is known and must be what the server counts.
        shares_prefix: True if prompts share beginnings on purpose, within or across levels.
        conditions: what a manifest needs to know of it: kind, lengths, seed, version and, of what
            comes from a file, its name and sha256. Plain JSON values; no prompt text.
    """

    exact: bool
    shares_prefix: bool
    conditions: dict[str, object]

    def items(self, stream: str) -> Iterator[WorkItem]:
        """Requests of a stream of that name, made one by one as they are needed.

        Streams of different names never share a prompt, unless the workload's kind repeats them
        (a file that is at its end begins again; `shares_prefix` is then True).
        """
        ...
