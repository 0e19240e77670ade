from __future__ import annotations

import numpy as np
import pytest

from sweeper.config.schema import SpaceConfig
from sweeper.search.policy.features import CATEGORY, Features
from sweeper.space.parse import parse_space

SPACE = parse_space(
    SpaceConfig(
        name="s",
        parameters={
            "max_num_batched_tokens": {"choices": ["default", 1024, 2048, 16384]},
            "gpu_memory_utilization": {"low": 0.5, "high": 0.9, "step": 0.1, "default": 0.9},
            "kv_cache_dtype": ["auto", "fp8"],
            "speculative": ["none", "ngram"],
            "num_speculative_tokens": {"choices": [1, 5], "when": {"speculative": ["ngram"]}},
        },
    )
)


def apart(one: dict[str, object], other: dict[str, object]) -> float:
    a, b = Features(SPACE).of([one, other])
    return float(np.linalg.norm(a - b))


def test_sizes_are_taken_by_their_logarithm_and_shares_as_they_are() -> None:
    near = apart({"max_num_batched_tokens": 1024}, {"max_num_batched_tokens": 2048})
    far = apart({"max_num_batched_tokens": 2048}, {"max_num_batched_tokens": 16384})
    assert (near, far) == (pytest.approx(1 / 4), pytest.approx(3 / 4))
    assert apart({"gpu_memory_utilization": 0.7}, {}) == pytest.approx(0.5)


def test_words_differ_by_one_whichever_they_are() -> None:
    assert apart({"kv_cache_dtype": "fp8"}, {}) == pytest.approx(1.0)


def test_a_closed_branch_is_the_same_everywhere_and_between_its_values() -> None:
    features = Features(SPACE)
    column = [features.names[group] for group in features.groups].index("num_speculative_tokens")
    rows = features.of([{}, {"kv_cache_dtype": "fp8"}])
    assert rows[:, column].tolist() == [0.5, 0.5]
    inside = features.of([{"speculative": "ngram", "num_speculative_tokens": 5}])
    assert inside[0, column] == 1.0


def test_what_the_engine_takes_by_itself_lies_beside_its_number() -> None:
    told = Features(SPACE, {"max_num_batched_tokens": 2048.0})
    left_out, given, other = told.of(
        [{}, {"max_num_batched_tokens": 2048}, {"max_num_batched_tokens": 16384}]
    )
    assert 0 < np.linalg.norm(left_out - given) < np.linalg.norm(left_out - other)


def test_one_parameter_is_changed_alone() -> None:
    features = Features(SPACE)
    before = features.of([{}])
    after = features.with_value(before, "kv_cache_dtype", "fp8")
    assert after == pytest.approx(features.of([{"kv_cache_dtype": "fp8"}]))
    assert CATEGORY in before[0]
