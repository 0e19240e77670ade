from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweeper.quantize.product import Precision, fault_of, precision_of, safetensors_header
from sweeper.quantize.recipe import PER_CHANNEL, Recipe
from tests.quantize.fake_worker import fill
from tests.quantize.fakes import RECIPE

COMPRESSED = "compressed-tensors"
INDEX = "model.safetensors.index.json"


def product(folder: Path, recipe: Recipe = RECIPE, **say: Any) -> Path:
    fill(folder, recipe.to_dict(), say)
    return folder


def test_what_was_asked_for_is_in_order(tmp_path: Path) -> None:
    assert fault_of(product(tmp_path), RECIPE, COMPRESSED) is None


@pytest.mark.parametrize(
    ("say", "says", "for_good"),
    [
        ({"bits": 8}, "bits 8, asked for was 4", True),
        ({"infinite": True}, "layers.0.weight_scale", True),
        ({"cut_off": True}, "bytes, its table says", False),
        ({"tokenizer": False}, "tokenizer", False),
    ],
)
def test_what_a_tool_may_get_wrong(
    tmp_path: Path, say: dict[str, Any], says: str, for_good: bool
) -> None:
    found = fault_of(product(tmp_path, **say), RECIPE, COMPRESSED)
    assert found is not None
    assert says in found.cause
    assert found.for_good is for_good


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"group_size": 128}, "group_size 64, asked for was 128"),
        ({"group_size": PER_CHANNEL}, "group_size"),
        ({"symmetric": False}, "symmetric True"),
    ],
)
def test_another_precision_than_asked_for(
    tmp_path: Path, changes: dict[str, Any], says: str
) -> None:
    found = fault_of(product(tmp_path), replace(RECIPE, **changes), COMPRESSED)
    assert found is not None and says in found.cause


def test_another_method_than_asked_for(tmp_path: Path) -> None:
    found = fault_of(product(tmp_path), RECIPE, "awq")
    assert found is not None and "quant_method compressed-tensors" in found.cause


@pytest.mark.parametrize(
    "damage",
    [
        lambda m: (m / "config.json").unlink(),
        lambda m: (m / "config.json").write_text("{"),
        lambda m: (m / "config.json").write_text("[]"),
        lambda m: (m / "config.json").write_text('{"quantization_config": null}'),
        lambda m: (m / "config.json").write_text(
            '{"quantization_config": {"quant_method": "compressed-tensors"}}'
        ),
        lambda m: (m / "model.safetensors").unlink(),
        lambda m: (m / "model.safetensors").rename(m / "model.bin"),
        lambda m: (m / "model.safetensors").write_bytes(b""),
        lambda m: (m / "model.safetensors").write_bytes(b"\xff" * 64),
        lambda m: (m / "model.safetensors").write_bytes((2).to_bytes(8, "little") + b"[]"),
        lambda m: (m / INDEX).write_text('{"weight_map": {"a": "model-2.safetensors"}}'),
        lambda m: (m / INDEX).write_text('{"weight_map": {"a": "model.safetensors"}}'),
        lambda m: (m / INDEX).write_text("{"),
    ],
)
def test_damage_is_a_fault_and_never_an_exception(
    tmp_path: Path, damage: Callable[[Path], Any]
) -> None:
    damage(product(tmp_path))
    found = fault_of(tmp_path, RECIPE, COMPRESSED)
    assert found is not None and found.cause and "\n" not in found.cause


@given(st.binary(max_size=200))
def test_any_bytes_are_no_safetensors_or_have_a_table(
    tmp_path_factory: pytest.TempPathFactory, blob: bytes
) -> None:
    path = tmp_path_factory.getbasetemp() / "any.safetensors"
    path.write_bytes(blob)
    try:
        table = safetensors_header(path)
    except (ValueError, TypeError, KeyError, AttributeError):
        return
    assert isinstance(table, dict)


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        (
            {"quant_method": "awq", "bits": 4, "group_size": 128, "zero_point": True},
            Precision("awq", 4, 128, False),
        ),
        ({"quant_method": "awq", "w_bit": 4}, Precision("awq", 4)),
        (
            {"quant_method": "gptq", "bits": 4, "group_size": -1, "sym": True, "desc_act": False},
            Precision("gptq", 4, -1, True),
        ),
        (
            {
                "quant_method": COMPRESSED,
                "config_groups": {
                    "group_0": {
                        "weights": {
                            "num_bits": 8,
                            "strategy": "channel",
                            "group_size": None,
                            "symmetric": True,
                        }
                    }
                },
            },
            Precision(COMPRESSED, 8, PER_CHANNEL, True),
        ),
    ],
)
def test_how_each_format_says_its_precision(told: dict[str, Any], expected: Precision) -> None:
    assert precision_of(json.loads(json.dumps({"quantization_config": told}))) == expected
