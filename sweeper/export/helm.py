"""Values for the Helm chart of vLLM's production-stack (``vllm-stack``). Pure.

The chart has fields of its own for some flags and ``extraArgs`` for all others. Two of its fields
act when they are left out: without ``enablePrefixCaching`` it switches prefix caching off, and
without ``tensorParallelSize`` it mounts no shared memory. They are set, and all flags go to
``extraArgs``, which come last and win.
"""

from __future__ import annotations

from typing import Any

from sweeper.engine.vllm.flags import to_argv
from sweeper.export import container, machine, pod
from sweeper.export.bundle import ExportInput, File, Files
from sweeper.export.container import Contained
from sweeper.export.origin import origin, tags
from sweeper.export.vllm_config import own_flags
from sweeper.export.yaml_text import comments, dump

FILE_NAME = "helm-values.yaml"
_CHART = "vllm/vllm-stack"


def render(source: ExportInput) -> Files:
    """``helm-values.yaml``."""
    inside = container.contained(source, pod.MODELS)
    name = container.name_of(source)
    lines = [
        *origin(source),
        "",
        *pod.before_use(source, inside.mounts, f"{name}-models", f"{name}-secrets"),
        *container.notes(source),
        "Neither the chart nor its router has a place for the admission limit: limit admission in "
        "front of the router, to the limit times the replicas.",
        "helm repo add vllm https://vllm-project.github.io/production-stack",
        f"helm install llm {_CHART} -f {FILE_NAME}",
    ]
    return {FILE_NAME: File(comments(lines) + dump(values(inside, source, name)))}


def values(inside: Contained, source: ExportInput, name: str) -> dict[str, Any]:
    """Values of the chart: the engine; its router keeps its defaults."""
    port = inside.source.port
    probes = pod.probes(inside.source, port)
    return {
        "servingEngineSpec": {
            "enableEngine": True,
            **({"runtimeClassName": ""} if source.measured_on.on_cpu else {}),
            "containerPort": port,
            "startupProbe": _probe(probes["startupProbe"]),
            "livenessProbe": _probe(probes["livenessProbe"]),
            "securityContext": {"fsGroup": container.USER_ID},
            "containerSecurityContext": pod.security(binds_memory=source.measured_on.on_cpu),
            "modelSpec": [model_spec(inside, source, name)],
        }
    }


def _probe(probe: dict[str, Any]) -> dict[str, Any]:
    """A probe without the chart's own delay."""
    return {"initialDelaySeconds": 0, **probe}


def model_spec(inside: Contained, source: ExportInput, name: str) -> dict[str, Any]:
    """The one model."""
    asked = pod.resources(source)
    gpus = machine.gpu_count(source)
    stored = [
        v
        for v in pod.volumes(inside, config_map=None, claim=f"{name}-models")
        if v["name"] != pod.SHM
    ]
    return {
        "name": name,
        "annotations": tags(source),
        "repository": source.measured_on.repository,
        "tag": source.measured_on.tag,
        "modelURL": pod.escaped(inside.source.model_path),
        "replicaCount": 1,
        "requestCPU": machine.cpu_cores(source),
        "requestMemory": asked["requests"]["memory"],
        "requestGPU": gpus,
        **(
            {}
            if gpus
            else {"limitCPU": machine.cpu_cores(source), "limitMemory": asked["limits"]["memory"]}
        ),
        "shmSize": f"{machine.shm_gib(source)}Gi",
        "extraVolumes": stored,
        "extraVolumeMounts": [m for m in pod.mounts(inside, config=False) if m["name"] != pod.SHM],
        "vllmConfig": {
            "enablePrefixCaching": source.public_flags.get("enable_prefix_caching") is not False,
            "tensorParallelSize": machine.degrees(source.public_flags)["tensor_parallel_size"],
            "extraArgs": [pod.escaped(word) for word in to_argv(_flags(inside.source))],
        },
        "env": pod.variables(source, f"{name}-secrets"),
    }


def _flags(source: ExportInput) -> dict[str, Any]:
    """Flags for the command line, but for what the chart gives itself."""
    named: dict[str, Any] = {"served_model_name": source.served_name}
    if source.revision is not None:
        named["revision"] = source.revision
    return {**named, **own_flags(source)}
