"""Deployments as flags, and flags as a command line."""

from __future__ import annotations

import json
from typing import Any

import pytest

from sweeper.engine.vllm.flags import deployment_flags, engine_flags, to_argv
from sweeper.errors import ConfigError


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"quantization": "none", "dtype": "auto", "kv_cache_dtype": "auto", "speculative": "none"},
        {"max_num_seqs": "default", "block_size": None},
        {"num_speculative_tokens": 3},
    ],
)
def test_engine_default_is_said_by_silence(parameters: dict[str, Any]) -> None:
    assert deployment_flags(parameters) == ({}, {})


def test_parameters_flags_and_environment() -> None:
    flags, env = deployment_flags(
        {
            "max_num_seqs": 64,
            "gpu_memory_utilization": 0.85,
            "enforce_eager": True,
            "enable_prefix_caching": False,
            "flag.performance_mode": "throughput",
            "flag.cudagraph-capture-sizes": [1, 2],
            "env.VLLM_ATTENTION_BACKEND": "TRITON",
            "env.VLLM_SWITCH": True,
        }
    )
    assert env == {"VLLM_ATTENTION_BACKEND": "TRITON", "VLLM_SWITCH": "1"}
    assert to_argv(flags) == [
        "--max-num-seqs",
        "64",
        "--gpu-memory-utilization",
        "0.85",
        "--enforce-eager",
        "--no-enable-prefix-caching",
        "--performance-mode",
        "throughput",
        "--cudagraph-capture-sizes",
        "1",
        "2",
    ]


@pytest.mark.parametrize(
    ("parameters", "config"),
    [
        (
            {"speculative": "ngram", "num_speculative_tokens": 4, "prompt_lookup_max": 3},
            {"method": "ngram", "num_speculative_tokens": 4, "prompt_lookup_max": 3},
        ),
        (
            {
                "speculative": "draft_model",
                "num_speculative_tokens": 2,
                "speculative_model": "/m/small",
                "prompt_lookup_max": 3,
            },
            {"method": "draft_model", "model": "/m/small", "num_speculative_tokens": 2},
        ),
        (
            {"speculative": "eagle", "num_speculative_tokens": 2, "speculative_model": "a/EAGLE-x"},
            {"method": "eagle", "model": "a/EAGLE-x", "num_speculative_tokens": 2},
        ),
        (
            {
                "speculative": "eagle",
                "num_speculative_tokens": 2,
                "speculative_model": "a/EAGLE3-x",
            },
            {"method": "eagle3", "model": "a/EAGLE3-x", "num_speculative_tokens": 2},
        ),
    ],
)
def test_speculative_parameters_become_one_json_flag(
    parameters: dict[str, Any], config: dict[str, Any]
) -> None:
    flags, _ = deployment_flags(parameters)
    option, text = to_argv(flags)
    assert option == "--speculative-config"
    assert json.loads(text) == config


def test_speculative_model_that_is_missing_is_told() -> None:
    with pytest.raises(ConfigError, match=r"model\.draft_model"):
        deployment_flags({"speculative": "draft_model", "num_speculative_tokens": 2})


@pytest.mark.parametrize("name", ["port", "host", "served-model-name", "--api-key", "model"])
def test_flags_of_the_launch_are_refused(name: str) -> None:
    with pytest.raises(ConfigError, match="set by every launch"):
        engine_flags({name: "x"})
    with pytest.raises(ConfigError, match="set by every launch"):
        deployment_flags({f"flag.{name}": "x"})


def test_value_that_begins_with_a_dash_stays_a_value() -> None:
    assert to_argv({"max_model_len": -1}) == ["--max-model-len=-1"]


def test_mapping_becomes_json() -> None:
    assert to_argv({"compilation_config": {"mode": 0}}) == ["--compilation-config", '{"mode":0}']
