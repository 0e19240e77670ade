from __future__ import annotations

from typing import Any

import pytest

from sweeper.search.bounds import at_fault


@pytest.mark.parametrize(
    ("text", "deployment", "said"),
    [
        ("--performance-mode throughput", {"flag.performance_mode": "x"},
         ["flag.performance_mode set"]),
        ("--performance-mode=throughput", {"flag.performance_mode": "x"},
         ["flag.performance_mode set"]),
        ("--a 1 --b 2", {"flag.a": 1, "flag.b": 2, "flag.c": 3}, ["flag.a set", "flag.b set"]),
        ("performance_mode", {"flag.performance_mode": "x"}, ["flag.performance_mode set"]),
        # That the one side of a switch is not known says nothing of the other.
        ("--no-enable-prefix-caching", {"enable_prefix_caching": False},
         ["enable_prefix_caching=False"]),
        ("--speculative-config {}", {"speculative": "ngram", "num_speculative_tokens": 2},
         ["speculative set"]),
        ("--max-num-seqs 3", {"quantization": "fp8"}, []),
        ("", {"quantization": "fp8"}, []),
    ],
)  # fmt: skip
def test_unknown_flags_are_found_in_the_deployment(
    text: str, deployment: dict[str, Any], said: list[str]
) -> None:
    found = at_fault.unknown_flags({"unrecognized_arguments": text}, deployment)
    assert [str(limit) for limits in found for limit in limits] == said


def test_a_refused_value_is_pinned_under_the_long_name_of_its_flag() -> None:
    learnt = {"argument": "--quantization/-q", "problem": "invalid choice: 'x'"}
    (limits,) = at_fault.refused_value(learnt, {"quantization": "x", "dtype": "float16"})
    assert [str(limit) for limit in limits] == ["quantization=x"]
    assert at_fault.refused_value(learnt, {"dtype": "float16"}) == []


def test_all_values_without_effect_are_pinned_together() -> None:
    learnt = {"ineffective": {"speculative_config": "none", "block_size": "16"}}
    deployment = {
        "speculative": "ngram",
        "num_speculative_tokens": 2,
        "block_size": 32,
        "dtype": "x",
    }
    (limits,) = at_fault.without_effect(learnt, deployment)
    assert {limit.parameter for limit in limits} == {
        "speculative",
        "num_speculative_tokens",
        "block_size",
    }
    assert at_fault.without_effect({}, deployment) == []
