"""Counts guessed without a tokenizer: low ones below likely ones, Chinese by its characters."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sweeper.load.workload.estimate import estimated_tokens, fewest_tokens


@given(st.text(max_size=200))
def test_the_fewest_are_not_above_the_likely(text: str) -> None:
    assert 1 <= fewest_tokens(text) <= max(1, estimated_tokens(text))


def test_words_and_characters() -> None:
    assert fewest_tokens("one two three") == 3
    assert fewest_tokens("春天的时候院子里的桃花") == 5
    assert estimated_tokens("one two three four five six") == 8
    assert fewest_tokens("") == 1
