"""Checkpoints of others: what their files say, and whether they are there at all."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sweeper.config.schema import QuantizeConfig, RecipeConfig, SpaceConfig, SweeperConfig
from sweeper.errors import ConfigError
from sweeper.estimate.weights import QuantizedWeights
from sweeper.quantize.published import check_paths, published_weights, served_path

PACKED = "compressed-tensors"
COMPRESSED = {
    "quant_method": "compressed-tensors",
    "config_groups": {
        "group_0": {
            "weights": {"num_bits": 8, "group_size": None, "symmetric": True, "type": "int"},
            "input_activations": {"num_bits": 8, "type": "int"},
        }
    },
}


def written(folder: Path, section: Any) -> str:
    folder.mkdir(exist_ok=True)
    (folder / "config.json").write_text(json.dumps({"quantization_config": section}))
    return str(folder)


@pytest.mark.parametrize(
    ("section", "word", "weights"),
    [
        (
            {"quant_method": "awq", "bits": 4, "group_size": 64, "zero_point": True},
            "awq",
            QuantizedWeights("x", 4, 64, symmetric=False, made=False),
        ),
        (
            {"quant_method": "gptq", "bits": 8, "group_size": -1, "sym": True, "desc_act": True},
            "gptq",
            QuantizedWeights("x", 8, None, act_order=True, made=False),
        ),
        (COMPRESSED, PACKED, QuantizedWeights("x", 8, activations="int8", made=False)),
        ({"quant_method": "mxfp4"}, "mxfp4", None),
        ({"quant_method": "compressed-tensors", "config_groups": []}, "compressed-tensors", None),
        ({"bits": 4}, None, None),
        ([], None, None),
    ],
)  # fmt: skip
def test_what_a_checkpoint_says_of_itself(
    tmp_path: Path, section: Any, word: str | None, weights: QuantizedWeights | None
) -> None:
    assert published_weights("x", written(tmp_path / "x", section)) == (word, weights)


def test_float_activations_are_told_apart(tmp_path: Path) -> None:
    section = json.loads(json.dumps(COMPRESSED).replace('"type": "int"}}', '"type": "float"}}'))
    weights = published_weights("x", written(tmp_path / "x", section))[1]
    assert weights is not None
    assert weights.activations == "fp8"


def test_what_is_not_here_says_nothing(tmp_path: Path) -> None:
    assert published_weights("x", "org/never-fetched") == (None, None)
    assert published_weights("x", "/models/x.Q4_K_M.GGUF") == ("gguf", None)
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "config.json").write_text("{")
    assert published_weights("x", str(broken)) == (None, None)


def test_a_local_path_is_made_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path)
    assert served_path("here") == str(tmp_path / "here")
    assert served_path("org/model") == "org/model"


def config(**recipe: Any) -> SweeperConfig:
    recipes = {"x": RecipeConfig(**recipe)}
    return SweeperConfig(quantize=QuantizeConfig(recipes=recipes))


@pytest.mark.parametrize(
    ("recipe", "cause"),
    [
        ({"tool": "published", "path": "/no/such"}, "there is no such file or folder"),
        ({"tool": "published", "path": "org/x.gguf"}, "there is no such file or folder"),
        ({"tool": "published", "path": "{tmp}"}, "the folder has no config.json"),
        ({"tool": "autoawq", "calibration": "/no/texts"}, "the file does not exist"),
        ({"tool": "autoawq", "calibration": "{tmp}"}, "the file is a folder"),
    ],
)
def test_what_is_not_there_is_refused(tmp_path: Path, recipe: dict[str, str], cause: str) -> None:
    given = {key: value.format(tmp=tmp_path) for key, value in recipe.items()}
    with pytest.raises(ConfigError) as raised:
        check_paths(config(**given))
    assert cause in raised.value.message
    assert raised.value.message.startswith("quantize.recipes.x.")


def test_what_is_there_is_accepted(tmp_path: Path) -> None:
    texts, gguf = tmp_path / "texts.txt", tmp_path / "x.gguf"
    for path in (texts, gguf):
        path.write_text("text")
    check_paths(config(tool="published", path="org/model"))
    check_paths(config(tool="published", path=str(gguf)))
    check_paths(config(tool="published", path=written(tmp_path / "folder", {})))
    check_paths(config(tool="autoawq", calibration=str(texts)))
    check_paths(config(tool="autoawq", calibration="builtin"))
    check_paths(config(tool="autoawq"))


@pytest.mark.parametrize("form", [["builtin", "/no/texts"], {"choices": ["/no/texts"]}])
def test_searched_texts_must_be_there_too(form: Any) -> None:
    cfg = config(tool="autoawq")
    cfg.space = SpaceConfig(parameters={"quantize.calibration": form})
    with pytest.raises(ConfigError, match=r"parameters\.quantize\.calibration=/no/texts"):
        check_paths(cfg)
