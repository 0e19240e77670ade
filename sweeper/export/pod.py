"""The parts of a pod that serves a deployment, for whatever makes pods. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sweeper.export import container, machine, secrets
from sweeper.export.bundle import ExportInput
from sweeper.export.container import Contained

MODELS = "/models"
GPU = "nvidia.com/gpu"
SHM, CACHE, CONFIG, STORE = "shm", "home", "config", "models"


def escaped(text: str) -> str:
    """Text of an argument or variable, in which the kubelet would expand ``$(NAME)``."""
    return text.replace("$", "$$")


def variables(source: ExportInput, secret: str) -> list[dict[str, Any]]:
    """``env`` of the container: plain values, and references to keys of one secret."""
    plain: list[dict[str, Any]] = [
        {"name": name, "value": escaped(value)}
        for name, value in container.environment(source).items()
    ]
    return plain + [
        {
            "name": name,
            "valueFrom": {"secretKeyRef": {"name": secret, "key": name, "optional": not needed}},
        }
        for name, needed in secrets.variables(source).items()
    ]


def resources(source: ExportInput) -> dict[str, Any]:
    """Requests and limits; a CPU study's are equal, so that its cores are its own."""
    asked: dict[str, Any] = {
        "cpu": str(machine.cpu_cores(source)),
        "memory": f"{machine.memory_gib(source)}Gi",
    }
    gpus = machine.gpu_count(source)
    if gpus:
        return {"requests": {**asked, GPU: str(gpus)}, "limits": {GPU: str(gpus)}}
    return {"requests": asked, "limits": dict(asked)}


def probes(source: ExportInput, port: int | str) -> dict[str, Any]:
    """Start, readiness and liveness by vLLM's ``/health``, which needs no key.

    A busy server answers late: liveness waits for a minute before it takes that for death.
    """
    asked = {"httpGet": {"path": container.HEALTH, "port": port}, "timeoutSeconds": 5}
    every = {**asked, "periodSeconds": machine.PROBE_PERIOD_S}
    return {
        "startupProbe": {**every, "failureThreshold": machine.start_attempts(source)},
        "readinessProbe": {**every, "failureThreshold": 3},
        "livenessProbe": {**every, "failureThreshold": 6},
    }


def security(*, binds_memory: bool = False) -> dict[str, Any]:
    """Least rights; binding memory to NUMA nodes, as vLLM does on a CPU, takes one capability."""
    added = {"add": ["SYS_NICE"]} if binds_memory else {}
    return {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"], **added},
        "runAsNonRoot": True,
        "runAsUser": container.USER_ID,
        "runAsGroup": container.GROUP_ID,
        "seccompProfile": {"type": "RuntimeDefault"},
    }


def volumes(inside: Contained, *, config_map: str | None, claim: str) -> list[dict[str, Any]]:
    """Shared memory, a home to write to, and where there are any the configuration and models."""
    size = f"{machine.shm_gib(inside.source)}Gi"
    found: list[dict[str, Any]] = [
        {"name": SHM, "emptyDir": {"medium": "Memory", "sizeLimit": size}},
        {"name": CACHE, "emptyDir": {}},
    ]
    if config_map is not None:
        found.append({"name": CONFIG, "configMap": {"name": config_map}})
    if inside.mounts:
        source = {"claimName": claim, "readOnly": True}
        found.append({"name": STORE, "persistentVolumeClaim": source})
    return found


def mounts(inside: Contained, *, config: bool) -> list[dict[str, Any]]:
    """Where the container has them."""
    found: list[dict[str, Any]] = [
        {"name": SHM, "mountPath": "/dev/shm"},
        {"name": CACHE, "mountPath": container.HOME},
    ]
    if config:
        place = container.CONFIG_FOLDER
        found.append({"name": CONFIG, "mountPath": place, "readOnly": True})
    if inside.mounts:
        found.append({"name": STORE, "mountPath": MODELS, "readOnly": True})
    return found


def before_use(
    source: ExportInput, folders: Mapping[str, str], claim: str, secret: str
) -> list[str]:
    """What must be there before the pod can start, a line each."""
    lines = []
    if folders:
        lines.append(f"It needs a claim {claim} of your storage with the models:")
        lines += [
            f"- copy {folder} to {place.removeprefix(MODELS)}" for folder, place in folders.items()
        ]
    wanted = secrets.variables(source)
    needed = [name for name, must in wanted.items() if must]
    may = [name for name, must in wanted.items() if not must]
    told = [f"keys {', '.join(needed)} (needed)"] if needed else []
    told += [f"keys {', '.join(may)} (if you use them)"] if may else []
    lines.append(f"Secrets are read from {secret}: {'; '.join(told)}.")
    lines.append(f"- kubectl create secret generic {secret} --from-env-file=FILE")
    if source.measured_on.gpu and not source.measured_on.on_cpu:
        lines.append(
            f"The numbers are those of {source.measured_on.gpu}: choose such nodes, for example "
            "with nodeSelector nvidia.com/gpu.product."
        )
    return lines
