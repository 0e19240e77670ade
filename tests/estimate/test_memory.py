"""Memory against figures known from elsewhere."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from sweeper.estimate.facts import Context
from sweeper.estimate.memory import (
    DOES_NOT_FIT,
    FITS,
    GIB,
    UNCERTAIN,
    kv_bytes_per_token,
    memory_estimate,
    parameter_count,
)
from sweeper.estimate.weights import QuantizedWeights
from sweeper.models.facts import ModelFacts
from tests.estimate.facts import H100, QWEN3, QWEN7B, SMOLLM2, T4


def test_a_checkpoint_is_counted_by_its_bits_and_not_by_its_name() -> None:
    def weights_gib(name: str, **shape: Any) -> float:
        weights = QuantizedWeights(name, **shape)
        return memory_estimate({"quantization": name}, QWEN7B, H100, weights).weights_gib

    assert weights_gib("mine", bits=4) == pytest.approx(weights_gib("w8x", bits=4))
    assert weights_gib("mine", bits=8) > weights_gib("mine", bits=4)
    # 16-bit scales of groups of 128 are an eighth of a bit more a weight; zero points come on top.
    grouped = weights_gib("mine", bits=4, group_size=128)
    share = (grouped - weights_gib("mine", bits=4)) / (
        weights_gib("mine", bits=8) - weights_gib("mine", bits=4)
    )
    assert share == pytest.approx(16 / 128 / 4)
    assert weights_gib("mine", bits=4, group_size=128, symmetric=False) > grouped
    assert weights_gib("mine", bits=4, group_size=32) > grouped


@pytest.mark.parametrize(("facts", "billions"), [(QWEN7B, 7.62), (QWEN3, 8.19), (SMOLLM2, 0.1345)])
def test_parameters_from_the_shape_match_the_published_count(
    facts: ModelFacts, billions: float
) -> None:
    assert parameter_count(facts) / 1e9 == pytest.approx(billions, rel=0.005)


def test_kv_cache_of_a_token() -> None:
    def bytes_of(**parameters: object) -> float:
        return kv_bytes_per_token(QWEN7B, Context(parameters, QWEN7B, None, None, None, 0))

    assert bytes_of() == 2 * 28 * 4 * 128 * 2  # 56 KiB
    assert bytes_of(kv_cache_dtype="fp8") == bytes_of() / 2
    assert bytes_of(tensor_parallel_size=4) == bytes_of() / 4
    assert bytes_of(tensor_parallel_size=8) == bytes_of() / 4  # heads are copied, not split further
    assert bytes_of(pipeline_parallel_size=2) == bytes_of() / 2


def test_a_compressed_cache_is_one_vector_a_token_on_every_device() -> None:
    latent = replace(QWEN7B, latent_width=576)
    for tp in (1, 4):
        context = Context({"tensor_parallel_size": tp}, latent, None, None, None, 0)
        assert kv_bytes_per_token(latent, context) == 28 * 576 * 2


def test_weights_shrink_with_precision_and_ranks() -> None:
    plain = memory_estimate({}, QWEN7B, H100)
    assert plain.weights_gib == pytest.approx(7.615e9 * 2 / GIB, rel=0.01)
    half = memory_estimate({"tensor_parallel_size": 2}, QWEN7B, H100)
    assert half.weights_gib == pytest.approx(plain.weights_gib / 2)
    eight = memory_estimate({"quantization": "fp8_per_tensor"}, QWEN7B, H100)
    four = memory_estimate({"quantization": "awq"}, QWEN7B, H100)
    assert plain.weights_gib / 2 < eight.weights_gib < plain.weights_gib  # embeddings stay
    assert plain.weights_gib / 4 < four.weights_gib < eight.weights_gib
    wide = memory_estimate({"dtype": "float32"}, QWEN7B, H100)
    assert wide.weights_gib == pytest.approx(plain.weights_gib * 2)


def test_verdicts() -> None:
    assert memory_estimate({}, QWEN7B, H100).verdict == FITS
    none_left = memory_estimate({}, QWEN3, T4)
    assert none_left.verdict == DOES_NOT_FIT
    assert (none_left.available_kv_gib, none_left.kv_tokens) == (0.0, 0)
    assert none_left.margin_gib < 0
    tight = replace(H100, memory_gib=17.0)
    assert memory_estimate({}, QWEN7B, tight).verdict == UNCERTAIN


def test_a_lower_share_leaves_less() -> None:
    more, less = (
        memory_estimate({"gpu_memory_utilization": share}, QWEN7B, H100) for share in (0.9, 0.5)
    )
    assert more.available_kv_gib - less.available_kv_gib == pytest.approx(0.4 * 79.6)
