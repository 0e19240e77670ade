"""Arguments read back from a running server's answers."""

from __future__ import annotations

from sweeper.engine.comparison import not_taken
from sweeper.engine.vllm.effective import from_metrics, from_server_info


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
        }
    }
    assert from_server_info(info) == {
        "max_model_len": 2048,
        "dtype": "bfloat16",
        "block_size": 16,
        "kv_cache_dtype": "auto",
        "max_num_seqs": 256,
        "max_num_batched_tokens": 4096,
    }


def test_no_server_info_tells_nothing() -> None:
    assert from_server_info(None) == {}
    assert from_server_info({"vllm_config": "VllmConfig(...)"}) == {}


def test_flag_without_effect_is_told() -> None:
    asked = {
        "max_num_seqs": 64,
        "gpu_memory_utilization": 0.9,
        "swap_space": 4,
        "enforce_eager": True,
    }
    effective = {"max_num_seqs": 32, "gpu_memory_utilization": 0.9, "enforce_eager": True}
    assert not_taken(asked, effective) == {"max_num_seqs": "asked 64, in effect 32"}
