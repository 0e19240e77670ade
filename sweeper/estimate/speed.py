"""Speed of light: what bandwidth and arithmetic allow at most (Williams et al. 2009, roofline).

Decode of one stream reads all weights for each token, so tokens/s ≤ bandwidth / bytes read. Prefill
multiplies and adds each weight once a token, so tokens/s ≤ peak / (2 * weights). Predicted, never
measured: no server reaches either.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sweeper.estimate.facts import Context
from sweeper.estimate.memory import parameter_count, weight_bytes
from sweeper.hardware.facts import HardwareFacts
from sweeper.models.facts import ModelFacts


@dataclass(frozen=True)
class SpeedOfLight:
    """Upper bounds of one replica, tokens/s; None where the hardware's peak is unknown."""

    decode_tokens_per_s: float | None
    prefill_tokens_per_s: float | None


def speed_of_light(
    parameters: Mapping[str, Any], model: ModelFacts, hardware: HardwareFacts
) -> SpeedOfLight:
    """Bounds of a deployment: single-stream decode, and prefill."""
    context = Context(parameters, model, hardware, None, None, 0)
    total = weight_bytes(model, context.text("quantization"), context.text("dtype"))
    # An untied input embedding is looked up, not multiplied: one row a token.
    table = 0 if model.tie_word_embeddings else model.vocab_size * model.hidden_size
    weights = (model.parameters or parameter_count(model)) - table
    tp = max(1, context.tp)
    decode = prefill = None
    if hardware.bandwidth_gbs:
        decode = hardware.bandwidth_gbs * 1e9 * tp / max(1.0, total - table * 2)
    if hardware.tflops_bf16:
        prefill = hardware.tflops_bf16 * 1e12 * tp / (2 * max(1, weights))
    return SpeedOfLight(decode, prefill)
