"""Engines by name."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from sweeper.config.schema import EngineConfig
from sweeper.engine.registry import ENGINES, create
from sweeper.errors import ConfigError

EXAMPLE = Path(__file__).resolve().parents[2] / "studies" / "example-smollm2-cpu"
NEEDS = {"openai": {"base_url": "http://127.0.0.1:1"}, "replay": {"table": str(EXAMPLE)}}
DIRECT = {"vllm_offline", "simulate", "replay"}


@pytest.mark.parametrize("name", sorted(ENGINES))
def test_every_engine_can_be_made(name: str, tmp_path: Path) -> None:
    engine = create(EngineConfig(name=name, **NEEDS.get(name, {})), cache_dir=tmp_path)
    assert engine.name == name
    assert engine.kind == ("direct" if name in DIRECT else "served")
    assert engine.needs_checkpoint is (name not in {"openai", "replay"})


def test_unknown_name_gets_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="vlm") as caught:
        create(EngineConfig(name="vlm"), cache_dir=tmp_path)
    assert "'vllm'" in caught.value.remedy


def test_unknown_dial_gets_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="decode_m") as caught:
        create(EngineConfig(name="mock", options={"decode_m": 1}), cache_dir=tmp_path)
    assert "'decode_ms'" in caught.value.remedy


@pytest.mark.parametrize(
    "faults", [{"die_at": "noon"}, {"dye_at": "start"}, [{"http_500_after": "many"}]]
)
def test_bad_fault_is_refused(tmp_path: Path, faults: object) -> None:
    with pytest.raises(ConfigError, match=r"faults\[0\]"):
        create(EngineConfig(name="mock", options={"faults": faults}), cache_dir=tmp_path)


@pytest.mark.parametrize(
    ("options", "key"),
    [
        ({"faults": [1]}, r"faults\[0\]"),
        ({"faults": [{}, "foo"]}, r"faults\[1\]"),
        ({"faults": "foo"}, "faults"),
        ({"faults": 5}, "faults"),
        ({"faults": {"when": "foo"}}, r"faults\[0\]\.when"),
        ({"quality_loss": "foo"}, "quality_loss"),
        ({"quality_loss": {"fp8": "foo"}}, r"quality_loss\.fp8"),
        ({"acceptance": [1]}, "acceptance"),
    ],
)
def test_dial_of_another_shape_is_refused_by_its_key(
    tmp_path: Path, options: dict[str, object], key: str
) -> None:
    with pytest.raises(ConfigError, match=rf"engine\.options\.{key}") as caught:
        create(EngineConfig(name="mock", options=options), cache_dir=tmp_path)
    assert caught.value.remedy


def test_mock_is_marked_as_predicted(tmp_path: Path) -> None:
    assert create(EngineConfig(name="mock"), cache_dir=tmp_path).facts().predicted


def test_making_engines_imports_nothing_heavy(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path\n"
        "from sweeper.config.schema import EngineConfig\n"
        "from sweeper.engine.registry import create\n"
        "for name in ('vllm', 'mock'): create(EngineConfig(name=name), cache_dir=Path('.'))\n"
        "heavy = {'torch', 'vllm', 'transformers', 'aiohttp', 'pandas', 'numpy', 'optuna'}\n"
        "print(sorted(heavy & set(sys.modules)))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
