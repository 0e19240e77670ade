"""Synthetic prompts: of the length asked for, and never the same beginning twice."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from sweeper.load.prompts import HEADER_UNITS
from tests.load.workload.common import take, workload


@settings(max_examples=30)
@given(
    kind=st.sampled_from(["fixed", "uniform", "normal", "lognormal"]),
    input_tokens=st.integers(1, 300),
    seed=st.integers(0, 9),
    stream=st.text(max_size=20),
)
def test_prompts_have_the_length_they_say(
    kind: str, input_tokens: int, seed: int, stream: str
) -> None:
    spread = 0.0 if kind == "fixed" else 0.5
    work = workload(
        "synthetic",
        seed=seed,
        input_tokens=input_tokens,
        length_distribution=kind,
        input_spread=spread,
    )
    for item in take(work, 20, stream):
        assert item.input_tokens == len(item.prompt) >= 1
        assert kind != "fixed" or len(item.prompt) == input_tokens
        assert item.next_turn is None and item.at_s is None


def test_no_first_block_repeats_over_levels_and_trials() -> None:
    work = workload("synthetic", length_distribution="lognormal", input_spread=1.0)
    names = [f"trial-{trial}/c{level}" for trial in range(3) for level in (1, 8, 32)]
    items = [item for name in names for item in take(work, 200, name)]
    long_enough = [item for item in items if len(item.prompt) >= HEADER_UNITS]
    assert len({tuple(item.prompt[:HEADER_UNITS]) for item in long_enough}) == len(long_enough)


def test_where_the_server_does_not_tokenize_lengths_are_words() -> None:
    work = workload("synthetic", text=True, input_tokens=60)
    assert not work.exact and work.conditions["prompts"] == "text"
    (item,) = take(work, 1)
    assert isinstance(item.prompt, str) and len(item.prompt.split()) == 60
    assert item.input_tokens is None
