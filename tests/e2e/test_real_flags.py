"""The flags of the vLLM that is installed, and those that this product can send it."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from sweeper.config.schema import EngineConfig, ModelConfig, SpaceConfig, SweeperConfig
from sweeper.engine.flag_check import FlagCheck
from sweeper.engine.vllm.checking import check
from sweeper.engine.vllm.engine import VllmEngine
from sweeper.engine.vllm.told import cached
from sweeper.errors import ConfigError
from sweeper.space.parse import parse_space
from sweeper.verbs.flags_checked import asked_flags, check_flags
from tests.e2e.conftest import ROOT

pytestmark = pytest.mark.e2e
CONF = ROOT / "conf"


def described(path: Path) -> SpaceConfig:
    space = SpaceConfig(**yaml.safe_load(path.read_text()))
    for form in space.parameters.values():
        if isinstance(form, dict) and "checkpoints" in form.get("choices", ()):
            form["choices"] = [word for word in form["choices"] if word != "checkpoints"]
    return space


@pytest.fixture(scope="module")
def cache_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the one real answer is kept."""
    return tmp_path_factory.mktemp("cache")


def test_every_space_of_ours_fits_the_installed_engine(cache_dir: Path) -> None:
    """One real `--help`, kept; then every space is held against it."""
    engine = VllmEngine(EngineConfig(name="vllm"), cache_dir=cache_dir)
    cfg = SweeperConfig(engine=EngineConfig(name="vllm"), model=ModelConfig(name="m"))
    spaces = [path for path in (CONF / "space").glob("*.yaml") if "transformers" not in path.name]
    assert len(spaces) >= 4
    said: list[str] = []
    for path in spaces:
        cfg.space = described(path)
        found = check_flags(cfg, parse_space(cfg.space), engine, said.append)
        assert found.refusals == ()
        assert found.notes == ()
    assert len(said) == 1, "asked once, then kept"
    with pytest.raises(ConfigError, match="--swap-space"):
        cfg.engine.args = {"swap_space": 4}
        check_flags(cfg, parse_space(cfg.space), engine, None)


def test_what_the_source_says_is_found(cache_dir: Path) -> None:
    """Lists that the help does not name, of this very version."""
    engine = VllmEngine(EngineConfig(name="vllm"), cache_dir=cache_dir)
    cfg = SweeperConfig(engine=EngineConfig(name="vllm"), model=ModelConfig(name="m"))
    cfg.space = SpaceConfig(name="s", parameters={"quantization": ["none", "fp8", "bogus"]})
    asked = asked_flags(cfg, parse_space(cfg.space))
    engine.check_flags(asked, lambda text: None)
    told = cached(engine._installation, cache_dir / "flags")
    assert told is not None
    assert {"quantization", "load_format", "attention_backend"} <= set(told.values)
    assert {"ngram", "draft_model", "eagle"} <= set(told.methods)
    assert "max_num_seqs" in told.engine_fields
    found: FlagCheck = check(asked, engine.takes(told))
    assert [refusal.asked.value for refusal in found.refusals] == ["bogus"]
    assert {rename.given for rename in found.renames} == {"fp8_per_tensor"}
