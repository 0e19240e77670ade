"""Prompts of a group begin alike, in all streams, and end differently."""

from __future__ import annotations

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.load.workload.common import take, workload


@settings(max_examples=30)
@given(
    prefix_tokens=st.integers(1, 200),
    own_tokens=st.integers(9, 100),
    groups=st.integers(1, 6),
    seed=st.integers(0, 9),
)
def test_there_are_so_many_beginnings_and_no_end_twice(
    prefix_tokens: int, own_tokens: int, groups: int, seed: int
) -> None:
    work = workload(
        "shared_prefix",
        seed=seed,
        input_tokens=prefix_tokens + own_tokens,
        prefix_tokens=prefix_tokens,
        prefix_groups=groups,
    )
    assert work.exact and work.shares_prefix
    prompts = [i.prompt for stream in ("a", "b") for i in take(work, 60, stream)]
    assert {len(prompt) for prompt in prompts} == {prefix_tokens + own_tokens}
    assert len({tuple(prompt[:prefix_tokens]) for prompt in prompts}) <= groups
    assert len({tuple(prompt[prefix_tokens:]) for prompt in prompts}) == len(prompts)


def test_groups_are_used_evenly_and_are_the_same_for_every_stream() -> None:
    work = workload("shared_prefix", input_tokens=64, prefix_tokens=48, prefix_groups=4)
    one = Counter(tuple(item.prompt[:48]) for item in take(work, 400, "a"))
    assert len(one) == 4 and min(one.values()) > 60
    assert set(one) == {tuple(item.prompt[:48]) for item in take(work, 400, "b")}


def test_with_lengths_that_vary_each_prompt_has_a_part_of_its_own() -> None:
    work = workload(
        "shared_prefix",
        input_tokens=100,
        prefix_tokens=80,
        length_distribution="lognormal",
        input_spread=1.0,
    )
    lengths = [len(item.prompt) for item in take(work, 2000)]
    assert min(lengths) > 80 and max(lengths) <= 400
    assert 95 < sum(lengths) / len(lengths) < 110


def test_text_prefixes_are_kept_word_for_word() -> None:
    work = workload("shared_prefix", text=True, input_tokens=40, prefix_tokens=30)
    one, other = (str(item.prompt).split() for item in take(work, 2))
    assert one[:30] == other[:30] and one[30:] != other[30:] and len(one) == 40
