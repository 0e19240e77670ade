"""Deployments as the simulator's configuration: vLLM's defaults, sizes, precisions, loads."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweeper.estimate.simulator.ask import batch_defaults, to_config
from sweeper.estimate.simulator.modelled import UnmodelledError
from sweeper.estimate.simulator.systems import system_of
from sweeper.estimate.weights import FP8, INT8, QuantizedWeights
from tests.estimate.simulator.conftest import ask

MOE = {"architectures": ["Qwen3MoeForCausalLM"], "num_experts": 128}


def worker(parameters: dict[str, Any] | None = None, **changes: Any) -> dict[str, Any]:
    config = to_config(ask(parameters, **changes))
    found: dict[str, Any] = config["engine"]["workers"]["aggregated"]
    return found


def test_what_is_left_open_is_vllms_own_default_on_that_gpu() -> None:
    found = worker()
    assert found["scheduler"] == {"max_sequences": 1024, "max_batched_tokens": 8192}
    assert found["kv_cache"]["capacity"]["memory_fraction"] == 0.92
    assert found["timing"] == {}


@pytest.mark.parametrize(
    ("hardware", "defaults"),
    [("b200", (1024, 16384)), ("h100_80gb", (1024, 8192)), ("a100_80gb", (256, 2048)),
     ("l40s", (256, 2048))],
)  # fmt: skip
def test_batch_defaults_follow_the_gpu(hardware: str, defaults: tuple[int, int]) -> None:
    assert batch_defaults(system_of(hardware)) == defaults


def test_flags_reach_the_simulator() -> None:
    found = worker(
        {
            "max_num_seqs": 64,
            "max_num_batched_tokens": 2048,
            "gpu_memory_utilization": 0.8,
            "kv_cache_dtype": "fp8",
            "quantization": "fp8_per_tensor",
            "tensor_parallel_size": 2,
            "data_parallel_size": 2,
            "enable_prefix_caching": False,
        }
    )
    assert found["scheduler"] == {"max_sequences": 64, "max_batched_tokens": 2048}
    assert found["kv_cache"]["capacity"]["memory_fraction"] == 0.8
    assert found["kv_cache"]["prefix_caching"] is False
    assert found["timing"] == {"gemm_quant_mode": "fp8", "kvcache_quant_mode": "fp8"}
    assert found["parallelism"] == {"tensor": 2, "pipeline": 1, "replicas": 2}


def test_experts_are_shared_by_all_replicas() -> None:
    sizes = {"tensor_parallel_size": 2, "data_parallel_size": 4}
    plain = worker(sizes, model_config=MOE)["parallelism"]
    assert plain == {"tensor": 2, "pipeline": 1, "attention_data": 4, "moe_tensor": 8}
    apart = worker({**sizes, "enable_expert_parallel": True}, model_config=MOE)["parallelism"]
    assert apart == {"tensor": 2, "pipeline": 1, "attention_data": 4, "moe_expert": 8}


@pytest.mark.parametrize(
    ("weights", "mode"),
    [
        (QuantizedWeights("mine", 4, 128), "int4_wo"),
        (QuantizedWeights("mine", 8), "int8_wo"),
        (QuantizedWeights("mine", 8, activations=INT8), "sq"),
        (QuantizedWeights("mine", 8, activations=FP8), "fp8"),
    ],
)
def test_a_checkpoint_is_what_its_weights_are(weights: QuantizedWeights, mode: str) -> None:
    found = worker({"quantization": "mine"}, weights=weights)
    assert found["timing"] == {"gemm_quant_mode": mode}


@pytest.mark.parametrize(
    ("parameters", "weights", "named"),
    [
        ({"quantization": "mine"}, QuantizedWeights("mine", 4, 128, activations=INT8), "mine"),
        ({"quantization": "gguf"}, None, "gguf"),
        ({"kv_cache_dtype": "nvfp4"}, None, "nvfp4"),
        ({"speculative": "eagle"}, None, "eagle"),
    ],
)
def test_what_was_never_timed_is_refused(
    parameters: dict[str, Any], weights: QuantizedWeights | None, named: str
) -> None:
    with pytest.raises(UnmodelledError, match=named):
        to_config(ask(parameters, weights=weights))


def test_loads_are_closed_or_by_the_clock() -> None:
    def load(**changes: Any) -> dict[str, Any]:
        told: dict[str, Any] = to_config(ask(**changes))["traffic"]["load"]
        return told

    assert load() == {"type": "concurrency", "concurrency": 8}
    by_clock = {"concurrency": None, "rate_per_s": 2.5, "seed": 7}
    assert load(**by_clock) == {"type": "poisson", "requests_per_second": 2.5, "seed": 7}
    even = {"type": "constant_rate", "requests_per_second": 2.5}
    assert load(**by_clock, constant=True) == even
    with pytest.raises(ValueError, match="either"):
        ask(rate_per_s=1.0)


def test_a_prefix_is_found_only_where_it_is_cached() -> None:
    def cached(parameters: dict[str, Any]) -> int:
        source = to_config(ask(parameters, prefix_tokens=384))["traffic"]["source"]
        return int(source["cached_prefix_tokens"])

    assert cached({}) == 384
    assert cached({"enable_prefix_caching": False}) == 0


def test_drafts_are_accepted_as_the_user_says() -> None:
    drafting = {"speculative": "ngram", "num_speculative_tokens": 3}
    config = to_config(ask(drafting, ngram_acceptance=0.6))["engine"]["speculation"]
    assert config["acceptance_rates"] == [0.6, 0.6, 0.6]
    assert "speculation" not in to_config(ask())["engine"]


@given(
    st.fixed_dictionaries(
        {},
        optional={
            "max_num_seqs": st.integers(1, 4096),
            "gpu_memory_utilization": st.floats(0.1, 1.0),
            "tensor_parallel_size": st.integers(1, 8),
            "pipeline_parallel_size": st.integers(1, 4),
        },
    )
)
def test_devices_are_those_of_all_sizes(parameters: dict[str, Any]) -> None:
    asked = ask(parameters)
    sizes = to_config(asked)["engine"]["workers"]["aggregated"]["parallelism"]
    assert asked.device_count == sizes["tensor"] * sizes["pipeline"] * sizes["replicas"]
