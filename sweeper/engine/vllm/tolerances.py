"""What vLLM writes differently from what was asked, without the flag having been ignored. Pure.

Everything that is not in this table counts as a flag without effect. So it is on purpose that a
`block_size` which an attention backend replaces, prefix caching that a model cannot have, or a
batch limit that a platform raises are not here: two deployments that differ only in such a flag are
one and the same.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sweeper.engine.comparison import Tolerance

_DTYPES = {"half": "float16", "float": "float32", "fp16": "float16", "fp32": "float32"}
_DTYPES |= {"bf16": "bfloat16"}
_CACHE_DTYPES = {"fp8": "fp8_e4m3", "fp8_inc": "fp8_e4m3"}
_QUANTIZATION = {
    "awq": {"awq_marlin", "moe_wna16"},
    "gptq": {"gptq_marlin", "gptq_bitblas", "moe_wna16", "gptq_marlin_24"},
    "fp8": {"fp8_per_tensor", "fp8_marlin", "fbgemm_fp8"},
    "auto_round": {"inc"},
    "compressed_tensors": {"compressed_tensors_moe"},
}


def _alias(names: dict[str, str]) -> Callable[[Any, Any], bool]:
    """Whether two words stand for one value."""

    def holds(asked: Any, effective: Any) -> bool:
        one, other = _word(asked), _word(effective)
        return names.get(one, one) == names.get(other, other)

    return holds


def _better_kernel(asked: Any, effective: Any) -> bool:
    return _word(effective) in _QUANTIZATION.get(_word(asked), set())


def _multi_token_prediction(asked: Any, effective: Any) -> bool:
    return _word(asked).endswith("_mtp") and _word(effective) == "mtp"


def _word(value: Any) -> str:
    return str(value).strip().lower().replace("-", "_").removeprefix("torch.")


TOLERATED: tuple[Tolerance, ...] = (
    Tolerance("dtype", "float16 is also called half, float32 float", "all", _alias(_DTYPES)),
    Tolerance(
        "kv_cache_dtype",
        "fp8 is short for the format that the platform has: e4m3",
        "0.6 and later",
        _alias(_CACHE_DTYPES),
    ),
    Tolerance(
        "quantization",
        "the method that the checkpoint asks for, run by a faster kernel of another name",
        "0.4 and later",
        _better_kernel,
    ),
    Tolerance(
        "speculative_config.method",
        "the models' own names for multi-token prediction became one",
        "0.11 and later",
        _multi_token_prediction,
    ),
    Tolerance(
        "speculative_config.quantization",
        "as `quantization`, of the draft model",
        "0.8 and later",
        _better_kernel,
    ),
)
