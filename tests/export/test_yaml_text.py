from __future__ import annotations

from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from sweeper.export.yaml_text import Block, comments, dump, line
from tests.export.readers import documents

texts = st.text(st.characters(exclude_categories=("Cs",)), max_size=20)


@given(
    st.dictionaries(texts, st.one_of(texts, st.integers(), st.booleans(), st.none()), max_size=4)
)
def test_both_families_of_readers_read_what_was_written(data: dict[str, Any]) -> None:
    assert documents(dump(data)) == [data]


@pytest.mark.parametrize("word", ["y", "No", "ON", "1e3", "0o17", "12", "1.5", "null", "~", ".nan"])
def test_words_that_readers_take_for_something_else_are_quoted(word: str) -> None:
    assert dump({"a": word}) == f'a: "{word}"\n'


@pytest.mark.parametrize("word", ["org/model-7B", "vllm/vllm-openai:v0.32.0", "/data/x", "fp8"])
def test_plain_words_are_left_bare(word: str) -> None:
    assert dump({"a": word}) == f"a: {word}\n"


@given(st.lists(texts, max_size=4).map("\n".join))
def test_a_block_keeps_its_text(text: str) -> None:
    assert documents(dump({"a": Block(text)})) == [{"a": text}]


def test_lines_of_plain_text_are_shown_as_lines() -> None:
    assert dump({"a": Block("x: 1\ny: 2\n")}) == "a: |\n  x: 1\n  y: 2\n"


def test_what_occurs_twice_is_written_twice() -> None:
    same = ["x"]
    assert "&" not in dump({"a": same, "b": same})


def test_several_documents_are_marked() -> None:
    assert dump({"a": 1}, {"b": 2}) == "---\na: 1\n---\nb: 2\n"


@given(texts)
def test_a_comment_is_one_paragraph_of_comment(text: str) -> None:
    written = comments([text])
    assert yaml.safe_load(written) is None
    assert all(row.startswith("#") for row in written.splitlines())


def test_long_comments_are_wrapped_and_marked_as_going_on() -> None:
    first, *rest = comments(["word " * 40]).splitlines()
    assert len(first) <= 100
    assert rest and all(row.startswith("#   word") for row in rest)


def test_a_comment_shows_no_secret() -> None:
    assert "hunter2hunter2" not in line("postgresql://user:hunter2hunter2@host/db")
