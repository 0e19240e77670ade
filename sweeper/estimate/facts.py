"""What arithmetic asks of a deployment, with the engine's defaults filled in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from sweeper.config.schema import ModelConfig
from sweeper.estimate.memory_launch import Calibration
from sweeper.estimate.weights import QuantizedWeights
from sweeper.hardware.facts import HardwareFacts
from sweeper.models.facts import ModelFacts

DEFAULT_MEMORY_SHARE = 0.92
"""`gpu_memory_utilization` of vLLM since 0.12 (0.90 before)."""


class EngineFactsLike(Protocol):
    """The part of an engine's facts that rules ask for."""

    @property
    def name(self) -> str: ...
    @property
    def version(self) -> str: ...
    @property
    def device(self) -> str: ...


@dataclass(frozen=True)
class Context:
    """One deployment and everything known around it.

    Attributes:
        parameters: canonical deployment; what is absent is at the engine's default.
        model, hardware, engine, draft: facts, None where unknown (rules that need them then pass).
        required_tokens: longest request of the workload, in tokens.
        missing: see `missing_models`.
        weights: of the quantized checkpoint that the deployment serves, None where nothing is known
            of one.
        calibration: what launches of the study told of memory, None if there is nothing.
    """

    parameters: Mapping[str, Any]
    model: ModelFacts | None
    hardware: HardwareFacts | None
    engine: EngineFactsLike | None
    draft: ModelFacts | None
    required_tokens: int
    missing: frozenset[str] = frozenset()
    weights: QuantizedWeights | None = None
    calibration: Calibration | None = None

    def number(self, name: str) -> int | None:
        """A whole-number parameter as given, None if absent or a word such as ``auto``."""
        value = self.parameters.get(name)
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            return None
        return int(value)

    def text(self, name: str) -> str:
        """A text parameter, empty if absent."""
        return str(self.parameters.get(name, ""))

    @property
    def tp(self) -> int:
        return self._degree("tensor_parallel_size")

    @property
    def pp(self) -> int:
        return self._degree("pipeline_parallel_size")

    @property
    def dp(self) -> int:
        return self._degree("data_parallel_size")

    def _degree(self, name: str) -> int:
        value = self.number(name)
        return 1 if value is None else value

    @property
    def device(self) -> str | None:
        """``cpu`` or ``cuda``: what the engine runs on, else what the machine has."""
        if self.engine is not None:
            return self.engine.device
        return self.hardware.kind if self.hardware is not None else None

    def is_vllm(self, since: tuple[int, int] | None = None) -> bool:
        """Whether facts of vLLM hold; an engine that only plays one has its own.

        Args:
            since: first version of which the facts are known; then an unknown version has none.
        """
        if self.engine is None:
            return since is None
        return self.engine.name == "vllm" and _version(self.engine.version) >= (since or ())

    @property
    def capability(self) -> tuple[int, int] | None:
        if self.device != "cuda" or self.hardware is None:
            return None
        return self.hardware.compute_capability

    @property
    def method(self) -> str:
        """Speculative method, ``none`` if absent."""
        return self.text("speculative") or "none"

    @property
    def quantization_asked(self) -> str:
        """``quantization=NAME`` in the deployment's word, with the engine's where that differs."""
        word = self.text("quantization")
        if self.weights is None or self.weights.name == word:
            return f"quantization={word}"
        return f"quantization={self.weights.name} ({word})"

    @property
    def group_size(self) -> int | None:
        """Weights sharing a scale in a group-quantized checkpoint, None if it is not one."""
        if self.weights is not None:
            return self.weights.group_size
        if self.text("quantization") in GROUP_QUANTIZED:
            return self._own_group_size() or 128
        # compressed-tensors and the like carry the group size in the checkpoint's own config.
        return None if self.text("quantization") else self._own_group_size()

    def _own_group_size(self) -> int | None:
        size = self.model.quantization_group_size if self.model is not None else None
        return size if size is not None and size > 0 else None


GPTQ_FORMATS = frozenset({"gptq", "auto_gptq", "gptq_marlin"})

GROUP_QUANTIZED = GPTQ_FORMATS | {"awq", "auto_awq", "awq_marlin"}
"""Four-bit checkpoint formats; published ones use groups of 128."""

FROM_CHECKPOINT = GROUP_QUANTIZED | {"compressed-tensors"}
"""Methods that are served from a checkpoint made beforehand."""


def missing_models(model: ModelConfig) -> frozenset[str]:
    """Speculative methods and quantizations for which the configuration names no model."""
    named = {
        "draft_model": model.draft_model,
        "eagle": model.eagle_model,
        **{method: model.checkpoints.get(method) for method in FROM_CHECKPOINT},
    }
    return frozenset(name for name, path in named.items() if not path)


def _version(text: str) -> tuple[int, ...]:
    parts = []
    for part in text.split(".")[:2]:
        digits = "".join(ch for ch in part if ch.isdigit())
        parts.append(int(digits) if digits else 0)
    return tuple(parts)
