"""A model's folder for old libraries, and the checkpoint that comes out of a tool's leavings."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

CONFIG = {
    "model_type": "llama",
    "dtype": "bfloat16",
    "rope_parameters": {"rope_theta": 100000.0, "rope_type": "default"},
}


@pytest.fixture
def folder(side_folders: None) -> Any:
    import quantize_folder

    return quantize_folder


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "model"
    path.mkdir()
    for name, content in {
        "config.json": CONFIG,
        "tokenizer_config.json": {"tokenizer_class": "TokenizersBackend", "backend": "tokenizers"},
        "tokenizer.json": {"version": "1.0"},
        "generation_config.json": {"eos_token_id": 2},
        "sweeper_manifest.json": {"ours": True},
        "model.safetensors.index.json": {"weight_map": {}},
    }.items():
        (path / name).write_text(json.dumps(content), encoding="utf-8")
    (path / "model-00001-of-00001.safetensors").write_bytes(b"big")
    (path / "chat_template.jinja").write_text("{{ messages }}", encoding="utf-8")
    (path / "LICENSE").write_text("Apache", encoding="utf-8")
    (path / "README.md").write_text("# Model", encoding="utf-8")
    return path


def contents(path: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in path.iterdir()}


def test_old_libraries_get_a_folder_of_their_own(folder: Any, model: Path, tmp_path: Path) -> None:
    before = contents(model)
    old = folder.for_old_transformers(model, tmp_path / "old")
    assert contents(model) == before
    assert folder.read_json(old / "config.json") == {
        "model_type": "llama",
        "torch_dtype": "bfloat16",
        "rope_theta": 100000.0,
    }
    tokenizer = folder.read_json(old / "tokenizer_config.json")
    assert tokenizer == {"tokenizer_class": "PreTrainedTokenizerFast"}
    assert (old / "model-00001-of-00001.safetensors").read_bytes() == b"big"
    assert (old / "tokenizer.json").is_symlink()


def test_a_tokenizer_that_is_understood_is_left_alone(
    folder: Any, model: Path, tmp_path: Path
) -> None:
    named = {"tokenizer_class": "Qwen2Tokenizer"}
    folder.write_json(model / "tokenizer_config.json", named)
    old = folder.for_old_transformers(model, tmp_path / "old")
    assert (old / "tokenizer_config.json").is_symlink()


@given(
    rope=st.one_of(
        st.none(),
        st.fixed_dictionaries(
            {"rope_theta": st.floats(1, 1e7)},
            optional={"rope_type": st.sampled_from(["default", "yarn"]), "factor": st.floats(1, 8)},
        ),
    ),
    others=st.dictionaries(st.sampled_from(["hidden_size", "vocab_size"]), st.integers(1, 9)),
)
def test_rotary_parameters_survive_the_old_words(
    rope: dict[str, Any] | None, others: dict[str, int]
) -> None:
    import quantize_folder

    new = {**others, **({} if rope is None else {"rope_parameters": rope})}
    old = quantize_folder.config_for_old(new)
    assert "rope_parameters" not in old
    assert others.items() <= old.items()
    assert old.get("rope_theta") == (rope or {}).get("rope_theta")
    scaled = (rope or {}).get("rope_type", "default") != "default"
    assert ("rope_scaling" in old) == scaled
    if scaled:
        assert rope is not None
        assert old["rope_scaling"] == {k: v for k, v in rope.items() if k != "rope_theta"}


def test_a_config_in_old_words_stays_as_it_is(folder: Any) -> None:
    old = {"torch_dtype": "float16", "rope_theta": 5.0, "rope_scaling": {"rope_type": "yarn"}}
    assert folder.config_for_old(old) == old


def test_a_checkpoint_is_the_tools_weights_and_the_models_rest(
    folder: Any, model: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    (out / "leftover").mkdir(parents=True)
    for name in ("model.safetensors", "model.safetensors.index.json", "quant_log.csv"):
        (out / name).write_text("tool's", encoding="utf-8")
    (out / "tokenizer.json").write_text("degraded", encoding="utf-8")
    folder.finish(out, model, {"quant_method": "awq"}, dtype="float16")
    assert sorted(contents(out)) == [
        "LICENSE",
        "chat_template.jinja",
        "config.json",
        "generation_config.json",
        "model.safetensors",
        "model.safetensors.index.json",
        "tokenizer.json",
        "tokenizer_config.json",
    ]
    for name in ("tokenizer.json", "tokenizer_config.json", "chat_template.jinja"):
        assert (out / name).read_bytes() == (model / name).read_bytes()
    assert (out / "model.safetensors.index.json").read_text(encoding="utf-8") == "tool's"
    expected = {**CONFIG, "dtype": "float16", "quantization_config": {"quant_method": "awq"}}
    assert folder.read_json(out / "config.json") == expected


def test_the_type_is_written_in_the_models_own_word(
    folder: Any, model: Path, tmp_path: Path
) -> None:
    folder.write_json(model / "config.json", {"torch_dtype": "bfloat16"})
    out = tmp_path / "out"
    out.mkdir()
    (out / "model.safetensors").write_bytes(b"w")
    folder.finish(out, model, {}, dtype="float16")
    config = folder.read_json(out / "config.json")
    assert config == {"torch_dtype": "float16", "quantization_config": {}}


def test_a_tool_that_left_no_weights_failed(folder: Any, model: Path, tmp_path: Path) -> None:
    import worker_protocol

    out = tmp_path / "out"
    out.mkdir()
    with pytest.raises(worker_protocol.WorkerError, match="no safetensors"):
        folder.finish(out, model, {})


@pytest.mark.parametrize(
    ("config", "dtype"),
    [
        ({"dtype": "bfloat16"}, "bfloat16"),
        ({"torch_dtype": "float16"}, "float16"),
        ({"text_config": {"dtype": "bfloat16"}}, "bfloat16"),
        ({}, None),
    ],
)
def test_the_type_that_weights_are_stored_in(
    folder: Any, model: Path, config: dict[str, Any], dtype: str | None
) -> None:
    folder.write_json(model / "config.json", config)
    assert folder.stored_dtype(model) == dtype


def test_a_folder_needs_no_hub(folder: Any, model: Path) -> None:
    assert folder.fetch(str(model), None) == model
