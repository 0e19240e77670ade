"""The key changes with what can change the output, and with nothing else."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweeper.quality.key import _SPEED_ONLY, drafting, quality_key

BASE: dict[str, Any] = {"quantization": "fp8", "max_num_seqs": 8}


def key(parameters: dict[str, Any], dtype: str | None = None) -> str:
    return quality_key(parameters, "vllm 1", dtype, "sha256:ab")


@pytest.mark.parametrize(
    "change",
    [
        {"max_num_seqs": 512},
        {"max_num_batched_tokens": 4096},
        {"gpu_memory_utilization": 0.5},
        {"enable_prefix_caching": False},
        {"enable_chunked_prefill": False},
        {"speculative": "ngram", "num_speculative_tokens": 3, "prompt_lookup_max": 4},
        {"data_parallel_size": 2},
        {"flag.scheduling_policy": "priority"},
        {"kv_cache_dtype": "auto"},
        {"tensor_parallel_size": 1},
        {"enforce_eager": False},
        {"dtype": "auto"},
    ],
)
def test_speed_and_memory_do_not_count(change: dict[str, Any]) -> None:
    assert key(BASE | change) == key(BASE)


@pytest.mark.parametrize(
    "change",
    [
        {"quantization": "awq"},
        {"quantization": "none"},
        {"kv_cache_dtype": "fp8"},
        {"dtype": "float16"},
        {"tensor_parallel_size": 2},
        {"pipeline_parallel_size": 2},
        {"enforce_eager": True},
        {"max_model_len": 4096},
        {"flag.attention_backend": "FLASHINFER"},
        {"env.VLLM_ATTENTION_BACKEND": "FLASHINFER"},
        {"flag.made_up_yesterday": 1},
    ],
)
def test_what_can_change_the_output_counts(change: dict[str, Any]) -> None:
    assert key(BASE | change) != key(BASE)


def test_engine_model_and_dtype_count() -> None:
    keys = {
        quality_key(BASE, "vllm 1", None, "a"),
        quality_key(BASE, "vllm 2", None, "a"),
        quality_key(BASE, "vllm 1", "float16", "a"),
        quality_key(BASE, "vllm 1", None, "b"),
        quality_key(BASE, "vllm 1", None, None),
    }
    assert len(keys) == 5


def test_a_dtype_is_one_wherever_it_is_said() -> None:
    assert key(BASE, dtype="float16") == key(BASE | {"dtype": "float16"})
    assert key(BASE, dtype="auto") == key(BASE)
    assert key(BASE | {"dtype": "bfloat16"}, "float16") == key(BASE | {"dtype": "bfloat16"})


def test_the_order_of_parameters_does_not_count() -> None:
    assert key({"quantization": "fp8", "dtype": "half"}) == key(
        {"dtype": "half", "quantization": "fp8"}
    )


VALUES = st.one_of(st.integers(0, 4096), st.floats(0, 1), st.booleans(), st.text(max_size=6))
OUTPUT = st.dictionaries(
    st.sampled_from(["quantization", "kv_cache_dtype", "dtype", "flag.attention_backend"]),
    st.sampled_from(["fp8", "awq", "float16", "FLASHINFER"]),
)
SCHEDULING = st.dictionaries(st.sampled_from(sorted(_SPEED_ONLY)), VALUES)


@given(OUTPUT, SCHEDULING, SCHEDULING)
def test_scheduling_never_changes_the_key(
    output: dict[str, Any], one: dict[str, Any], other: dict[str, Any]
) -> None:
    assert key(output | one) == key(output | other) == key(output)


@given(OUTPUT, OUTPUT, SCHEDULING)
def test_two_outputs_never_share_a_key(
    one: dict[str, Any], other: dict[str, Any], scheduling: dict[str, Any]
) -> None:
    assert (key(one | scheduling) == key(other | scheduling)) == (one == other)


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ({}, ""),
        ({"speculative": "none", "num_speculative_tokens": 3}, ""),
        ({"speculative": "ngram", "num_speculative_tokens": 3}, "speculative=ngram"),
        ({"speculative": "eagle", "speculative_model": "e"}, "speculative=eagle (e)"),
    ],
)
def test_drafting_is_named_by_method_and_model(parameters: dict[str, Any], said: str) -> None:
    assert drafting(parameters) == said
