from __future__ import annotations

from typing import Any

import pytest

from sweeper.export.bundle import ExportInput
from sweeper.export.compose import render
from tests.export.conftest import make_source
from tests.export.readers import documents, interpolated
from tests.export.sources import SOURCES


def project(source: ExportInput) -> dict[str, Any]:
    (found,) = documents(render(source)["compose.yaml"].text)
    return dict(found)


@pytest.mark.parametrize("name", SOURCES)
def test_it_is_a_compose_file_by_the_specification(name: str) -> None:
    compose_spec = pytest.importorskip("compose_spec", reason="compose-spec is not installed")
    parsed = compose_spec.PyCompose.from_yaml(render(SOURCES[name]())["compose.yaml"].text)
    parsed.validate()
    assert parsed.service_names() == ["vllm", "gate"]


def test_the_specification_is_strict_enough_to_find_a_misspelt_field() -> None:
    compose_spec = pytest.importorskip("compose_spec", reason="compose-spec is not installed")
    text = render(make_source())["compose.yaml"].text.replace("shm_size:", "shmsize:")
    with pytest.raises(ValueError, match="shmsize"):
        compose_spec.PyCompose.from_yaml(text)


def test_gpus_are_reserved_and_the_user_is_not_root() -> None:
    server = project(SOURCES["gpu"]())["services"]["vllm"]
    (device,) = server["deploy"]["resources"]["reservations"]["devices"]
    assert device == {"driver": "nvidia", "count": 2, "capabilities": ["gpu"]}
    assert server["user"] == "2000:0"
    assert server["shm_size"] == "4gb"


def test_a_cpu_server_gets_whole_cores() -> None:
    server = project(SOURCES["cpu"]())["services"]["vllm"]
    assert (server["cpuset"], server["mem_limit"]) == ("0-1", "23gb")
    assert "deploy" not in server


def test_folders_have_the_path_that_the_configuration_names() -> None:
    source = SOURCES["gpu"]()
    volumes = project(source)["services"]["vllm"]["volumes"]
    bound = {v["target"]: v["source"] for v in volumes if v["type"] == "bind"}
    assert bound == {
        "/etc/vllm/vllm.yaml": "./vllm.yaml",
        source.model_path: source.model_path,
        "/data/models/qwen-draft": "/data/models/qwen-draft",
    }
    assert all(v["read_only"] for v in volumes if v["type"] == "bind")


def test_a_folder_with_a_dollar_is_that_folder() -> None:
    volumes = project(make_source(model_path="/data/$HOME"))["services"]["vllm"]["volumes"]
    assert interpolated(volumes[1]["source"]) == "/data/$HOME"


def test_secrets_are_passed_on_by_name() -> None:
    env = project(make_source())["services"]["vllm"]["environment"]
    assert {name for name, value in env.items() if value is None} == {"HF_TOKEN", "VLLM_API_KEY"}


@pytest.mark.parametrize(
    ("host", "published"),
    [
        ("0.0.0.0", {"host_ip": "0.0.0.0"}),
        ("localhost", {"host_ip": "127.0.0.1"}),
        ("::1", {"host_ip": "::1"}),
        ("inference.example", {}),
    ],
)
def test_it_listens_outside_where_it_was_asked_to(host: str, published: dict[str, str]) -> None:
    server = project(make_source(host=host, port=9000))["services"]["vllm"]
    told = {"target": 9000, "published": "9000", "protocol": "tcp", **published}
    assert server["ports"] == [told]
    assert server["command"][-2:] == ["--host", "0.0.0.0"]


def test_the_proxy_holds_to_the_limit_and_is_only_there_for_one() -> None:
    files = render(make_source())
    assert "limit_conn admitted 8;" in files["nginx.conf"].text
    assert "server vllm:8000;" in files["nginx.conf"].text
    gate = project(make_source())["services"]["gate"]
    assert gate["profiles"] == ["gate"]
    assert gate["volumes"][0]["source"] == "./nginx.conf"
    without = make_source(limit=None)
    assert set(render(without)) == {"compose.yaml", "vllm.yaml"}
    assert set(project(without)["services"]) == {"vllm"}
