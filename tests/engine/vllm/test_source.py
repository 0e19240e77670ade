"""Values read from vLLM's source without running it, in the layouts of several versions."""

from __future__ import annotations

from pathlib import Path

import pytest

from sweeper.engine.vllm.source import read_engine_fields, read_values

QUANTIZATION = "model_executor/layers/quantization/__init__.py"
LAYOUTS = {
    "literal": 'QuantizationMethods = Literal["awq", "fp8"]\nQUANTIZATION_METHODS: list[str] = '
    "list(get_args(QuantizationMethods))\n",
    "list": 'QUANTIZATION_METHODS: List[str] = [\n    "awq",\n    "fp8",\n]\n',
    "mapping": 'QUANTIZATION_METHODS = {"awq": AWQConfig, "fp8": Fp8Config}\n',
}


def write(root: Path, relative: str, text: str) -> None:
    path = root / relative
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_quantization_methods(tmp_path: Path, layout: str) -> None:
    write(tmp_path, QUANTIZATION, "raise ImportError('too heavy')\n" + LAYOUTS[layout])
    assert read_values(tmp_path) == {"quantization": ("awq", "fp8")}


def test_literals_within_literals(tmp_path: Path) -> None:
    write(
        tmp_path,
        "config/speculative.py",
        'MTP = Literal["mtp", "mimo_mtp"]\nEagle = Literal["eagle", MTP]\n'
        'SpeculativeMethod = Literal["ngram", Eagle]\n',
    )
    assert read_values(tmp_path)["spec_method"] == ("ngram", "eagle", "mtp", "mimo_mtp")


def test_members_of_an_enumeration(tmp_path: Path) -> None:
    write(
        tmp_path,
        "v1/attention/backends/registry.py",
        "class AttentionBackendEnum(Enum):\n"
        '    """Words."""\n\n    FLASH_ATTN = "a.b.C"\n    CUSTOM = None\n',
    )
    assert read_values(tmp_path)["attention_backend"] == ("FLASH_ATTN", "CUSTOM")


@pytest.mark.parametrize(
    "text",
    [
        "QuantizationMethods = Literal[",
        "QuantizationMethods = make()",
        'QuantizationMethods = Literal["awq", ELSEWHERE]',
        "QuantizationMethods = Literal[QuantizationMethods]",
        "\x00",
        "",
    ],
)
def test_what_is_not_understood_is_not_known(tmp_path: Path, text: str) -> None:
    """A part of a list would refuse the rest of it."""
    write(tmp_path, QUANTIZATION, text)
    assert read_values(tmp_path) == {}


def test_nothing_is_there(tmp_path: Path) -> None:
    assert read_values(tmp_path / "absent") == {}
    assert read_engine_fields(tmp_path / "absent") == ()


def test_fields_of_the_engine_arguments(tmp_path: Path) -> None:
    write(
        tmp_path,
        "engine/arg_utils.py",
        "@dataclass\nclass EngineArgs:\n    model: str = Model.model\n    max_num_seqs: int = 1\n"
        "    def add(self) -> None: ...\n\n"
        "class AsyncEngineArgs(EngineArgs):\n    other: int = 1\n",
    )
    assert read_engine_fields(tmp_path) == ("model", "max_num_seqs")
