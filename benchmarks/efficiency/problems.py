"""The simulated problems: a space, a workload and load levels on a GPU, small enough to try all of.

Every deployment of each is predicted once by AISimulate (`benchmarks.efficiency.make_tables`) and
kept in `benchmarks/tables/`. The spaces have what real ones have: branches that exist only under
a value of their parent (draft tokens, the scales of a quantization), regions that do not fit,
parameters without effect (the n-gram length, which a simulator without text cannot tell) or with
one in a corner only (the memory share, where the cache never fills).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sweeper.config.schema import SpaceConfig
from sweeper.space.model import Space
from sweeper.space.parse import parse_space

SIMULATOR = "aisimulate==0.13.0.dev202610270000000085"
SEED = 42
ACTIVATION_SCALES = "flag.activation_scales"


@dataclass(frozen=True)
class Model:
    """A model of the problems.

    Attributes:
        name: as in `conf/model`, or of the same form.
        simulator_id: the simulator's own name of it.
        billions: weights, in 10⁹.
        facts: of its config.json, for the rules that need no launch.
        tensor_parallel: what is searched.
    """

    name: str
    simulator_id: str
    billions: float
    facts: Mapping[str, Any]
    tensor_parallel: tuple[int, ...]


@dataclass(frozen=True)
class Workload:
    """Lengths in tokens, streams of the load levels, and what speculation is assumed to hit.

    Attributes:
        acceptance: probability that the first drafted token is accepted; an assumption, as the
            simulator has no text.
        slo: the promise of the second figure, P95 in ms.
    """

    name: str
    input_tokens: int
    output_tokens: int
    concurrency: tuple[int, ...]
    acceptance: float
    slo: Mapping[str, float]


@dataclass(frozen=True)
class Problem:
    """One exhaustive table."""

    model: Model
    hardware: str
    workload: Workload

    @property
    def name(self) -> str:
        return f"{self.model.name}-{self.hardware}-{self.workload.name}"


QWEN3_8B = Model(
    "qwen3_8b",
    "Qwen/Qwen3-8B",
    8.19,
    {
        "architectures": ["Qwen3ForCausalLM"],
        "model_type": "qwen3",
        "num_hidden_layers": 36,
        "hidden_size": 4096,
        "intermediate_size": 12288,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "head_dim": 128,
        "vocab_size": 151936,
        "max_position_embeddings": 40960,
        "torch_dtype": "bfloat16",
        "tie_word_embeddings": False,
    },
    (1, 2, 4),
)
LLAMA_70B = Model(
    "llama3_70b",
    "meta-llama/Meta-Llama-3.1-70B",
    70.6,
    {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "num_hidden_layers": 80,
        "hidden_size": 8192,
        "intermediate_size": 28672,
        "num_attention_heads": 64,
        "num_key_value_heads": 8,
        "vocab_size": 128256,
        "max_position_embeddings": 131072,
        "torch_dtype": "bfloat16",
        "tie_word_embeddings": False,
    },
    (1, 2, 4, 8),
)
CHAT = Workload("chat", 1024, 256, (4, 32, 256), 0.45, {"ttft_p95_ms": 1500.0, "tpot_p95_ms": 25.0})
DOCUMENT = Workload(
    "document", 8192, 256, (4, 16, 64), 0.65, {"ttft_p95_ms": 6000.0, "tpot_p95_ms": 40.0}
)
HARDWARE = {"h200": "h200_sxm", "h100_80gb": "h100_sxm"}
"""Our name → the simulator's."""

PROBLEMS = tuple(
    Problem(model, hardware, workload)
    for workload in (CHAT, DOCUMENT)
    for model in (QWEN3_8B, LLAMA_70B)
    for hardware in ("h200", "h100_80gb")
)

GEMM_MODE = {
    ("none", None): None,
    ("fp8_per_tensor", "dynamic"): "fp8",
    ("fp8_per_tensor", "static"): "fp8_static",
    ("fp8_per_block", None): "fp8_block",
}
"""(quantization, activation scales) → the simulator's GEMM precision."""


def space_config(model: Model) -> SpaceConfig:
    """The space of a model; what is fixed in it has no effect in the simulator."""
    return SpaceConfig(
        name="efficiency",
        parameters={
            "quantization": {"choices": ["none", "fp8_per_tensor", "fp8_per_block"]},
            ACTIVATION_SCALES: {
                "choices": ["dynamic", "static"],
                "default": "dynamic",
                "when": {"quantization": ["fp8_per_tensor"]},
            },
            "kv_cache_dtype": {"choices": ["auto", "fp8"]},
            "speculative": {"choices": ["none", "ngram"]},
            "num_speculative_tokens": {"choices": [2, 4], "when": {"speculative": ["ngram"]}},
            "prompt_lookup_max": {
                "choices": [2, 5],
                "default": 5,
                "when": {"speculative": ["ngram"]},
            },
            "max_num_seqs": {"choices": [16, 64, 128, 256], "default": 256},
            "max_num_batched_tokens": {"choices": [1024, 2048, 8192, 16384], "default": 8192},
            "gpu_memory_utilization": {"choices": [0.8, 0.9, 0.95], "default": 0.9},
            "tensor_parallel_size": {
                "choices": list(model.tensor_parallel),
                # The smallest at which the unquantized weights fit every GPU of the problems.
                "default": 1 if model.billions < 20 else 4,
            },
        },
    )


def space_of(model: Model) -> Space:
    """The parsed space."""
    return parse_space(space_config(model))
