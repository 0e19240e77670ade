from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from sweeper.config.schema import ModelConfig
from sweeper.errors import ModelError
from sweeper.models import hub
from sweeper.models.resolve import facts_only, resolve
from tests.models.fakes import LLAMA

COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture(autouse=True)
def hub_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    for name in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"):
        monkeypatch.delenv(name, raising=False)
    for name in ("HTTPS_PROXY", "https_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    yield tmp_path


def put_snapshot(home: Path, *, weights: bool) -> Path:
    repo = home / "models--org--name"
    snapshot = repo / "snapshots" / COMMIT
    snapshot.mkdir(parents=True)
    (repo / "refs").mkdir()
    (repo / "refs" / "main").write_text(COMMIT)
    (snapshot / "config.json").write_text(json.dumps(LLAMA))
    index = {"weight_map": {"a": "model-1.safetensors", "b": "model-2.safetensors"}}
    (snapshot / "model.safetensors.index.json").write_text(json.dumps(index))
    (snapshot / "model-1.safetensors").write_bytes(b"1" * 10)
    if weights:
        (snapshot / "model-2.safetensors").write_bytes(b"2" * 5)
    return snapshot


@pytest.mark.parametrize("good", ["Qwen/Qwen2.5-7B-Instruct", "a/b", "meta-llama/Llama-3.1-8B"])
def test_well_formed_ids(good: str) -> None:
    assert hub.is_hub_id(good)


@pytest.mark.parametrize(
    "bad", ["gpt2", "a/b/c", "/a/b", "a/", "../a", "a/..", "./a", "~/a", "a b/c", "", "a/b\n"]
)
def test_ill_formed_ids(bad: str) -> None:
    assert not hub.is_hub_id(bad)


def test_a_complete_snapshot_needs_no_network(
    hub_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_snapshot(hub_home, weights=True)
    monkeypatch.setattr(hub, "fetch_snapshot", lambda *_: pytest.fail("the network was asked"))
    model = resolve(ModelConfig(name="n", path="org/name"), hub_home, progress=print)
    assert (model.path, model.source, model.revision) == ("org/name", "hub", COMMIT)
    assert model.size_bytes == 15
    assert model.facts is not None
    assert model.facts.num_layers == 2


def test_a_pinned_revision_is_looked_up(hub_home: Path) -> None:
    put_snapshot(hub_home, weights=True)
    assert hub.cached_snapshot("org/name", COMMIT) is not None
    assert hub.cached_snapshot("org/name", "v9") is None


def test_offline_with_half_a_snapshot(hub_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put_snapshot(hub_home, weights=False)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(ModelError, match="HF_HUB_OFFLINE") as caught:
        resolve(ModelConfig(name="n", path="org/name"), hub_home, progress=print)
    assert "model=smollm2" in caught.value.remedy


def test_no_network_is_noticed_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    from huggingface_hub import constants

    with socket.socket() as taken:  # bound but not listening: connections are refused
        taken.bind(("127.0.0.1", 0))
        endpoint = f"http://127.0.0.1:{taken.getsockname()[1]}"
        monkeypatch.setattr(constants, "ENDPOINT", endpoint)
        with pytest.raises(ModelError, match=r"127\.0\.0\.1 cannot be reached"):
            hub.fetch_snapshot("org/name", None)


@pytest.mark.parametrize(
    ("kind", "match"),
    [
        ("GatedRepoError", "licence"),
        ("RepositoryNotFoundError", "knows no model org/name"),
        ("RevisionNotFoundError", "no revision v1"),
        ("RemoteEntryNotFoundError", r"has no config\.json"),
        ("SomethingElse", "cannot be read from the hub: what it said"),
    ],
)
def test_the_hubs_refusals_are_explained(
    monkeypatch: pytest.MonkeyPatch, kind: str, match: str
) -> None:
    import huggingface_hub

    def refuses(*_: object, **__: object) -> str:
        raise type(kind, (OSError,), {})("what it said\nand more")

    monkeypatch.setattr(huggingface_hub, "hf_hub_download", refuses)
    monkeypatch.setattr(hub, "_require_network", lambda *_: None)
    with pytest.raises(ModelError, match=match) as caught:
        hub.fetch_snapshot("org/name", "v1")
    assert "\n" not in caught.value.message


def test_a_fetched_config_gives_facts_and_commit(
    hub_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import huggingface_hub

    def downloads(*_: object, **__: object) -> str:
        return str(put_snapshot(hub_home, weights=False) / "config.json")

    monkeypatch.setattr(huggingface_hub, "hf_hub_download", downloads)
    monkeypatch.setattr(hub, "_require_network", lambda *_: None)
    said: list[str] = []
    model = resolve(ModelConfig(name="n", path="org/name"), hub_home, progress=said.append)
    assert (model.revision, model.digest, model.size_bytes) == (COMMIT, COMMIT, None)
    assert model.facts is not None
    assert any("downloads it" in line for line in said)


def test_facts_without_the_model_at_hand(hub_home: Path) -> None:
    described = ModelConfig(name="n", path="org/name", facts=LLAMA)
    facts = facts_only(described)
    assert facts is not None
    assert facts.hidden_size == 64
    assert facts_only(ModelConfig(name="n", path="org/name")) is None
    put_snapshot(hub_home, weights=False)
    assert facts_only(ModelConfig(name="n", path="org/name")) is not None
