"""Arguments read back from a running server's answers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sweeper.engine.comparison import ineffective, not_told
from sweeper.engine.vllm import flags, log_facts
from sweeper.engine.vllm.effective import from_metrics, from_server_info
from sweeper.engine.vllm.tolerances import TOLERATED

DATA = Path(__file__).parent.parent / "data"

MANY = {
    "dtype": "float32",
    "max_num_seqs": 4,
    "max_num_batched_tokens": 1024,
    "gpu_memory_utilization": 0.2,
    "max_model_len": 1024,
    "enable_prefix_caching": False,
    "enable_chunked_prefill": "default",
    "block_size": 64,
    "speculative": "ngram",
    "num_speculative_tokens": 2,
    "prompt_lookup_max": 3,
    "enforce_eager": True,
}
INT8_TWO_REPLICAS = {
    "quantization": "int8_per_channel_weight_only",
    "enable_chunked_prefill": True,
    "max_num_batched_tokens": 4096,
    "enable_prefix_caching": True,
    "seed": 7,
    "max_num_seqs": 16,
    "data_parallel_size": 2,
    "gpu_memory_utilization": 0.15,
    "max_model_len": "2k",
    "enforce_eager": True,
}


def told_by(server: str) -> dict[str, Any]:
    """What a real server told without its development mode."""
    log_text = (DATA / f"vllm_0_32_cpu_{server}.log").read_text()
    metrics = (DATA / f"vllm_0_32_cpu_{server}.metrics").read_text()
    return {**log_facts.effective(log_text), **from_metrics(metrics)}


@pytest.mark.parametrize(
    ("server", "parameters"),
    [("many_flags", MANY), ("int8_two_replicas", INT8_TWO_REPLICAS)],
)
def test_real_server_that_did_as_asked_raises_no_alarm(
    server: str, parameters: dict[str, Any]
) -> None:
    asked, _ = flags.deployment_flags(parameters)
    assert ineffective(asked, told_by(server), tolerated=TOLERATED) == {}
    assert not_told(asked, told_by(server)) == ["max_num_seqs"]


@pytest.mark.parametrize(
    ("changed", "how"),
    [
        ({"dtype": "bfloat16"}, "asked bfloat16, in effect float32"),
        ({"block_size": 32}, "asked 32, in effect 64"),
        ({"max_num_batched_tokens": 2048}, "asked 2048, in effect 1024"),
        ({"max_model_len": "2K"}, "asked 2K, in effect 1024"),
        ({"gpu_memory_utilization": 0.4}, "asked 0.4, in effect 0.2"),
        ({"enable_prefix_caching": True}, "asked True, in effect False"),
        ({"enable_chunked_prefill": False}, "asked False, in effect True"),
        ({"kv_cache_dtype": "fp8"}, "asked fp8, in effect auto"),
        ({"quantization": "int8_per_channel_weight_only"}, "in effect None"),
        ({"data_parallel_size": 2}, "asked 2, in effect 1"),
        ({"num_speculative_tokens": 4}, '"num_speculative_tokens": 4'),
    ],
)
def test_real_server_that_did_otherwise_is_caught(changed: dict[str, Any], how: str) -> None:
    asked, _ = flags.deployment_flags({**MANY, **changed})
    found = ineffective(asked, told_by("many_flags"), tolerated=TOLERATED)
    assert len(found) == 1
    assert how in next(iter(found.values()))


def test_an_online_method_that_took_no_layer_is_caught() -> None:
    asked, _ = flags.deployment_flags(INT8_TWO_REPLICAS)
    log_text = (DATA / "vllm_0_32_cpu_int8_two_replicas.log").read_text()
    for layers, found in ((210, []), (0, ["quantization"])):
        told = log_facts.effective(f"{log_text}\nINFO Quantizing {layers} layers of types: \n")
        assert list(ineffective(asked, told, tolerated=TOLERATED)) == found


def test_speculation_that_did_not_start_is_caught() -> None:
    asked, _ = flags.deployment_flags(MANY)
    found = ineffective(asked, told_by("int8_two_replicas"), tolerated=TOLERATED)
    assert found["speculative_config"].endswith("in effect None")


def test_cache_settings_from_metrics() -> None:
    text = (
        "# HELP vllm:cache_config_info Information of the LLMEngine CacheConfig\n"
        'vllm:cache_config_info{block_size="128",cache_dtype="fp8_e4m3",enable_prefix_caching="True",'
        'engine="0",gpu_memory_utilization="0.2",num_gpu_blocks="282",sliding_window="None"} 1.0\n'
    )
    assert from_metrics(text) == {
        "block_size": 128,
        "gpu_memory_utilization": 0.2,
        "kv_cache_dtype": "fp8_e4m3",
        "enable_prefix_caching": True,
        "num_kv_blocks": 282,
        "data_parallel_size": 1,
    }


def test_metrics_without_settings_tell_nothing() -> None:
    assert from_metrics("vllm:num_requests_running 0\n") == {}


def test_settings_from_server_info() -> None:
    info = {
        "vllm_config": {
            "model_config": {
                "max_model_len": 2048,
                "dtype": "torch.bfloat16",
                "quantization": None,
            },
            "cache_config": {"block_size": 16, "cache_dtype": "auto"},
            "scheduler_config": {"max_num_seqs": 256, "max_num_batched_tokens": 4096},
            "parallel_config": None,
            "speculative_config": {"method": "ngram", "num_speculative_tokens": 2, "model": "x"},
        }
    }
    assert from_server_info(info) == {
        "max_model_len": 2048,
        "dtype": "bfloat16",
        "block_size": 16,
        "kv_cache_dtype": "auto",
        "max_num_seqs": 256,
        "max_num_batched_tokens": 4096,
        "speculative_config": {"method": "ngram", "num_speculative_tokens": 2},
    }


def test_no_server_info_tells_nothing() -> None:
    assert from_server_info(None) == {}
    assert from_server_info({"vllm_config": "VllmConfig(...)"}) == {}
