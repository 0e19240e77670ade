"""Kubernetes: ConfigMap, Deployment and Service of one server. Pure."""

from __future__ import annotations

import hashlib
from typing import Any

from sweeper.export import container, machine, pod
from sweeper.export.bundle import ExportInput, File, Files
from sweeper.export.container import Contained
from sweeper.export.origin import origin, tags
from sweeper.export.vllm_config import config_body
from sweeper.export.yaml_text import Block, comments, dump

FILE_NAME = "k8s.yaml"
_PORT_NAME = "http"


def render(source: ExportInput) -> Files:
    """``k8s.yaml``."""
    inside = container.contained(source, pod.MODELS)
    name = container.name_of(source)
    lines = [
        *origin(source),
        "",
        *pod.before_use(source, inside.mounts, f"{name}-models", f"{name}-secrets"),
        *container.notes(source),
        "Downloads and compiled kernels are kept in the volume home for as long as the pod is: a "
        "claim in its place keeps them longer.",
        f"Apply: kubectl apply -f {FILE_NAME}",
    ]
    text = config_body(inside.source)
    documents = [
        config_map(source, name, text),
        deployment(inside, source, name, text),
        service(source, name),
    ]
    return {FILE_NAME: File(comments(lines) + dump(*documents))}


def labels(source: ExportInput, name: str) -> dict[str, str]:
    """Labels that Kubernetes recommends."""
    return {
        "app.kubernetes.io/name": "vllm",
        "app.kubernetes.io/instance": name,
        "app.kubernetes.io/version": source.measured_on.tag,
    }


def selector(name: str) -> dict[str, str]:
    """Labels that tell this deployment's pods from all others, whatever version they run."""
    return {"app.kubernetes.io/name": "vllm", "app.kubernetes.io/instance": name}


def config_map(source: ExportInput, name: str, text: str) -> dict[str, Any]:
    """The vLLM YAML for the container."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": f"{name}-config", "labels": labels(source, name)},
        "data": {container.CONFIG_FILE: Block(text)},
    }


def deployment(inside: Contained, source: ExportInput, name: str, text: str) -> dict[str, Any]:
    """One replica; more of them serve more, each up to the admission limit."""
    digest = hashlib.sha256(text.encode()).hexdigest()
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {
            "name": name,
            "labels": labels(source, name),
            "annotations": tags(source),
        },
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": selector(name)},
            # A second server beside the first would need devices that are seldom free.
            "strategy": {
                "type": "RollingUpdate",
                "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1},
            },
            "template": {
                "metadata": {
                    "labels": labels(source, name),
                    "annotations": {"sweeper/config-sha256": digest},
                },
                "spec": pod_spec(inside, name),
            },
        },
    }


def pod_spec(inside: Contained, name: str) -> dict[str, Any]:
    """The pod: one container, no rights in the cluster."""
    source = inside.source
    drain_s = machine.drain_s(source)
    return {
        "automountServiceAccountToken": False,
        # A Service whose name begins with vllm would set VLLM_... variables that vLLM reads.
        "enableServiceLinks": False,
        "securityContext": {"fsGroup": container.USER_ID},
        "terminationGracePeriodSeconds": drain_s + 30,
        "containers": [
            {
                "name": "vllm",
                "image": source.measured_on.image,
                "command": list(container.COMMAND),
                "args": ["--config", container.CONFIG_PATH],
                "workingDir": container.HOME,
                "env": pod.variables(source, f"{name}-secrets"),
                "ports": [{"name": _PORT_NAME, "containerPort": source.port}],
                **pod.probes(source, _PORT_NAME),
                # Goes on serving while it is taken out of the Service; vLLM itself would abort.
                "lifecycle": {"preStop": {"exec": {"command": ["sleep", str(drain_s)]}}},
                "resources": pod.resources(source),
                "securityContext": pod.security(binds_memory=source.measured_on.on_cpu),
                "volumeMounts": pod.mounts(inside, config=True),
            }
        ],
        "volumes": pod.volumes(inside, config_map=f"{name}-config", claim=f"{name}-models"),
    }


def service(source: ExportInput, name: str) -> dict[str, Any]:
    """Reaches the server from inside the cluster."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "labels": labels(source, name)},
        "spec": {
            "type": "ClusterIP",
            "selector": selector(name),
            "ports": [{"name": _PORT_NAME, "port": source.port, "targetPort": _PORT_NAME}],
        },
    }
