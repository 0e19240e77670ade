"""KServe: an InferenceService with vLLM's own image. Pure.

KServe's runtime for Hugging Face models brings a vLLM of its own choice; the numbers are those of
the version that was measured, so that it comes as a custom container. Knative takes no added
capability unless it is told to, so that there is none.
"""

from __future__ import annotations

from typing import Any

from sweeper.export import container, pod
from sweeper.export.bundle import ExportInput, File, Files
from sweeper.export.container import Contained
from sweeper.export.kubernetes import config_map, labels
from sweeper.export.origin import origin, tags
from sweeper.export.vllm_config import config_body
from sweeper.export.yaml_text import comments, dump

FILE_NAME = "kserve.yaml"
_TIMEOUT_S = 600
"""The longest that Knative allows unless it is told otherwise."""


def render(source: ExportInput) -> Files:
    """``kserve.yaml``."""
    inside = container.contained(source, pod.MODELS)
    name = container.name_of(source)
    lines = [
        *origin(source),
        "",
        *pod.before_use(source, inside.mounts, f"{name}-models", f"{name}-secrets"),
        *container.notes(source),
        *_limit_notes(source),
        f"A request may take up to {_TIMEOUT_S} s, which is Knative's own maximum "
        "(max-revision-timeout-seconds).",
        *(
            ["In the Knative mode a claim needs kubernetes.podspec-persistent-volume-claim."]
            if inside.mounts
            else []
        ),
        f"Apply: kubectl apply -f {FILE_NAME}",
    ]
    documents = [
        config_map(source, name, config_body(inside.source)),
        inference_service(inside, source, name),
    ]
    return {FILE_NAME: File(comments(lines) + dump(*documents))}


def _limit_notes(source: ExportInput) -> list[str]:
    if source.limit is None:
        return []
    return [
        "containerConcurrency is that limit. Knative holds to it: it queues what is above and adds "
        "replicas up to maxReplicas. In the mode Standard (RawDeployment) KServe ignores it: limit "
        "admission in your gateway there."
    ]


def inference_service(inside: Contained, source: ExportInput, name: str) -> dict[str, Any]:
    """One predictor, one replica; raise maxReplicas to the devices there are."""
    limit = {} if source.limit is None else {"containerConcurrency": source.limit}
    return {
        "apiVersion": "serving.kserve.io/v1beta1",
        "kind": "InferenceService",
        "metadata": {
            "name": name,
            "labels": labels(source, name),
            "annotations": tags(source),
        },
        "spec": {
            "predictor": {
                "minReplicas": 1,
                "maxReplicas": 1,
                **limit,
                "timeout": _TIMEOUT_S,
                "automountServiceAccountToken": False,
                "enableServiceLinks": False,
                "containers": [_server(inside, name)],
                "volumes": pod.volumes(inside, config_map=f"{name}-config", claim=f"{name}-models"),
            }
        },
    }


def _server(inside: Contained, name: str) -> dict[str, Any]:
    source = inside.source
    return {
        "name": "kserve-container",
        "image": source.measured_on.image,
        "command": list(container.COMMAND),
        "args": ["--config", container.CONFIG_PATH],
        "workingDir": container.HOME,
        "env": pod.variables(source, f"{name}-secrets"),
        "ports": [{"containerPort": source.port, "protocol": "TCP"}],
        **pod.probes(source, source.port),
        "resources": pod.resources(source),
        "securityContext": pod.security(),
        "volumeMounts": pod.mounts(inside, config=True),
    }
