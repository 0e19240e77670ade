"""What counts as a first token, a token, and an end."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweeper.load.records import RequestOutcome
from sweeper.load.stream import MAX_ERROR_CHARS, StreamState, one_line

USAGE = {"choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": 9}}


def text(value: str, finish: str | None = None) -> dict[str, Any]:
    return {"choices": [{"index": 0, "text": value, "finish_reason": finish}]}


def sse(*events: Any, compact: bool = True) -> bytes:
    separators = (",", ":") if compact else None
    lines = [
        event if event == "[DONE]" else json.dumps(event, separators=separators) for event in events
    ]
    return "".join(f"data: {line}\n\n" for line in lines).encode()


def fed(*events: Any, compact: bool = True) -> StreamState:
    state = StreamState()
    for at, event in enumerate(events):
        state.feed(sse(event, compact=compact), float(at))
    state.close(float(len(events)))
    return state


def test_an_empty_first_chunk_is_not_the_first_token() -> None:
    state = fed(text(""), text(" a"), text("", "length"), USAGE, "[DONE]")
    assert state.first_token_s == 1.0
    assert state.done_s == 4.0
    assert state.verdict() == (RequestOutcome.OK, None)


@pytest.mark.parametrize(
    "delta",
    [
        {"content": "x"},
        {"reasoning_content": "x"},
        {"reasoning": "x"},
        {"tool_calls": [{"index": 0}]},
    ],
)
def test_any_kind_of_delta_content_is_a_first_token(delta: dict[str, Any]) -> None:
    role = {"choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}}]}
    assert fed(role, {"choices": [{"index": 0, "delta": delta}]}).first_token_s == 1.0


def test_tokens_come_from_usage_and_never_from_chunks() -> None:
    state = fed(text("several words at once"), text("", "length"), USAGE, "[DONE]")
    assert (state.chunks, state.output_tokens, state.prompt_tokens) == (1, 9, 5)


@pytest.mark.parametrize(
    ("events", "outcome", "says"),
    [
        ((text("a"), text("", "length"), "[DONE]"), RequestOutcome.INCOMPLETE, "usage"),
        ((text(""), text("", "length"), USAGE), RequestOutcome.INCOMPLETE, "content"),
        ((text("a"), USAGE, "[DONE]"), RequestOutcome.INCOMPLETE, "finish_reason"),
        ((text("a"), {"error": {"message": "boom"}}, USAGE), RequestOutcome.ERROR, "boom"),
        ((text("a"), {"object": "error", "message": "old"}), RequestOutcome.ERROR, "old"),
        ((text("a"), {"error": "plain"}), RequestOutcome.ERROR, "plain"),
        ((text("a"), text("", "abort"), USAGE), RequestOutcome.ERROR, "abort"),
        ((text("a"), [1]), RequestOutcome.ERROR, "object"),
    ],
)
def test_every_bad_end_has_its_outcome_and_line(
    events: tuple[Any, ...], outcome: RequestOutcome, says: str
) -> None:
    got, line = fed(*events).verdict()
    assert got is outcome
    assert line is not None and says in line


def facts(state: StreamState) -> dict[str, Any]:
    return {name: value for name, value in vars(state).items() if not name.startswith("_")}


HOSTILE = st.sampled_from(
    [
        "a\\\\",
        '\\\\"',
        '","finish_reason":null}]}',
        '"usage":{',
        '"error":',
        '"finish_reason":null',
        '"text":""',
        "[DONE]",
        "data: x",
        "\n\n",
        "é",
    ]
)


@given(st.lists(st.one_of(HOSTILE, st.text(max_size=8)), min_size=1, max_size=6), st.booleans())
def test_the_quick_way_counts_like_the_thorough_one(texts: list[str], finish: bool) -> None:
    events = [text("go"), *map(text, texts), text("", "length" if finish else None), USAGE]
    quick, thorough = fed(*events), fed(*events, compact=False)
    assert facts(quick) == facts(thorough)
    assert quick.chunks == 1 + sum(1 for value in texts if value)


def test_error_lines_are_one_short_line() -> None:
    line = one_line("a\nb " * 500)
    assert "\n" not in line and len(line) == MAX_ERROR_CHARS


def test_a_stream_without_end_fails_instead_of_filling_the_memory() -> None:
    state = StreamState()
    wanted = True
    for _ in range(64):
        wanted = wanted and state.feed(b"a" * 65536, 0.0)
    assert not wanted
    outcome, error = state.verdict()
    assert outcome is RequestOutcome.ERROR
    assert "no event" in str(error)
