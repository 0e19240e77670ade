"""What a deployment writes itself, beside what the reference wrote."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweeper.quality import written
from sweeper.quality.agreement import AT_ONCE, write_reference
from sweeper.quality.reference import Reference, ReferenceItem, TokenScores
from sweeper.quality.suite import load_suite
from sweeper.quality.written import WrittenText, broken, compare, is_beyond, is_stuck, repetition
from tests.load.stub import Dials, running

TOKENS = 16
OWN = tuple(range(100, 100 + TOKENS))


def reference(prompts: int = 12, ids: tuple[int, ...] = OWN) -> Reference:
    scores = TokenScores((1,) * len(ids), (-0.1,) * len(ids))
    items = [ReferenceItem(str(n), "short", (1, 2), ids, scores) for n in range(prompts)]
    return Reference("suite", "m", tuple(items))


def text(*ids: int, hits: float = 1.0) -> WrittenText:
    good = round(hits * len(ids))
    return WrittenText(ids, (True,) * good + (False,) * (len(ids) - good))


def test_the_same_text_is_no_finding() -> None:
    found = compare(reference(), [text(*OWN)] * 12)
    assert broken(found) is None
    assert (found["identical"], found["matched_prefix"], found["reads_back_change"]) == (12, 1, 0)
    assert len(set(found["digests"])) == 1


def test_paths_that_part_are_told_and_are_no_fault() -> None:
    """Rounding decides a tie, and from there on every token is another one."""
    parted = text(*OWN[:4], *range(500, 512))
    found = compare(reference(), [parted] * 12)
    assert found["identical"] == 0
    assert found["matched_prefix"] == pytest.approx(4 / 16)
    assert broken(found) is None


@pytest.mark.parametrize("loop", [(0,), (7, 8), (7, 8, 9)], ids=["!!!!", "the the", "period 3"])
def test_the_same_tokens_again_and_again_are_broken_output(loop: tuple[int, ...]) -> None:
    stuck = text(*(loop * TOKENS)[:TOKENS])
    fault = broken(compare(reference(), [stuck] * 5 + [text(*OWN)] * 7))
    assert fault is not None
    assert "again and again in 5 of 12 prompts, the reference in 0" in fault


def test_a_prompt_or_two_that_repeat_are_a_models_habit() -> None:
    stuck = text(*(0,) * TOKENS)
    assert broken(compare(reference(), [stuck] * 3 + [text(*OWN)] * 9)) is None


def test_what_the_reference_repeats_too_is_no_fault() -> None:
    looping = (3,) * TOKENS
    found = compare(reference(ids=looping), [text(*(5,) * TOKENS)] * 12)
    assert (found["stuck"], found["reference_stuck"], found["newly_stuck"]) == (12, 12, 0)
    assert broken(found) is None


def test_text_that_its_own_reading_would_not_write_is_broken_output() -> None:
    """Gibberish repeats nothing; that it was never chosen gives it away."""
    gibberish = [text(*range(n * 50, n * 50 + TOKENS), hits=0.1) for n in range(12)]
    fault = broken(compare(reference(), gibberish))
    assert fault is not None and "only 12% of the tokens" in fault and "0.88 ± 0.00" in fault
    noisy = [text(*range(n * 50, n * 50 + TOKENS), hits=0.75) for n in range(12)]
    assert broken(compare(reference(), noisy)) is None


def test_nothing_written_is_no_fault_and_one_prompt_never_is() -> None:
    assert broken({}) is None
    assert broken(compare(reference(1), [text(*range(16), hits=0.0)])) is None


@given(st.lists(st.integers(0, 5), min_size=0, max_size=40))
def test_repetition_is_a_share_and_long_texts_of_few_pairs_are_stuck(ids: list[int]) -> None:
    assert 0 <= repetition(ids) < 1
    assert is_stuck([*ids, *[9] * (8 * len(ids) + 8)])
    assert not is_stuck(list(range(len(ids))))


@pytest.mark.parametrize(
    ("more", "less", "beyond"), [(0, 0, False), (4, 0, False), (5, 0, True), (8, 2, False)]
)
def test_more_changes_than_of_themselves_must_be_more_than_chance(
    more: int, less: int, beyond: bool
) -> None:
    rest = 12 - more - less
    changes = [True] * more + [False] * less + [True] * rest
    own = [False] * more + [True] * less + [True] * rest
    assert is_beyond(changes, own) == beyond


def test_a_server_writes_several_at_once_and_reads_only_what_is_new() -> None:
    suite = load_suite(6)
    with running(Dials(slow_requests=99, slow_s=0.02)) as stub:
        made = write_reference(stub.address, suite, tokens=8, timeout_s=5.0)
        alone = stub.max_in_flight
        before = len(stub.bodies)
        texts = written.write_suite(stub.address, made, 4, timeout_s=5.0)
        asked: list[dict[str, Any]] = stub.bodies[before:]
    assert [t.ids for t in texts] == [item.reference_ids[:4] for item in made.items]
    assert len(asked) == 6, "what the reference wrote is not read again"
    assert all(isinstance(body["prompt"], list) for body in asked)
    assert alone <= AT_ONCE < stub.max_in_flight <= written.AT_ONCE


def test_no_more_is_written_than_there_is_to_compare_with() -> None:
    assert written.tokens_to_write(reference(), 64) == TOKENS
    assert written.tokens_to_write(reference(), 0) == 0
