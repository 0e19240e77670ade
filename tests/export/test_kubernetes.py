from __future__ import annotations

from typing import Any

import kubernetes_validate
import pytest

from sweeper.export.bundle import ExportInput
from sweeper.export.kubernetes import render
from sweeper.export.measured_on import MeasuredOn
from tests.export.conftest import make_source
from tests.export.readers import documents, unwrapped
from tests.export.sources import SOURCES

VERSIONS = ("1.30", "1.37")


def parts(source: ExportInput) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """ConfigMap, pod and Service."""
    config, deployment, service = documents(render(source)["k8s.yaml"].text)
    return config, deployment["spec"]["template"]["spec"], service


def server(source: ExportInput) -> dict[str, Any]:
    found: dict[str, Any] = parts(source)[1]["containers"][0]
    return found


@pytest.mark.parametrize("name", SOURCES)
def test_every_object_is_one_by_the_published_schemas(name: str) -> None:
    for document in documents(render(SOURCES[name]())["k8s.yaml"].text):
        for version in VERSIONS:
            kubernetes_validate.validate(document, version, strict=True)


def test_the_schemas_are_strict_enough_to_find_a_misspelt_field() -> None:
    deployment = documents(render(make_source())["k8s.yaml"].text)[1]
    pod = deployment["spec"]["template"]["spec"]
    pod["containers"][0]["securitycontext"] = pod["containers"][0].pop("securityContext")
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(deployment, VERSIONS[0], strict=True)


def test_the_server_gets_its_gpus_and_its_image() -> None:
    found = server(SOURCES["gpu"]())
    assert found["image"] == "vllm/vllm-openai:v0.33.0"
    assert found["resources"]["limits"] == {"nvidia.com/gpu": "2"}
    assert found["resources"]["requests"]["nvidia.com/gpu"] == "2"


def test_a_cpu_server_has_cores_and_memory_of_its_own() -> None:
    found = server(SOURCES["cpu"]())
    assert found["image"] == "vllm/vllm-openai-cpu:v0.32.0"
    assert found["resources"]["limits"] == {"cpu": "2", "memory": "23Gi"}
    assert found["resources"]["requests"] == found["resources"]["limits"]
    assert found["securityContext"]["capabilities"] == {"drop": ["ALL"], "add": ["SYS_NICE"]}


def test_secrets_are_references_and_needed_where_they_were_there() -> None:
    entries = server(make_source(flags={}))["env"]
    refs = {e["name"]: e["valueFrom"]["secretKeyRef"] for e in entries if "valueFrom" in e}
    assert {name: ref["optional"] for name, ref in refs.items()} == {
        "HF_TOKEN": False,
        "VLLM_API_KEY": True,
    }
    assert {ref["name"] for ref in refs.values()} == {"vllm-tiny-secrets"}


def test_models_of_this_machine_are_read_from_a_claim() -> None:
    source = SOURCES["gpu"]()
    config, pod, _ = parts(source)
    (model, draft) = ("/models/9f3c1a7be0d24c55", "/models/qwen-draft")
    assert f"model: {model}\n" in config["data"]["vllm.yaml"]
    assert f"model: {draft}\n" in config["data"]["vllm.yaml"]
    claims = [v["persistentVolumeClaim"] for v in pod["volumes"] if "persistentVolumeClaim" in v]
    assert claims == [{"claimName": "vllm-qwen7b-models", "readOnly": True}]
    told = unwrapped(render(source)["k8s.yaml"].text)
    assert "copy /data/checkpoints/9f3c1a7be0d24c55 to /9f3c1a7be0d24c55" in told
    assert "claim" not in str(parts(make_source())[1]).lower()


def test_shared_memory_is_memory() -> None:
    _, pod, _ = parts(SOURCES["gpu"]())
    (shm,) = [volume for volume in pod["volumes"] if volume["name"] == "shm"]
    assert shm["emptyDir"] == {"medium": "Memory", "sizeLimit": "4Gi"}
    assert {"name": "shm", "mountPath": "/dev/shm"} in pod["containers"][0]["volumeMounts"]


def test_probes_wait_for_a_start_and_stops_wait_for_requests() -> None:
    source = make_source(measured_on=MeasuredOn(ready_s=1000.0))
    _, pod, _ = parts(source)
    found = pod["containers"][0]
    assert found["startupProbe"]["failureThreshold"] == 400
    assert found["startupProbe"]["httpGet"] == {"path": "/health", "port": "http"}
    assert found["lifecycle"]["preStop"]["exec"]["command"] == ["sleep", "5"]
    assert pod["terminationGracePeriodSeconds"] == 35


def test_the_pod_has_no_rights_and_no_links() -> None:
    _, pod, _ = parts(make_source())
    assert pod["automountServiceAccountToken"] is False
    # A Service called vllm-... would set VLLM_PORT, which vLLM takes for its own.
    assert pod["enableServiceLinks"] is False
    rights = pod["containers"][0]["securityContext"]
    assert rights["runAsNonRoot"] is True
    assert rights["allowPrivilegeEscalation"] is False
    assert rights["capabilities"] == {"drop": ["ALL"]}


def test_the_service_reaches_the_pods() -> None:
    _, deployment, service = documents(render(make_source(port=9000))["k8s.yaml"].text)
    labels = deployment["spec"]["template"]["metadata"]["labels"]
    assert service["spec"]["selector"].items() <= labels.items()
    assert deployment["spec"]["selector"]["matchLabels"] == service["spec"]["selector"]
    assert service["spec"]["ports"][0]["port"] == 9000


def test_another_configuration_starts_other_pods() -> None:
    def digest(**flags: int) -> str:
        deployment = documents(render(make_source(flags=flags))["k8s.yaml"].text)[1]
        found: str = deployment["spec"]["template"]["metadata"]["annotations"][
            "sweeper/config-sha256"
        ]
        return found

    assert digest(max_num_seqs=1) != digest(max_num_seqs=2)
    assert digest(max_num_seqs=1) == digest(max_num_seqs=1)


def test_provenance_is_there_for_machines_too() -> None:
    annotations = documents(render(SOURCES["gpu"]())["k8s.yaml"].text)[1]["metadata"]["annotations"]
    assert annotations["sweeper/study"] == "chat-h200"
    assert annotations["sweeper/confirmed"] == "true"
    assert annotations["sweeper/admission-limit"] == "8"
    assert annotations["sweeper/checkpoint-digest"] == "d41c88f0b1e64c0a9a6f2f7f3f1d5e77"
    assert "149.7 output tokens/s [147.7, 151.7]" in annotations["sweeper/numbers"]
