"""A conversation's requests hold what was said, the model's own answers included."""

from __future__ import annotations

from itertools import pairwise

import pytest

from sweeper.load.workload.estimate import estimated_tokens
from sweeper.load.workload.item import WorkItem
from tests.load.stub import tokens_of
from tests.load.workload.common import take, workload


def spoken(first: WorkItem, answer: str = " I see.") -> list[WorkItem]:
    """All requests of a conversation in which the model always says the same."""
    turns = [first]
    while turns[-1].next_turn is not None:
        turns.append(turns[-1].next_turn(answer))
    return turns


def test_each_turn_goes_on_from_all_that_was_said() -> None:
    work = workload("conversation", turns=4, input_tokens=40, think_time_s=1.5)
    for first in take(work, 5):
        turns = spoken(first)
        assert [item.turn for item in turns] == [0, 1, 2, 3]
        assert [item.think_time_s for item in turns] == [1.5, 1.5, 1.5, 0.0]
        for earlier, later in pairwise(turns):
            assert str(later.prompt).startswith(f"{earlier.prompt} I see.\n\nUser: ")
            assert str(later.prompt).endswith("\nAssistant:")


def test_turns_do_not_depend_on_the_order_in_which_they_are_asked_for() -> None:
    work = workload("conversation", turns=3)
    one, other = take(work, 2)
    in_turn = [spoken(one), spoken(other)]
    assert one.next_turn and other.next_turn
    late = [other.next_turn(" I see."), one.next_turn(" I see.")]
    assert [late[1].prompt, late[0].prompt] == [turns[1].prompt for turns in in_turn]


def test_conversations_open_differently_and_share_no_text() -> None:
    work = workload("conversation", turns=2, input_tokens=200)
    items = [i for stream in ("a", "b") for i in take(work, 200, stream)]
    assert len({str(item.prompt)[:24] for item in items}) == 400
    assert work.shares_prefix and not work.exact


@pytest.mark.parametrize("text", [False, True])
@pytest.mark.parametrize("tokens", [40, 300])
def test_each_user_says_about_as_much_as_asked_for(text: bool, tokens: int) -> None:
    work = workload("conversation", turns=2, input_tokens=tokens, text=text)
    count = estimated_tokens if text else lambda said: len(tokens_of(said))
    sizes = [count(str(item.prompt)) for item in take(work, 100)]
    opening = 20  # the stub counts the number that opens a conversation as one word
    assert sum(sizes) / len(sizes) == pytest.approx(tokens, abs=opening + 0.05 * tokens)


def test_output_lengths_are_drawn_for_every_turn() -> None:
    work = workload("conversation", turns=6, length_distribution="lognormal", output_spread=1.0)
    (first,) = take(work, 1)
    assert len({item.output_tokens for item in spoken(first)}) > 3
