from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from sweeper.config.compose import compose
from sweeper.config.schema import ModelConfig
from sweeper.errors import ConfigError, ModelError
from sweeper.models import conversion, embedded
from sweeper.models.resolve import (
    config_only,
    described,
    facts_only,
    resolve,
    short_name,
    source_of,
)
from tests.models.fakes import LLAMA, fake_model, put_wheel, write_model, write_worker


def test_a_local_folder(tmp_path: Path) -> None:
    folder = write_model(tmp_path / "Mine")
    model = resolve(ModelConfig(path=str(folder)), tmp_path, progress=print)
    assert (model.path, model.source, model.size_bytes) == (str(folder), "local", 700)
    assert model.facts is not None
    assert model.facts.vocab_size == 100
    assert model.name == "mine"
    assert model.licence is None, "the default group's licence is not this model's"


def test_the_digest_follows_the_content(tmp_path: Path) -> None:
    folder = write_model(tmp_path / "m")
    config = ModelConfig(path=str(folder))
    before = resolve(config, tmp_path, progress=print).digest
    assert resolve(config, tmp_path, progress=print).digest == before
    (folder / "model.safetensors").write_bytes(b"WEIGHTS" * 100)
    assert resolve(config, tmp_path, progress=print).digest != before


def test_a_missing_path_is_not_taken_for_a_hub_id(tmp_path: Path) -> None:
    for path in (str(tmp_path / "none"), "./none", "~/none", "none", "a/b/c"):
        with pytest.raises(ModelError, match="no such folder"):
            source_of(ModelConfig(path=path))


def test_a_local_source_must_exist(tmp_path: Path) -> None:
    config = ModelConfig(path="org/name", source="local")
    with pytest.raises(ModelError, match="no such folder"):
        resolve(config, tmp_path, progress=print)


def test_a_folder_without_config_is_named(tmp_path: Path) -> None:
    (tmp_path / "m").mkdir()
    config = ModelConfig(path=str(tmp_path / "m"))
    with pytest.raises(ModelError, match=r"has no config\.json") as caught:
        resolve(config, tmp_path, progress=print)
    assert str(tmp_path / "m") in caught.value.message
    with pytest.raises(ModelError, match=r"has no config\.json"):
        facts_only(config)


def test_a_file_in_place_of_a_folder(tmp_path: Path) -> None:
    (tmp_path / "model.gguf").write_bytes(b"GGUF")
    with pytest.raises(ModelError, match="is a file"):
        resolve(ModelConfig(path=str(tmp_path / "model.gguf")), tmp_path, progress=print)


def test_a_truncated_config_is_named(tmp_path: Path) -> None:
    folder = write_model(tmp_path / "m")
    (folder / "config.json").write_text(json.dumps(LLAMA)[:50])
    with pytest.raises(ModelError, match="not valid JSON"):
        resolve(ModelConfig(path=str(folder)), tmp_path, progress=print)


def test_an_interrupted_copy_is_noticed(tmp_path: Path) -> None:
    folder = write_model(tmp_path / "m")
    index = {"weight_map": {"a": "model.safetensors", "b": "model-2.safetensors"}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    with pytest.raises(ModelError, match=r"lacks 1 of 2 weight files, model-2\.safetensors"):
        resolve(ModelConfig(path=str(folder)), tmp_path, progress=print)


def test_a_folder_without_weights_is_let_through_with_a_word(tmp_path: Path) -> None:
    folder = write_model(tmp_path / "m")
    (folder / "model.safetensors").unlink()
    said: list[str] = []
    model = resolve(ModelConfig(path=str(folder)), tmp_path, progress=said.append)
    assert model.size_bytes is None
    assert any("no weights" in line for line in said)


def test_an_unknown_shape_is_no_reason_to_refuse(tmp_path: Path) -> None:
    folder = write_model(tmp_path / "m", {"model_type": "mamba", "hidden_size": 8})
    said: list[str] = []
    assert resolve(ModelConfig(path=str(folder)), tmp_path, progress=said.append).facts is None
    assert any("num_attention_heads" in line for line in said)


def test_the_embedded_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = write_worker(tmp_path / "worker.py", tmp_path / "calls")
    monkeypatch.setattr(conversion, "_WORKER", script)
    monkeypatch.setattr(embedded, "EMBEDDED", {"smollm2": fake_model()})
    put_wheel(tmp_path)
    before = set(sys.modules)  # other tests of this process may have imported it
    model = resolve(ModelConfig(), tmp_path, progress=print)
    assert (model.name, model.source, model.licence) == ("smollm2", "embedded", "Apache-2.0")
    assert Path(model.path).is_relative_to(tmp_path)
    assert model.size_bytes == (Path(model.path) / "model.safetensors").stat().st_size
    assert "torch" not in set(sys.modules) - before


def test_facts_of_the_embedded_model_need_no_download() -> None:
    facts = facts_only(ModelConfig())
    assert facts is not None
    assert (facts.num_heads, facts.parameters) == (9, 134_515_008)


def test_facts_of_the_default_group_are_not_another_models(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    default = ModelConfig(name="smollm2", path="org/Other-1B", facts=dict(LLAMA))
    assert facts_only(default) is None
    assert short_name(default) == "other-1b"
    assert short_name(ModelConfig(name="qwen7b", path="org/Other-1B")) == "qwen7b"


def test_a_model_by_description_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    model = described(ModelConfig(name="big", path="org/Big-70B", licence="mit", facts=dict(LLAMA)))
    assert (model.name, model.path, model.source) == ("big", "org/Big-70B", "described")
    assert (model.licence, model.digest, model.size_bytes) == ("mit", None, None)
    assert model.facts is not None
    assert described(ModelConfig()).path == "smollm2"
    assert not list(tmp_path.iterdir())


def test_a_config_json_without_download(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    described = ModelConfig(name="big", path="org/Big-70B", facts=dict(LLAMA))
    assert config_only(described) == LLAMA
    assert config_only(ModelConfig())["architectures"] == ["LlamaForCausalLM"]
    (tmp_path / "config.json").write_text(json.dumps({**LLAMA, "rope_theta": 7}))
    local = ModelConfig(name="big", path=str(tmp_path), facts=dict(LLAMA))
    assert config_only(local)["rope_theta"] == 7, "the folder's own file says more"
    with pytest.raises(ModelError, match="nothing is known of the shape of org/x"):
        config_only(ModelConfig(name="n", path="org/x"))


def test_sources_are_checked() -> None:
    with pytest.raises(ConfigError, match=r"model\.source"):
        source_of(ModelConfig(source="cloud"))
    with pytest.raises(ModelError, match=r"needs model\.path"):
        source_of(ModelConfig(source="hub"))
    with pytest.raises(ModelError, match="not embedded"):
        facts_only(ModelConfig(name="other"))


@pytest.mark.parametrize("name", ["smollm2", "qwen7b", "qwen3_8b", "llama3_8b"])
def test_a_path_beside_a_named_model_must_exist(name: str) -> None:
    """A preset's facts must not stand in for a folder that is not there."""
    cfg = compose([f"model={name}", "model.path=/no/such/folder"], validate=False)
    with pytest.raises(ModelError, match="/no/such/folder"):
        facts_only(cfg.model)
