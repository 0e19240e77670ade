"""Shapes of a line in a prompt file, and what is said of those that are none."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweeper.load.workload.entries import Entry, EntryError, entry

READ = [
    ({"prompt": "Hello"}, Entry("Hello", None)),
    ({"prompt": [1, 2, 3], "output_tokens": 9}, Entry([1, 2, 3], 9)),
    ({"prompt": "Hello", "max_tokens": 7}, Entry("Hello", 7)),
    ({"prompt": "Hello", "output_len": 8, "id": "x"}, Entry("Hello", 8)),
    ({"prompt": "Hello", "output_tokens": None}, Entry("Hello", None)),
    ({"question": "Why?"}, Entry("Why?", None)),
    (
        {
            "messages": [
                {"role": "system", "content": "Be brief."},
                {"role": "user", "content": "Hi"},
            ]
        },
        Entry("system: Be brief.\n\nuser: Hi\n\nassistant:", None),
    ),
    (
        {"messages": [{"role": "user", "content": [{"type": "text", "text": "Hi"}]}]},
        Entry("user: Hi\n\nassistant:", None),
    ),
    (
        {"custom_id": "1", "url": "/v1/completions", "body": {"prompt": "Hi", "max_tokens": 5}},
        Entry("Hi", 5),
    ),
    (
        {
            "conversations": [
                {"from": "gpt", "value": "Welcome."},
                {"from": "human", "value": "First"},
                {"from": "gpt", "value": "one two three"},
                {"from": "human", "value": "Second"},
            ]
        },
        Entry("First", None),
    ),
    ({"conversations": [{"from": "gpt", "value": "Alone."}]}, None),
    ({"conversations": []}, None),
]


@pytest.mark.parametrize(("line", "expected"), READ)
def test_known_shapes_are_read(line: dict[str, Any], expected: Entry | None) -> None:
    assert entry(line) == expected


REFUSED = [
    ("Hello", "text, not an object"),
    (["Hello"], "a list, not an object"),
    (3, "a number, not an object"),
    ({"text": "Hello"}, "has none of 'prompt'.* it has 'text'"),
    ({}, "it has nothing"),
    ({"prompt": ""}, "empty"),
    ({"prompt": None}, "null, not text"),
    ({"prompt": 5}, "a number, not text"),
    ({"prompt": []}, "not of token ids"),
    ({"prompt": [1, "a"]}, "not of token ids"),
    ({"prompt": [1, True]}, "not of token ids"),
    ({"prompt": [-1]}, "not of token ids"),
    ({"prompt": "Hi", "output_tokens": "12"}, "output_tokens"),
    ({"prompt": "Hi", "max_tokens": 0}, "max_tokens"),
    ({"prompt": "Hi", "output_len": True}, "output_len"),
    ({"messages": []}, "messages"),
    ({"messages": [{"content": "Hi"}]}, "'role'"),
    ({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}, "images"),
    ({"messages": [{"role": "user", "content": None}]}, "content"),
    ({"conversations": "none"}, "list of turns"),
    ({"conversations": [{"from": "human"}]}, "'value'"),
    ({"conversations": [{"value": "Hi"}]}, "'from'"),
]


@pytest.mark.parametrize(("line", "reason"), REFUSED)
def test_what_is_no_request_is_refused_with_a_reason(line: Any, reason: str) -> None:
    with pytest.raises(EntryError, match=reason):
        entry(line)


def test_a_format_that_was_named_is_the_only_one() -> None:
    with pytest.raises(EntryError, match="none of 'conversations'"):
        entry({"prompt": "Hi"}, only="conversations")


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=8,
)


@given(
    st.dictionaries(
        st.sampled_from(["prompt", "messages", "conversations", "max_tokens", "body", "x"]),
        json_values,
    )
)
def test_any_line_is_read_or_refused_and_never_fails_otherwise(line: dict[str, Any]) -> None:
    try:
        found = entry(line)
    except EntryError:
        return
    assert found is None or found.prompt
