from __future__ import annotations

from typing import Any

import kubernetes_validate
import pytest

from sweeper.export.bundle import ExportInput
from sweeper.export.helm import render
from tests.export.conftest import make_source
from tests.export.readers import documents, of_argv
from tests.export.sources import SOURCES

# Fields of the chart vllm-stack that are used, as its values.yaml and templates have them.
ENGINE = {"enableEngine", "runtimeClassName", "containerPort", "startupProbe", "livenessProbe"}
ENGINE |= {"securityContext", "containerSecurityContext", "modelSpec"}
MODEL = {"name", "annotations", "repository", "tag", "modelURL", "replicaCount", "requestCPU"}
MODEL |= {"requestMemory", "requestGPU", "limitCPU", "limitMemory", "shmSize", "extraVolumes"}
MODEL |= {"extraVolumeMounts", "vllmConfig", "env"}


def engine(source: ExportInput) -> dict[str, Any]:
    (values,) = documents(render(source)["helm-values.yaml"].text)
    assert set(values) == {"servingEngineSpec"}
    found: dict[str, Any] = values["servingEngineSpec"]
    return found


def command(model: dict[str, Any]) -> list[str]:
    """The words that the chart's template makes of a model, up to those of other fields."""
    config = model["vllmConfig"]
    caching = "--enable-prefix-caching"
    return [
        caching if config.get("enablePrefixCaching") else "--no-enable-prefix-caching",
        *("--tensor-parallel-size", str(config["tensorParallelSize"])),
        *config["extraArgs"],
    ]


@pytest.mark.parametrize("name", SOURCES)
def test_the_values_have_fields_that_the_chart_knows(name: str) -> None:
    found = engine(SOURCES[name]())
    assert set(found) <= ENGINE
    (model,) = found["modelSpec"]
    assert set(model) <= MODEL
    assert set(model["vllmConfig"]) == {"enablePrefixCaching", "tensorParallelSize", "extraArgs"}
    assert all(isinstance(word, str) for word in model["vllmConfig"]["extraArgs"])


@pytest.mark.parametrize("name", SOURCES)
def test_what_the_chart_copies_into_a_pod_is_valid_there(name: str) -> None:
    found = engine(SOURCES[name]())
    (model,) = found["modelSpec"]
    server = {
        "name": "vllm",
        "env": model["env"],
        "volumeMounts": model["extraVolumeMounts"],
        "securityContext": found["containerSecurityContext"],
        "startupProbe": found["startupProbe"],
        "livenessProbe": found["livenessProbe"],
    }
    spec = {
        "containers": [server],
        "volumes": model["extraVolumes"],
        "securityContext": found["securityContext"],
    }
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}, "spec": spec}
    kubernetes_validate.validate(pod, "1.30", strict=True)


@pytest.mark.parametrize(
    ("flags", "on"),
    [
        ({}, True),
        ({"enable_prefix_caching": True}, True),
        ({"enable_prefix_caching": False}, False),
        ({"no_enable_prefix_caching": True}, False),
    ],
)
def test_prefix_caching_is_what_it_was_although_the_chart_would_switch_it_off(
    flags: dict[str, Any], on: bool
) -> None:
    (model,) = engine(make_source(flags=flags))["modelSpec"]
    words = command(model)
    last = [word for word in words if word.endswith("enable-prefix-caching")][-1]
    assert (last == "--enable-prefix-caching") is on


def test_shared_memory_is_mounted_at_any_size() -> None:
    # The chart mounts it only where tensorParallelSize is given.
    (model,) = engine(make_source(flags={}))["modelSpec"]
    assert model["vllmConfig"]["tensorParallelSize"] == 1
    assert model["shmSize"] == "2Gi"


def test_flags_are_those_of_the_deployment() -> None:
    (model,) = engine(SOURCES["gpu"]())["modelSpec"]
    flags = of_argv(command(model))
    assert flags["tensor-parallel-size"] == "2"
    assert flags["gpu-memory-utilization"] == "0.92"
    assert flags["kv-cache-dtype"] == "fp8"
    assert (model["requestGPU"], model["repository"], model["tag"]) == (
        2,
        "vllm/vllm-openai",
        "v0.33.0",
    )
    assert model["modelURL"] == "/models/9f3c1a7be0d24c55"


def test_a_cpu_server_asks_for_no_gpu_runtime() -> None:
    found = engine(SOURCES["cpu"]())
    assert found["runtimeClassName"] == ""
    (model,) = found["modelSpec"]
    assert (model["requestGPU"], model["limitCPU"], model["limitMemory"]) == (0, 2, "23Gi")
