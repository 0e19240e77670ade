"""The verb `estimate`: offline, from a config.json alone, as a table and as JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sweeper.errors import ConfigError, ModelError
from sweeper.verbs import estimate

CONFIG = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "num_hidden_layers": 32,
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "vocab_size": 128256,
    "max_position_embeddings": 131072,
    "torch_dtype": "bfloat16",
    "tie_word_embeddings": False,
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    return tmp_path


def told(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert estimate.run(list(arguments)) == 0
    return capsys.readouterr().out


def as_json(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    found = json.loads(told(capsys, "format=json", *arguments))
    assert isinstance(found, dict)
    return found


def test_a_folder_with_nothing_but_a_config_is_enough(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = told(capsys, f"model.path={folder}", "hardware=h100_80gb", "space=none")
    assert "on 1 x h100_80gb (predicted)" in text
    rows = [line.split() for line in text.splitlines() if line.startswith("  default ")]
    assert rows[0][1] == "14.99"  # as an engine loads it
    assert rows[0][6] == "16.00"  # 131,072 tokens of 128 KiB
    assert "Speed of light" in text


def test_json_has_the_table_with_its_ranges(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = as_json(capsys, f"model.path={folder}", "hardware=t4", "space=quantization")
    assert found["hardware"] == "t4"
    assert found["corners"][0]["memory"]["verdict"] == "does_not"
    assert found["corners"][0]["memory"]["margin_gib"] < 0
    assert found["space"]["by_rule"]["weights_fit"]["cause"]
    assert found["defaults_refused"]
    names = [corner["name"] for corner in found["corners"]]
    assert names[0] == "default"


def test_flags_of_every_launch_count(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ("model=qwen7b", "hardware=h100_80gb", "space=none")

    def usable(*more: str) -> float:
        found = as_json(capsys, *asked, *more)
        return float(found["corners"][0]["memory"]["available_gib"])

    whole = usable()
    assert usable("+engine.args.gpu_memory_utilization=0.46") == pytest.approx(whole / 2, rel=1e-3)


def test_a_wrong_format_and_a_wrong_folder_are_told(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as raised:
        estimate.run(["format=jso", "model=qwen7b"])
    assert "did you mean format=json?" in raised.value.remedy
    with pytest.raises(ModelError):
        estimate.run([f"model.path={tmp_path}", "hardware=t4"])
