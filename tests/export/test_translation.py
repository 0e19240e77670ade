"""SGLang and TensorRT-LLM: what a flag of vLLM becomes, and that every one is accounted for."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from sweeper.export.registry import renderer
from sweeper.export.sglang import render as sglang
from sweeper.export.tensorrt_llm import render as tensorrt
from tests.export.conftest import make_source
from tests.export.readers import READERS, unwrapped
from tests.export.sources import SOURCES

NGRAM = {"method": "ngram", "num_speculative_tokens": 4, "prompt_lookup_max": 5}
EAGLE = {"method": "eagle3", "model": "org/head", "num_speculative_tokens": 3}


def given(target: str, flags: dict[str, Any]) -> dict[str, Any]:
    """Flags that the other engine gets; without names and address."""
    files = renderer(target)(make_source(flags=flags, env={}))
    found = dict(READERS[target](files).flags)
    return {name: value for name, value in found.items() if name not in {"host", "port", "config"}}


def in_file(flags: dict[str, Any]) -> dict[str, Any]:
    files = tensorrt(make_source(flags=flags, env={}))
    return yaml.safe_load(files["trtllm.yaml"].text) if "trtllm.yaml" in files else {}


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        ({"tensor_parallel_size": 2}, {"tp-size": "2"}),
        ({"data_parallel_size": 2}, {"dp-size": "2"}),
        ({"max_model_len": 4096}, {"context-length": "4096"}),
        ({"max_model_len": "32k"}, {}),
        ({"max_model_len": -1}, {}),
        ({"enable_prefix_caching": False}, {"disable-radix-cache": True}),
        ({"enable_prefix_caching": True}, {}),
        ({"enforce_eager": True}, {"disable-cuda-graph": True}),
        ({"enable_chunked_prefill": False}, {"chunked-prefill-size": "-1"}),
        ({"kv_cache_dtype": "fp8"}, {"kv-cache-dtype": "fp8_e4m3"}),
        ({"kv_cache_dtype": "int4"}, {}),
        ({"quantization": "awq"}, {"quantization": "awq"}),
        ({"quantization": "int8_per_channel_weight_only"}, {}),
        ({"scheduling_policy": "priority"}, {"enable-priority-scheduling": True}),
        (
            {"speculative_config": NGRAM},
            {"speculative-algorithm": "NGRAM", "speculative-num-draft-tokens": "4"},
        ),
        (
            {"speculative_config": EAGLE},
            {
                "speculative-algorithm": "EAGLE3",
                "speculative-draft-model-path": "org/head",
                "speculative-num-steps": "3",
                "speculative-eagle-topk": "1",
                "speculative-num-draft-tokens": "4",
            },
        ),
        ({"speculative_config": {"method": "mtp", "num_speculative_tokens": 1}}, {}),
        ({"middleware": ["a.B"]}, {}),
    ],
)
def test_sglang(flags: dict[str, Any], words: dict[str, Any]) -> None:
    found = given("sglang", flags)
    assert {k: v for k, v in found.items() if k not in {"model-path", "served-model-name"}} == words


@pytest.mark.parametrize(
    ("flags", "words", "options"),
    [
        ({"tensor_parallel_size": 2}, {"tp_size": "2"}, {}),
        ({"data_parallel_size": 2}, {}, {}),
        ({"max_num_seqs": 8}, {"max_batch_size": "8"}, {}),
        ({"max_num_batched_tokens": 2048}, {"max_num_tokens": "2048"}, {}),
        ({"enable_prefix_caching": False}, {}, {"kv_cache_config": {"enable_block_reuse": False}}),
        (
            {"kv_cache_dtype": "fp8", "gpu_memory_utilization": 0.8},
            {},
            {"kv_cache_config": {"dtype": "fp8", "free_gpu_memory_fraction": 0.8}},
        ),
        ({"enforce_eager": True}, {}, {"cuda_graph_config": None}),
        ({"dtype": "half"}, {}, {"dtype": "float16"}),
        ({"quantization": "fp8_per_tensor"}, {}, {}),
        (
            {"speculative_config": NGRAM},
            {},
            {
                "speculative_config": {
                    "decoding_type": "NGram",
                    "max_draft_len": 4,
                    "max_matching_ngram_size": 5,
                }
            },
        ),
        (
            {"speculative_config": EAGLE},
            {},
            {
                "speculative_config": {
                    "decoding_type": "Eagle3",
                    "max_draft_len": 3,
                    "speculative_model": "org/head",
                }
            },
        ),
    ],
)
def test_tensorrt_llm(
    flags: dict[str, Any], words: dict[str, Any], options: dict[str, Any]
) -> None:
    assert given("trtllm", flags) == words
    assert in_file(flags) == options


@pytest.mark.parametrize(("target", "file"), [("sglang", "sglang.sh"), ("trtllm", "trtllm.sh")])
def test_every_flag_is_accounted_for(target: str, file: str) -> None:
    flags = {"middleware": ["a.B"], "max_num_seqs": 8, "gpu_memory_utilization": 0.9}
    source = make_source(flags=flags, env={"VLLM_X": "1", "NCCL_DEBUG": "WARN"})
    text = unwrapped(renderer(target)(source)[file].text)
    assert "# --middleware a.B: NO EQUIVALENT in" in text
    assert "# --gpu-memory-utilization 0.9: near: " in text
    assert "# --max-num-seqs 8: --max" in text
    assert "# VLLM_X (variable): NO EQUIVALENT" in text
    assert "export NCCL_DEBUG=WARN\n" in text
    assert "export VLLM_X" not in text
    assert "NOT RUN" in text.splitlines()[1]


def test_a_checkpoint_that_was_made_here_is_a_warning_for_tensorrt_llm() -> None:
    assert "not known to read it" in unwrapped(tensorrt(SOURCES["gpu"]())["trtllm.sh"].text)
    assert "not known to read it" not in tensorrt(make_source())["trtllm.sh"].text


def test_a_cpu_study_has_no_equivalent_there_and_one_in_sglang() -> None:
    files = tensorrt(SOURCES["cpu"]())
    assert set(files) == {"trtllm.sh"}
    assert "NVIDIA GPUs only" in files["trtllm.sh"].text
    assert files["trtllm.sh"].text.endswith("exit 1\n")
    assert "--device cpu" in sglang(SOURCES["cpu"]())["sglang.sh"].text
