"""The problem of the head to head: `aisimulate recommend` on its own simulator, with its own goal.

Qwen3-8B on up to eight H200, 1,024 tokens in and 256 out, 64 streams in all; the goal is output
tokens/s a GPU. Both searches get the same values of the same parameters, those that `recommend`
searches: replicas, tensor and pipeline parallelism, the two batch limits, the memory share.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sweeper.config.schema import ObjectiveConfig, SpaceConfig
from sweeper.space.canonical import as_raw, enumerate_canonical
from sweeper.space.model import Raw, Space
from sweeper.space.parse import parse_space

MODEL, HARDWARE = "Qwen/Qwen3-8B", "h200_sxm"
INPUT_TOKENS, OUTPUT_TOKENS, STREAMS, REQUESTS = 1024, 256, 64, 256
MAX_GPUS = 8
SEED = 42
METRIC = "output_tokens_per_s_per_gpu"

REPLICAS, TENSOR, PIPELINE = (1, 2, 4, 8), (1, 2, 4, 8), (1, 2)
SEQUENCES = (16, 32, 64, 128, 256, 512)
BATCHED = (512, 1024, 2048, 4096, 8192, 16384)
SHARES = (0.8, 0.9, 0.95)

OBJECTIVE = ObjectiveConfig(kind="metrics", metrics=[f"+{METRIC}"])


def space_config() -> SpaceConfig:
    """The values both search; our baseline is what vLLM does of its own accord."""
    return SpaceConfig(
        name="head_to_head",
        parameters={
            "data_parallel_size": {"choices": list(REPLICAS), "default": 1},
            "tensor_parallel_size": {"choices": list(TENSOR), "default": 1},
            "pipeline_parallel_size": {"choices": list(PIPELINE), "default": 1},
            "max_num_seqs": {"choices": list(SEQUENCES), "default": 256},
            "max_num_batched_tokens": {"choices": list(BATCHED), "default": 8192},
            "gpu_memory_utilization": {"choices": list(SHARES), "default": 0.9},
        },
    )


def space() -> Space:
    """The parsed space."""
    return parse_space(space_config())


def gpus(values: Mapping[str, Any]) -> int:
    """GPUs of a deployment, all its parameters given."""
    return int(
        values["data_parallel_size"]
        * values["tensor_parallel_size"]
        * values["pipeline_parallel_size"]
    )


def deployments() -> list[tuple[Raw, Raw]]:
    """(canonical, all parameters given) of each that the GPUs allow."""
    whole = space()
    everything = enumerate_canonical(whole, 20_000) or []
    pairs = [(one, as_raw(whole, one)) for one in everything]
    return [pair for pair in pairs if gpus(pair[1]) <= MAX_GPUS]


def ask_of(values: Mapping[str, Any]) -> dict[str, Any]:
    """The one question about a deployment; sequences beyond the streams change nothing."""
    return {
        "model": MODEL,
        "hardware": HARDWARE,
        "replicas": values["data_parallel_size"],
        "tensor": values["tensor_parallel_size"],
        "pipeline": values["pipeline_parallel_size"],
        "max_sequences": min(values["max_num_seqs"], STREAMS),
        "max_batched_tokens": values["max_num_batched_tokens"],
        "gemm": None,
        "kv_cache": None,
        "acceptance_rates": [],
        "input_tokens": INPUT_TOKENS,
        "output_tokens": OUTPUT_TOKENS,
        "concurrency": STREAMS,
        "requests": REQUESTS,
        "seed": SEED,
    }


def recommend_config(trials: int, seed: int) -> dict[str, Any]:
    """What `aisimulate recommend` is given, in its own words."""
    parallelism = {
        "preset": {},
        "replicas": {"choices": list(REPLICAS)},
        "tensor": {"choices": list(TENSOR)},
        "pipeline": {"choices": list(PIPELINE)},
        "attention_data": 1,
        "moe_tensor": 1,
        "moe_expert": 1,
    }
    worker = {
        "parallelism": parallelism,
        "scheduler": {
            "max_batched_tokens": {"choices": list(BATCHED)},
            "max_sequences": {"choices": list(SEQUENCES)},
        },
        "kv_cache": {"capacity": {"memory_fraction": {"choices": list(SHARES)}}},
    }
    return {
        "traffic": {
            "source": {
                "type": "synthetic",
                "input_tokens": INPUT_TOKENS,
                "output_tokens": OUTPUT_TOKENS,
            },
            "load": {"type": "concurrency", "concurrency": STREAMS},
            "stop": {"requests": REQUESTS},
        },
        "engine": {
            "mode": "aggregated",
            "model": MODEL,
            "hardware": HARDWARE,
            "backend": "vllm",
            "context_length": INPUT_TOKENS + OUTPUT_TOKENS,
            "workers": {"aggregated": worker},
        },
        "optimization": {
            "target": "throughput_per_gpu",
            "constraints": {"max_candidate_gpus": MAX_GPUS},
        },
        "optimizer": {"max_trials": trials, "parallelism": 1, "seed": seed},
        "execution": {"resources": {"initialization_timeout_seconds": 900.0}},
    }
