"""The suite is fixed, balanced, and short where it is used most."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweeper.quality.suite import load_suite, suite_hash, suite_version

ROUND = 5


def test_there_are_twenty_prompts_of_every_kind() -> None:
    suite = load_suite()
    assert len(suite) == 20 and len({p.id for p in suite}) == 20
    assert {p.kind for p in suite} == {"english", "code", "chinese", "structured", "short", "long"}
    assert suite_version() == 1


@given(st.integers(1, 15))
def test_any_beginning_is_balanced_over_the_kinds(n: int) -> None:
    counts = Counter(p.kind for p in load_suite(n))
    assert len(counts) == min(n, ROUND)
    assert max(counts.values()) - min(counts.values()) <= 1


def test_long_prompts_come_last_and_the_others_are_short() -> None:
    suite = load_suite()
    assert [p.kind == "long" for p in suite] == [False] * 15 + [True] * 5
    assert max(len(p.text) for p in suite[:15]) < 200
    assert min(len(p.text) for p in suite[15:]) > 250


def test_the_hash_knows_prompts_and_order() -> None:
    suite = load_suite()
    hashes = {suite_hash(suite), suite_hash(suite[:12]), suite_hash(suite[::-1])}
    assert len(hashes) == 3
    assert suite_hash(load_suite()) == suite_hash(suite)


def test_an_empty_suite_is_refused() -> None:
    with pytest.raises(ValueError, match="0 prompts"):
        load_suite(0)
