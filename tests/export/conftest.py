from __future__ import annotations

from typing import Any

import pytest

from sweeper.config.schema import SelectConfig, SloConfig
from sweeper.export.admission import limit_of
from sweeper.export.bundle import ExportInput
from sweeper.export.measured_on import MeasuredOn
from sweeper.pareto.points import points_frame
from sweeper.pareto.select import recommend
from tests.factories import study

FLAGS: dict[str, Any] = {
    "max_num_seqs": 64,
    "gpu_memory_utilization": 0.9,
    "enable_prefix_caching": False,
    "enforce_eager": True,
    "kv_cache_dtype": "fp8",
    "speculative_config": {"method": "ngram", "num_speculative_tokens": 3, "prompt_lookup_max": 4},
    "middleware": ["a.B", "c.D"],
    "lora_modules": [],
    "seed": None,
    "api_key": "sk-very-secret",
}
ENV = {"VLLM_CPU_OMP_THREADS_BIND": "0|1", "HF_TOKEN": "hf-very-secret"}


def make_source(**changes: Any) -> ExportInput:
    """The recommendation of the small study under an SLO, with flags of every type."""
    cfg = changes.pop("select", SelectConfig(slo=SloConfig(e2e_p95_ms=1000)))
    found = recommend(points_frame(changes.pop("outcomes", study())), cfg)
    fields: dict[str, Any] = {
        "study": "tiny-cpu",
        "recommendation": found,
        "model_path": "org/model",
        "served_name": "tiny",
        "flags": FLAGS,
        "env": ENV,
        "engine": "vllm 0.32.0",
        "hardware": "2 x NVIDIA H200 (141 GiB)",
        "limit": limit_of(found),
        "measured_on": MeasuredOn(version="0.32.0", gpu="NVIDIA H200"),
    }
    return ExportInput(**{**fields, **changes})


@pytest.fixture
def source() -> ExportInput:
    return make_source()
