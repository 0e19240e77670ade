"""The space of a list of deployments: every one of them is a canonical member of it."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from sweeper.engine.replay.derived import derived_space
from sweeper.space.canonical import as_raw, baseline, canonical
from sweeper.space.parse import parse_space

BRANCHES: list[dict[str, Any]] = [
    {"max_num_seqs": 8},
    {"max_num_seqs": 16},
    {"max_num_seqs": 8, "speculative": "ngram", "num_speculative_tokens": 2},
    {"max_num_seqs": 16, "speculative": "ngram", "num_speculative_tokens": 4},
]


def test_what_is_given_with_some_value_of_another_is_a_branch() -> None:
    space = derived_space(BRANCHES, BRANCHES[1])
    assert space.parameters["num_speculative_tokens"] == {
        "choices": [2, 4],
        "required": True,
        "default": 2,
        "when": {"speculative": ["ngram"]},
    }
    assert space.parameters["speculative"] == {"choices": ["default", "ngram"], "required": False}
    assert space.parameters["max_num_seqs"]["default"] == 16


def test_what_all_share_is_fixed_and_what_one_alone_has_explains_nothing() -> None:
    alike = [{**one, "enforce_eager": True} for one in BRANCHES]
    alike[3] = {**alike[3], "block_size": 32}
    space = derived_space(alike, alike[0])
    assert space.fixed == {"enforce_eager": True}
    assert space.parameters["block_size"] == {"choices": ["default", 32], "required": False}


def test_a_closed_branch_opens_no_other() -> None:
    """`c` is there where `b` is not, and `b` only below `a`: that it is absent says two things."""
    deployments: list[dict[str, Any]] = [
        {"flag.a": 1, "flag.b": 1},
        {"flag.a": 1, "flag.b": 2},
        {"flag.a": 2, "flag.c": 1},
        {"flag.a": 3, "flag.c": 2},
    ]
    space = parse_space(derived_space(deployments, deployments[0]))
    assert all(canonical(space, as_raw(space, one)) == one for one in deployments)


NAMES = ("max_num_seqs", "flag.a", "flag.b", "quantization", "env.C")
deployment = st.dictionaries(st.sampled_from(NAMES), st.integers(1, 4), max_size=len(NAMES))


@given(st.lists(deployment, min_size=1, max_size=12))
def test_every_deployment_is_a_canonical_member(deployments: list[dict[str, int]]) -> None:
    words = [
        {name: f"w{value}" if name == "quantization" else value for name, value in one.items()}
        for one in deployments
    ]
    space = parse_space(derived_space(words, words[0]))
    for one in words:
        assert canonical(space, as_raw(space, one)) == dict(sorted(one.items()))


@given(st.lists(st.integers(1, 50), min_size=2, max_size=8, unique=True))
def test_the_baseline_is_where_the_space_begins(values: list[int]) -> None:
    deployments = [{"max_num_seqs": value} for value in values]
    space = parse_space(derived_space(deployments, deployments[-1]))
    assert canonical(space, baseline(space)) == deployments[-1]
