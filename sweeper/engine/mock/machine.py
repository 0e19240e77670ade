"""The imaginary engine's arithmetic: what it refuses, what fits, and how long a step takes. Pure.

The model is simple and has the trade-offs that a tuner must find: a larger batch gives throughput
and costs latency, quantization and a smaller KV cache speed decoding and cost quality, draft tokens
help small batches and hurt large ones, long prefill chunks stall decoding, and memory limits all
of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sweeper.engine.mock.options import MockOptions

KIB_PER_GIB = 2.0**20
DEFAULT_UTILIZATION = 0.9
FREE_SHARE = 0.97
"""What the driver leaves of a device."""

WEIGHT_FACTORS = {"4": 0.3, "8": 0.53}
DECODE_FACTORS = {"4": 0.58, "8": 0.72}
DRAFT_COST = {"ngram": 0.02, "draft_model": 0.1, "eagle": 0.05}
ACCEPTANCE = {"ngram": 0.45, "draft_model": 0.65, "eagle": 0.75}
EAGER_FACTOR = 1.25
TENSOR_PARALLEL_GAIN = 0.8
ACTIVATION_GIB_PER_TOKEN = 0.25 / 1024
SEQUENCE_GIB = 2.0 / 1024


def quantization_bits(quantization: str) -> str:
    """`4`, `8` or `16`, from a quantization's name."""
    name = quantization.lower()
    if name in {"none", "default", ""}:
        return "16"
    return "4" if any(mark in name for mark in ("awq", "gptq", "4", "nf4")) else "8"


@dataclass(frozen=True)
class Machine:
    """A deployment on the imaginary device. Sizes in tokens, memory in GiB, times in seconds."""

    options: MockOptions
    max_num_seqs: int
    max_num_batched_tokens: int
    max_model_len: int
    gpu_memory_utilization: float
    block_size: int
    quantization: str
    kv_cache_dtype: str
    prefix_caching: bool
    chunked_prefill: bool
    eager: bool
    speculative: str
    draft_tokens: int
    tensor_parallel: int
    pipeline_parallel: int
    data_parallel: int
    slow_factor: float = 1.0
    dtype: str = "bfloat16"

    @classmethod
    def of(
        cls, parameters: Mapping[str, Any], options: MockOptions, slow_factor: float = 1.0
    ) -> Machine:
        """Read a deployment; what it leaves out has the mock's default."""
        return cls(
            options=options,
            max_num_seqs=int(parameters.get("max_num_seqs", 64)),
            max_num_batched_tokens=int(parameters.get("max_num_batched_tokens", 2048)),
            max_model_len=int(parameters.get("max_model_len", options.max_model_len)),
            gpu_memory_utilization=float(
                parameters.get("gpu_memory_utilization", DEFAULT_UTILIZATION)
            ),
            block_size=int(parameters.get("block_size", 16)),
            quantization=str(parameters.get("quantization", "none")),
            kv_cache_dtype=str(parameters.get("kv_cache_dtype", "auto")),
            prefix_caching=bool(parameters.get("enable_prefix_caching", True)),
            chunked_prefill=bool(parameters.get("enable_chunked_prefill", True)),
            eager=bool(parameters.get("enforce_eager", False)),
            speculative=str(parameters.get("speculative", "none")),
            draft_tokens=int(parameters.get("num_speculative_tokens", 0)),
            tensor_parallel=int(parameters.get("tensor_parallel_size", 1)),
            pipeline_parallel=int(parameters.get("pipeline_parallel_size", 1)),
            data_parallel=int(parameters.get("data_parallel_size", 1)),
            slow_factor=slow_factor,
            dtype=str(parameters.get("dtype", "bfloat16")),
        )

    @property
    def weights_gib(self) -> float:
        """Weights on one device."""
        factor = WEIGHT_FACTORS.get(quantization_bits(self.quantization), 1.0)
        return self.options.weights_gib * factor / (self.tensor_parallel * self.pipeline_parallel)

    @property
    def kv_memory_gib(self) -> float:
        """What is left for the KV cache on one device; not positive if nothing is."""
        working = (
            self.max_num_batched_tokens * ACTIVATION_GIB_PER_TOKEN
            + self.max_num_seqs * SEQUENCE_GIB
        )
        asked = self.options.memory_gib * self.gpu_memory_utilization
        return asked - self.weights_gib - working

    @property
    def kv_gib_per_token(self) -> float:
        """KV cache of one token on one device."""
        factor = 0.5 if "fp8" in self.kv_cache_dtype else 1.0
        spread = self.tensor_parallel * self.pipeline_parallel
        return self.options.kv_kib_per_token * factor / KIB_PER_GIB / spread

    @property
    def kv_tokens(self) -> int:
        """Tokens that the KV cache holds, in whole blocks."""
        tokens = int(max(0.0, self.kv_memory_gib) / self.kv_gib_per_token)
        return tokens // self.block_size * self.block_size * self.data_parallel

    @property
    def start_s(self) -> float:
        options = self.options
        return (options.start_s + (0.0 if self.eager else options.compile_s)) * options.time_scale

    @property
    def acceptance(self) -> float:
        """Share of draft tokens that are accepted."""
        shares = {**ACCEPTANCE, **self.options.acceptance}
        return shares.get(self.speculative, 0.0) if self.drafts else 0.0

    @property
    def drafts(self) -> int:
        """Draft tokens a step."""
        return 0 if self.speculative in {"none", "default"} else self.draft_tokens

    def step_s(self, decoding: int, prefill_tokens: int) -> float:
        """Seconds of one step.

        Args:
            decoding: requests that decode in it.
            prefill_tokens: prompt tokens processed in it.
        """
        options = self.options
        share = -(-decoding // self.data_parallel)
        decode_ms = 0.0
        parallel_gain = float(self.tensor_parallel**TENSOR_PARALLEL_GAIN)
        if decoding:
            verify = 1 + 0.6 * self.drafts
            drafting = 1 + DRAFT_COST.get(self.speculative, 0.05) * self.drafts
            decode_ms = options.decode_ms * drafting
            decode_ms += options.decode_ms_per_seq * (share - 1) * verify
        factor = DECODE_FACTORS.get(quantization_bits(self.quantization), 1.0)
        factor *= 0.95 if "fp8" in self.kv_cache_dtype else 1.0
        factor *= EAGER_FACTOR if self.eager else 1.0
        factor /= parallel_gain
        prefill_ms = options.prefill_ms_per_token * prefill_tokens / self.data_parallel
        prefill_ms /= parallel_gain
        return (decode_ms * factor + prefill_ms) * options.time_scale * self.slow_factor / 1000

    def refusal(self) -> str | None:
        """The text with which the imaginary engine refuses to start, None if it starts."""
        return self._bad_combination() or self._bad_memory()

    def _bad_combination(self) -> str | None:
        if self.options.num_heads % self.tensor_parallel:
            return (
                f"Total number of attention heads ({self.options.num_heads}) must be divisible by "
                f"tensor parallel size ({self.tensor_parallel})."
            )
        if self.max_num_batched_tokens < self.max_num_seqs:
            return (
                f"max_num_batched_tokens ({self.max_num_batched_tokens}) must be greater than or "
                f"equal to max_num_seqs ({self.max_num_seqs})."
            )
        if not self.chunked_prefill and self.max_num_batched_tokens < self.max_model_len:
            return (
                f"max_num_batched_tokens ({self.max_num_batched_tokens}) is smaller than "
                f"max_model_len ({self.max_model_len})."
            )
        if self.speculative not in {"none", "default"} and self.draft_tokens < 1:
            return "Expected num_speculative_tokens to be greater than zero (0)."
        return None

    def _bad_memory(self) -> str | None:
        memory_gib = self.options.memory_gib
        asked_gib = memory_gib * self.gpu_memory_utilization
        free_gib = memory_gib * FREE_SHARE
        if asked_gib > free_gib:
            return (
                f"Free memory on device cuda:0 ({free_gib:.2f}/{memory_gib:.2f} GiB) "
                "on startup is less than desired GPU memory utilization "
                f"({self.gpu_memory_utilization}, {asked_gib:.2f} GiB). Decrease GPU memory "
                "utilization or reduce GPU memory used by other processes."
            )
        if self.kv_memory_gib <= 0:
            return "No available memory for the cache blocks."
        needed_gib = self.max_model_len * self.kv_gib_per_token
        if needed_gib > self.kv_memory_gib:
            return (
                "To serve at least one request with the model's max seq len "
                f"({self.max_model_len}), ({needed_gib:.2f} GiB KV cache is needed, which is "
                f"larger than the available KV cache memory ({self.kv_memory_gib:.2f} GiB). "
                "Based on the available memory, the estimated maximum model length is "
                f"{self.kv_tokens}. Try increasing `gpu_memory_utilization`."
            )
        return None
