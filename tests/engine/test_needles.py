"""Fixed words of a pattern: what is skipped for want of one could not have matched."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sweeper.engine.needles import Index, Quick, needles
from sweeper.engine.vllm.diagnosis import RULES
from tests.engine.vllm.error_texts import TEXTS


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        (r"head size \((?P<size>\d+)\) is bad|^Killed\b", ("head size (", "Killed")),
        (r"abcdef?ghi", ("abcde",)),
        (r"a{2,3}bcdef", ("bcdef",)),
        (r"(?:no|one) of these|long words", (" of these", "long words")),
        (r"[Aa]ddress already", ("ddress already",)),
        (r"ab|long words", ()),
        (r"(?i)long words", ()),
        (r"(?P<all>long words)", ()),
        (r"with[^]x]class \d words", ("class ",)),
        (r"one\.two\|three", ("one.two|three",)),
    ],
)
def test_words_are_read_off_a_pattern(pattern: str, words: tuple[str, ...]) -> None:
    assert needles(pattern) == words


def test_every_rule_has_needles() -> None:
    assert not [rule.name for rule in RULES if not needles(rule.pattern.pattern)]


def test_the_index_leaves_out_none_that_matches() -> None:
    patterns = [rule.pattern for rule in RULES]
    index = Index(patterns)
    for text in TEXTS:
        matching = [n for n, pattern in enumerate(patterns) if pattern.search(text.said)]
        assert matching and set(matching) <= set(index.candidates(text.said))
    assert index.candidates("") == []
    assert Index([re.compile("(?i)ab")]).candidates("x") == [0]


PARTS = st.sampled_from(["abc", "de", "f?", "g+", "(?:hij|k)", "[lm]", r"\d", r"\(", "nop", "q{2}"])
PATTERN = st.lists(st.lists(PARTS, min_size=1, max_size=4).map("".join), min_size=1, max_size=3)


@settings(max_examples=100, deadline=None)
@given(PATTERN.map("|".join), st.text("abcdefghijklmnopq(7", max_size=30))
def test_a_quick_expression_finds_what_the_plain_one_finds(pattern: str, text: str) -> None:
    plain, quick = re.compile(pattern).search(text), Quick(pattern).search(text)
    assert (plain is None) == (quick is None)
    assert plain is None or Index([re.compile(pattern)]).candidates(text) == [0]


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_what_a_pattern_makes_is_never_skipped(data: st.DataObject) -> None:
    pattern = data.draw(PATTERN.map("|".join))
    text = data.draw(st.from_regex(pattern))
    assert Quick(pattern).search(text) is not None
