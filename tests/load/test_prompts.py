"""Prompts: exact, repeatable, and never the same twice."""

from __future__ import annotations

import pickle
from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweeper.errors import EngineError
from sweeper.load.prompts import (
    HEADER_UNITS,
    PromptSource,
    PromptWriter,
    read_data,
    sentences,
    sentences_sha256,
    tokenize_bank,
)
from tests.load.stub import API_KEY, Dials, running, tokens_of

BANK = [tokens_of(sentence) for sentence in sentences()]


def test_the_bank_is_varied_and_has_no_doubles() -> None:
    bank = sentences()
    assert len(bank) >= 80 and len(set(bank)) == len(bank)
    assert any("\u4e00" <= letter <= "\u9fff" for sentence in bank for letter in sentence)


@given(n=st.integers(1, 30), tokens=st.integers(1, 400), seed=st.integers(0, 9), stream=st.text())
def test_prompts_are_exact_and_a_function_of_seed_and_stream(
    n: int, tokens: int, seed: int, stream: str
) -> None:
    prompts = PromptSource(BANK, seed).prompts(n, tokens, stream)
    assert [len(prompt) for prompt in prompts] == [tokens] * n
    assert prompts == PromptSource(BANK, seed).prompts(n, tokens, stream)


def test_no_header_repeats_over_levels_and_trials() -> None:
    source = PromptSource(BANK, 1)
    names = [f"trial-{trial}/c{level}" for trial in range(5) for level in (1, 8, 32)]
    headers = [
        tuple(prompt[:HEADER_UNITS]) for name in names for prompt in source.prompts(100, 32, name)
    ]
    assert len(set(headers)) == len(headers)


def test_another_seed_gives_other_prompts() -> None:
    assert PromptSource(BANK, 1).prompts(3, 50, "s") != PromptSource(BANK, 2).prompts(3, 50, "s")


@given(lengths=st.lists(st.integers(1, 200), min_size=1, max_size=20), stream=st.text())
def test_a_writer_gives_each_prompt_a_length_of_its_own(lengths: list[int], stream: str) -> None:
    writer = PromptSource(BANK, 1).writer(stream)
    assert [len(writer.units(length)) for length in lengths] == lengths


@given(name=st.text(), tokens=st.integers(1, 100), more=st.integers(0, 100), stream=st.text())
def test_a_passage_is_known_by_its_name_and_in_no_stream(
    name: str, tokens: int, more: int, stream: str
) -> None:
    source = PromptSource(BANK, 1)
    passage = source.passage("prefix", name, 3, tokens=tokens)
    assert source.passage("prefix", name, 3, tokens=tokens + more)[:tokens] == passage
    assert PromptSource(BANK, 1).passage("prefix", name, 3, tokens=tokens) == passage
    if tokens >= HEADER_UNITS:
        assert passage != source.passage("prefix", name, 4, tokens=tokens)
        assert passage not in source.prompts(3, tokens, stream)


def test_names_that_look_alike_when_joined_are_different() -> None:
    source = PromptSource(BANK, 1)
    assert source.passage("a", "b/c", tokens=20) != source.passage("a/b", "c", tokens=20)


def test_memory_stays_flat_over_many_requests() -> None:
    writer = PromptSource(BANK, 1).writer("s")
    for _ in range(100):
        writer.units(10)
    before_bytes = _held_bytes(writer)
    for _ in range(5000):
        writer.units(10)
    assert _held_bytes(writer) <= before_bytes + 1000


def _held_bytes(writer: PromptWriter) -> int:
    return len(pickle.dumps(writer))


def test_a_change_of_the_sentences_is_a_change_of_version() -> None:
    assert sentences_sha256() == sha256(read_data("sentences.txt")).hexdigest()
    with pytest.raises(FileNotFoundError):
        read_data("no.txt")


def test_prompts_of_one_token_do_not_hang_when_headers_run_out() -> None:
    assert len(PromptSource([[1, 2]], 1).prompts(10, 1, "s")) == 10


@pytest.mark.parametrize("bank", [[], [[1], []]])
def test_an_empty_bank_is_refused(bank: list[list[int]]) -> None:
    with pytest.raises(ValueError, match="bank"):
        PromptSource(bank, 1)


def test_the_bank_is_tokenized_by_the_server() -> None:
    with running() as stub:
        bank = tokenize_bank(stub.base_url, "stub", API_KEY)
    assert bank == BANK
    assert PromptSource(bank, 1).exact


@pytest.mark.parametrize("status", [404, 405])
def test_a_server_without_tokenize_is_sent_text(status: int) -> None:
    with running(Dials(tokenize_status=status)) as stub:
        source = PromptSource(tokenize_bank(stub.base_url, "stub", API_KEY), 1)
        assert len(stub.paths) == 1
    (prompt,) = source.prompts(1, 40, "s")
    assert not source.exact
    assert isinstance(prompt, str) and len(prompt.split()) == 40


def test_a_tokenize_that_fails_is_an_error_with_a_remedy() -> None:
    with (
        running(Dials(tokenize_status=500)) as stub,
        pytest.raises(EngineError, match="500") as caught,
    ):
        tokenize_bank(stub.base_url, "stub", API_KEY)
    assert caught.value.remedy
