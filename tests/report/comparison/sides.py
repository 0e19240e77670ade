"""Sides of a comparison for the tests."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from sweeper.metrics.external.result import ForeignLevel, ForeignRun
from sweeper.report.comparison.side import Side, side_of_file, side_of_trial
from sweeper.trial.outcome import Point
from tests import factories

MANIFEST: dict[str, Any] = {
    "model": {"name": "smollm2", "path": "/models/smollm2-v1", "digest": "d" * 64},
    "hardware": {
        "kind": "cuda",
        "name": "NVIDIA H200",
        "device_count": 8,
        "memory_gib": 140.0,
        "driver": "570.1",
        "cuda": "12.8",
    },
    "engine": {
        "name": "vllm",
        "version": "0.33.0",
        "distribution": "vllm",
        "predicted": False,
    },
    "client": {"name": "sweeper", "version": "0.1.0"},
    "measured": True,
    "devices": 1,
    "precision": "bfloat16",
    "quantization": "none",
    "workload": {
        "name": "short",
        "kind": "synthetic",
        "input_tokens": 24,
        "output_tokens": 16,
        "sha256": "abc",
    },
    "decoding": {"method": "greedy", "temperature": 0.0},
    "load": {"kind": "closed", "repeats": 1, "warm_up": {"requests_per_stream": 1}},
    "effective_args": {"dtype": "bfloat16", "max_num_seqs": 256, "num_kv_blocks": 100},
}


def manifest(**changes: Any) -> dict[str, Any]:
    """The manifest with sections changed: ``manifest(engine={"version": "0.30"})``."""
    found = {k: dict(v) if isinstance(v, dict) else v for k, v in MANIFEST.items()}
    for name, value in changes.items():
        if value is None:
            found.pop(name)
        elif isinstance(value, dict) and isinstance(found.get(name), dict):
            found[name] = {**found[name], **value}
        else:
            found[name] = value
    return found


def point(concurrency: int = 8, **fields: Any) -> Point:
    """A point whose lengths and load are told, and that is sure of its P95."""
    lengths = {
        "input_tokens_mean": 24.0,
        "output_tokens_mean": 16.0,
        "achieved_concurrency": concurrency * 0.99,
    }
    return replace(factories.point(concurrency, **{**lengths, **fields}), low_confidence=[])


def trial(
    study: str = "one",
    *,
    deployment: dict[str, Any] | None = None,
    points: list[Point] | None = None,
    told: dict[str, Any] | None = None,
    **fields: Any,
) -> Side:
    """A trial's side."""
    outcome = factories.outcome(
        1,
        deployment=deployment,
        points=[point()] if points is None else points,
        manifest=MANIFEST if told is None else told,
        **fields,
    )
    return side_of_trial(outcome, label=f"{study}/1", what="trial 1 (search)", study=study)


def foreign(*levels: ForeignLevel, **conditions: Any) -> Side:
    """A side from another client."""
    known = {"numbers": "measured", "model": "smollm2", "client": "vllm bench serve"}
    level = ForeignLevel(
        "concurrency 8",
        {"kind": "closed", "concurrency": 8},
        {"ttft_p50_ms": 100.0, "input_tokens_mean": 24.0, "output_tokens_mean": 16.0},
        240,
    )
    run = ForeignRun("vllm bench serve", {**known, **conditions}, levels or (level,), ("a note",))
    return side_of_file(run, label="bench.json")
