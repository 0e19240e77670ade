"""A flag without effect is found, and two spellings of one value never count as one."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweeper.engine.comparison import Tolerance, as_number, ineffective, not_told
from sweeper.engine.vllm.tolerances import TOLERATED

VALUES = (
    st.integers(-(10**9), 10**9)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.booleans()
    | st.text("abcdefgh_-./", min_size=1, max_size=12)
)


@pytest.mark.parametrize(
    ("flag", "asked", "effective"),
    [
        ("max_num_seqs", "64", 64),
        ("max_num_seqs", 64, "64"),
        ("gpu_memory_utilization", 0.9, 0.9000000001),
        ("gpu_memory_utilization", 0.9, "0.9"),
        ("kv_cache_memory_bytes", "4g", 4 * 10**9),
        ("kv_cache_memory_bytes", "4G", 4 * 2**30),
        ("max_model_len", "1k", 1000),
        ("max_model_len", "1K", 1024),
        ("max_model_len", "25.6k", 25600),
        ("max_model_len", "auto", 8192),
        ("max_model_len", -1, 8192),
        ("max_model_len", "-1", 8192),
        ("kv_cache_dtype", "auto", "bfloat16"),
        ("kv_cache_dtype", "fp8", "fp8_e4m3"),
        ("enable_prefix_caching", "default", False),
        ("dtype", "half", "torch.float16"),
        ("dtype", "float", "float32"),
        ("dtype", "bfloat16", "torch.bfloat16"),
        ("enforce_eager", True, "True"),
        ("enforce_eager", "false", False),
        ("async_scheduling", 1, True),
        ("quantization", "awq", "awq_marlin"),
        ("quantization", "compressed-tensors", "compressed_tensors"),
        ("quantization", None, "fp8"),
        ("tokenizer", "models/smol", "/home/user/models/smol"),
        ("tokenizer", "./smol", "/models/smol"),
        ("middleware", ["a.B", "c.D"], ("a.B", "c.D")),
        ("middleware", "a.B", ["a.B"]),
        (
            "speculative_config",
            '{"method": "ngram", "num_speculative_tokens": 2}',
            {"method": "ngram", "num_speculative_tokens": 2, "prompt_lookup_max": 5},
        ),
        (
            "speculative_config",
            {"method": "deepseek_mtp", "num_speculative_tokens": 1, "prompt_lookup_min": None},
            {"method": "mtp", "num_speculative_tokens": 1},
        ),
    ],
)
def test_one_value_in_two_spellings_is_no_difference(flag: str, asked: Any, effective: Any) -> None:
    assert ineffective({flag: asked}, {flag: effective}, tolerated=TOLERATED) == {}


@pytest.mark.parametrize(
    ("flag", "asked", "effective"),
    [
        ("max_num_seqs", 64, 128),
        ("max_model_len", "1k", 1024),
        ("block_size", 16, 64),
        ("gpu_memory_utilization", 0.9, 0.92),
        ("enable_prefix_caching", True, False),
        ("enable_prefix_caching", False, "True"),
        ("enforce_eager", True, None),
        ("dtype", "float32", "torch.bfloat16"),
        ("kv_cache_dtype", "fp8", "auto"),
        ("kv_cache_dtype", "fp8_e5m2", "fp8_e4m3"),
        ("quantization", "awq", None),
        ("quantization", "awq", "gptq_marlin"),
        ("tokenizer", "models/smol", "/home/user/models/small"),
        ("middleware", ["a.B", "c.D"], ["a.B"]),
        ("speculative_config", {"method": "ngram"}, None),
        ("speculative_config", {"method": "ngram"}, {"method": "eagle"}),
        (
            "speculative_config",
            {"method": "ngram", "num_speculative_tokens": 4},
            {"method": "ngram", "num_speculative_tokens": 2},
        ),
    ],
)
def test_flag_without_effect_is_named(flag: str, asked: Any, effective: Any) -> None:
    found = ineffective({flag: asked, "seed": 3}, {flag: effective, "seed": 3}, tolerated=TOLERATED)
    assert list(found) == [flag]
    assert found[flag].startswith("asked ")
    assert ", in effect " in found[flag]


def test_answer_says_both_values() -> None:
    found = ineffective({"max_num_seqs": 64}, {"max_num_seqs": 128})
    assert found == {"max_num_seqs": "asked 64, in effect 128"}


def test_negative_form_is_the_flag_turned_round() -> None:
    asked = {"no-enable-prefix-caching": True}
    assert ineffective(asked, {"enable_prefix_caching": False}) == {}
    assert list(ineffective(asked, {"enable_prefix_caching": True})) == ["enable_prefix_caching"]


def test_what_no_source_tells_is_unknown_and_no_failure() -> None:
    asked = {"max_num_seqs": 4, "swap_space": 8, "seed": None, "dtype": "auto", "no_x": True}
    assert ineffective(asked, {"max_num_seqs": 4}) == {}
    assert not_told(asked, {"max_num_seqs": 4}) == ["swap_space", "x"]


def test_a_tolerance_is_for_its_flag_alone() -> None:
    lenient = Tolerance("block_size", "rounded up", "all", lambda a, e: e % a == 0)
    pair = {"block_size": 16, "max_num_seqs": 16}, {"block_size": 64, "max_num_seqs": 64}
    assert list(ineffective(*pair, tolerated=[lenient])) == ["max_num_seqs"]


def test_every_tolerance_says_why_and_since_when() -> None:
    assert all(entry.reason and entry.versions for entry in TOLERATED)


@given(st.dictionaries(st.text("abcdefgh", min_size=1), VALUES, max_size=6))
def test_what_was_asked_and_came_is_never_a_failure(asked: dict[str, Any]) -> None:
    assert ineffective(asked, asked) == {}
    assert ineffective(asked, {name: str(value) for name, value in asked.items()}) == {}
    assert ineffective({name: str(value) for name, value in asked.items()}, asked) == {}


@given(st.integers(2, 10**9), st.integers(2, 10**9))
def test_two_numbers_are_the_same_only_if_they_are(one: int, other: int) -> None:
    apart = abs(one - other) > 1e-6 * max(one, other)
    assert bool(ineffective({"a": one}, {"a": other})) is apart


@pytest.mark.parametrize(("text", "value"), [("2K", 2048.0), ("2k", 2000.0), ("fp8", None)])
def test_numbers_with_suffix(text: str, value: float | None) -> None:
    assert as_number(text) == value
