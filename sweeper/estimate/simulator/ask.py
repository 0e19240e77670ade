"""From a deployment and a load level to the simulator's own configuration. Pure.

What a deployment leaves open is what vLLM itself would take on that GPU, not the simulator's
default: else the baseline would be that of another engine.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sweeper.estimate.simulator.modelled import check_speculative, gemm_mode, kv_mode
from sweeper.estimate.simulator.systems import System, system_of
from sweeper.estimate.weights import QuantizedWeights

MEMORY_FRACTION = 0.92
BLOCK_TOKENS = 16
MAX_DRAFT_TOKENS = 5
"""More the simulator does not take."""

MEASURED, WITH_GAPS = "measured", "with_gaps"
TABLES = {MEASURED: "SILICON", WITH_GAPS: "HYBRID"}
"""Operators as they were timed; or with estimates where none was."""

_MOE_EXPERTS = ("num_experts", "num_local_experts", "n_routed_experts")


@dataclass(frozen=True)
class SimulatorAsk:
    """One deployment at one load level.

    Attributes:
        model_config: fields of the unquantized model's config.json.
        hardware: see `system_of`.
        parameters: of the deployment, in vLLM's words.
        input_tokens, output_tokens: of every request.
        requests: how many are sent.
        concurrency: streams of a closed loop, None otherwise.
        rate_per_s: random arrivals at this rate, None otherwise.
        constant: arrivals in even steps instead.
        prefix_tokens: of every prompt, found in the prefix cache if there is one.
        weights: of a quantized checkpoint, None where `quantization` says it all.
        ngram_acceptance: chance that one n-gram draft token is accepted after the one before it.
        tables: `MEASURED` or `WITH_GAPS`.
        seed: of arrivals and acceptance.
        model_id: a model whose config.json the simulator carries; of `model_config` only the number
            of experts is then looked at.
    """

    model_config: Mapping[str, Any]
    hardware: str
    parameters: Mapping[str, Any]
    input_tokens: int
    output_tokens: int
    requests: int
    concurrency: int | None = None
    rate_per_s: float | None = None
    constant: bool = False
    prefix_tokens: int = 0
    weights: QuantizedWeights | None = None
    ngram_acceptance: float | None = None
    tables: str = MEASURED
    seed: int = 1
    model_id: str | None = None

    def __post_init__(self) -> None:
        if (self.concurrency is None) == (self.rate_per_s is None):
            raise ValueError("a load level has either a concurrency or a rate")
        if min(self.input_tokens, self.output_tokens, self.requests) < 1:
            raise ValueError("a load level needs requests with tokens to read and to write")

    @property
    def model_key(self) -> str:
        """`model_id`, or a digest of `model_config`, under which the worker keeps it."""
        if self.model_id is not None:
            return self.model_id
        text = json.dumps(dict(self.model_config), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    @property
    def device_count(self) -> int:
        """GPUs of the deployment."""
        return self._size("tensor") * self._size("pipeline") * self._size("data")

    def _size(self, kind: str) -> int:
        return int(self.parameters.get(f"{kind}_parallel_size", 1))


def to_config(ask: SimulatorAsk) -> dict[str, Any]:
    """The simulator's prediction configuration, without the model's folder.

    Raises:
        UnmodelledError: the deployment asks for what it cannot model.
        ConfigError: it does not know the GPU.
    """
    check_speculative(ask.parameters)
    system = system_of(ask.hardware)
    engine: dict[str, Any] = {
        "mode": "aggregated",
        "hardware": system.name,
        "backend": "vllm",
        "database_mode": TABLES[ask.tables],
        "workers": {"aggregated": _worker(ask, system)},
    }
    speculation = _speculation(ask)
    if speculation is not None:
        engine["speculation"] = speculation
    return {"traffic": _traffic(ask), "engine": engine}


def batch_defaults(system: System) -> tuple[int, int]:
    """vLLM's (max_num_seqs, max_num_batched_tokens) for its server on a GPU.

    Source: ``EngineArgs.get_batch_defaults`` of vLLM 0.32.
    """
    if system.memory_gib >= 160:
        return 1024, 16384
    if system.memory_gib >= 70 and not system.is_a100:
        return 1024, 8192
    return 256, 2048


def _traffic(ask: SimulatorAsk) -> dict[str, Any]:
    cached = ask.parameters.get("enable_prefix_caching", True) is not False
    load: dict[str, Any]
    if ask.concurrency is not None:
        load = {"type": "concurrency", "concurrency": ask.concurrency}
    elif ask.constant:
        load = {"type": "constant_rate", "requests_per_second": ask.rate_per_s}
    else:
        load = {"type": "poisson", "requests_per_second": ask.rate_per_s, "seed": ask.seed}
    return {
        "source": {
            "type": "synthetic",
            "input_tokens": ask.input_tokens,
            "output_tokens": ask.output_tokens,
            "cached_prefix_tokens": min(ask.prefix_tokens, ask.input_tokens) if cached else 0,
        },
        "load": load,
        "stop": {"requests": ask.requests},
    }


def _worker(ask: SimulatorAsk, system: System) -> dict[str, Any]:
    given = ask.parameters
    sequences, tokens = batch_defaults(system)
    modes = {
        "gemm_quant_mode": gemm_mode(given.get("quantization"), ask.weights),
        "kvcache_quant_mode": kv_mode(given.get("kv_cache_dtype")),
    }
    if _is_moe(ask.model_config) and modes["gemm_quant_mode"] is not None:
        modes["moe_quant_mode"] = modes["gemm_quant_mode"]
    return {
        "parallelism": _parallelism(ask),
        "scheduler": {
            "max_sequences": int(given.get("max_num_seqs", sequences)),
            "max_batched_tokens": int(given.get("max_num_batched_tokens", tokens)),
        },
        "kv_cache": {
            "block_size": BLOCK_TOKENS,
            "prefix_caching": given.get("enable_prefix_caching", True) is not False,
            "capacity": {
                "type": "default",
                "memory_fraction": float(given.get("gpu_memory_utilization", MEMORY_FRACTION)),
            },
        },
        "timing": {name: mode for name, mode in modes.items() if mode is not None},
    }


def _parallelism(ask: SimulatorAsk) -> dict[str, int]:
    """Replicas of a dense model stand side by side; those of experts share them."""
    tensor, pipeline, data = (ask._size(kind) for kind in ("tensor", "pipeline", "data"))
    sizes = {"tensor": tensor, "pipeline": pipeline}
    if not _is_moe(ask.model_config):
        return {**sizes, "replicas": data}
    experts = "moe_expert" if ask.parameters.get("enable_expert_parallel") else "moe_tensor"
    return {**sizes, "attention_data": data, experts: tensor * data}


def _is_moe(config: Mapping[str, Any]) -> bool:
    return any(int(config.get(name) or 0) > 1 for name in _MOE_EXPERTS)


def _speculation(ask: SimulatorAsk) -> dict[str, Any] | None:
    if ask.parameters.get("speculative", "none") != "ngram":
        return None
    drafts = min(int(ask.parameters.get("num_speculative_tokens", 3)), MAX_DRAFT_TOKENS)
    rate = ask.ngram_acceptance or 0.0
    return {
        "kind": "ngram",
        "num_speculative_tokens": drafts,
        "acceptance_rates": [rate] * drafts,
        "seed": ask.seed,
    }
