"""KServe publishes its schema in a package that cannot be installed beside this one (it pins psutil
below 6), so that the fields of `PredictorSpec` are listed here as version 0.21 has them; the pod in
it is held to the schemas of Kubernetes."""

from __future__ import annotations

from typing import Any

import kubernetes_validate
import pytest

from sweeper.export.bundle import ExportInput
from sweeper.export.kserve import render
from tests.export.conftest import make_source
from tests.export.readers import documents, unwrapped
from tests.export.sources import SOURCES

# Fields of ComponentExtensionSpec that are no fields of a pod, with their types.
EXTENSIONS: dict[str, type] = {
    "annotations": dict,
    "autoScaling": dict,
    "batcher": dict,
    "canaryTrafficPercent": int,
    "containerConcurrency": int,
    "deploymentStrategy": dict,
    "labels": dict,
    "logger": dict,
    "maxReplicas": int,
    "minReplicas": int,
    "scaleMetric": str,
    "scaleMetricType": str,
    "scaleTarget": int,
    "timeout": int,
}
# What Knative lets through of a pod without being told to; volumes by kind.
KNATIVE_POD = {"automountServiceAccountToken", "enableServiceLinks", "containers", "volumes"}


def service(source: ExportInput) -> dict[str, Any]:
    found: dict[str, Any] = documents(render(source)["kserve.yaml"].text)[1]
    return found


@pytest.mark.parametrize("name", SOURCES)
def test_the_service_has_fields_that_kserve_knows(name: str) -> None:
    found = service(SOURCES[name]())
    assert (found["apiVersion"], found["kind"]) == (
        "serving.kserve.io/v1beta1",
        "InferenceService",
    )
    assert set(found) == {"apiVersion", "kind", "metadata", "spec"}
    assert set(found["spec"]) == {"predictor"}
    predictor = dict(found["spec"]["predictor"])
    for field in set(predictor) & set(EXTENSIONS):
        assert type(predictor.pop(field)) is EXTENSIONS[field]
    assert set(predictor) == KNATIVE_POD
    labels = {"a": "b"}
    pod = {"metadata": {"labels": labels}, "spec": predictor}
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "x"},
        "spec": {"selector": {"matchLabels": labels}, "template": pod},
    }
    kubernetes_validate.validate(deployment, "1.30", strict=True)


def test_its_container_is_the_one_that_kserve_looks_for() -> None:
    (container,) = service(make_source())["spec"]["predictor"]["containers"]
    assert container["name"] == "kserve-container"
    assert len(container["ports"]) == 1
    assert "add" not in container["securityContext"]["capabilities"]


def test_the_limit_is_its_concurrency() -> None:
    predictor = service(make_source())["spec"]["predictor"]
    assert predictor["containerConcurrency"] == 8
    assert "KServe ignores it" in unwrapped(render(make_source())["kserve.yaml"].text)
    without = make_source(limit=None)
    assert "containerConcurrency" not in render(without)["kserve.yaml"].text
