"""A completion in one piece: told only when it is complete, and of one answer."""

from __future__ import annotations

import json
from typing import Any

import pytest

from sweeper.load import whole
from sweeper.load.records import RequestOutcome
from sweeper.load.whole import WholeAnswer


def answer(*texts: str, tokens: int, **changes: Any) -> bytes:
    choices = [{"index": i, "text": t, "finish_reason": "length"} for i, t in enumerate(texts)]
    usage = {"prompt_tokens": 7, "completion_tokens": tokens}
    return json.dumps({"choices": choices, "usage": usage} | changes).encode()


def read(body: bytes, pieces: int = 3) -> WholeAnswer:
    state = WholeAnswer(9, keep_text=True)
    size = max(1, len(body) // pieces)
    for start in range(0, len(body), size):
        assert state.feed(body[start : start + size], 1.0)
        assert state.first_token_s is None
    state.close(2.0)
    return state


@pytest.mark.parametrize(("counted", "told"), [(9, 9), (27, 9), (8, 8), (12, 12)])
def test_the_length_is_that_of_one_answer(counted: int, told: int) -> None:
    state = read(answer("a b", "c d", "e f", tokens=counted))
    assert state.verdict() == (RequestOutcome.OK, None)
    assert state.output_tokens == told
    assert (state.prompt_tokens, state.text) == (7, "a b")
    assert state.first_token_s == state.done_s == 2.0


@pytest.mark.parametrize(
    ("body", "outcome"),
    [
        (b"<html>", RequestOutcome.ERROR),
        (b"[]", RequestOutcome.ERROR),
        (b'{"error": {"message": "engine is dead"}}', RequestOutcome.ERROR),
        (answer("", tokens=8), RequestOutcome.INCOMPLETE),
        (answer("a", tokens=8, usage=None), RequestOutcome.INCOMPLETE),
        (b'{"choices": 3}', RequestOutcome.INCOMPLETE),
    ],
)
def test_what_is_no_answer_is_told(body: bytes, outcome: RequestOutcome) -> None:
    found, line = read(body).verdict()
    assert found is outcome and line


def test_an_answer_without_end_fails_instead_of_filling_the_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(whole, "MAX_ANSWER_BYTES", 1000)
    answer = WholeAnswer(8)
    assert answer.feed(b"a" * 1000, 0.0)
    assert not answer.feed(b"a", 0.0)
    answer.close(1.0)
    outcome, error = answer.verdict()
    assert outcome is RequestOutcome.ERROR
    assert "longer than" in str(error)
