"""A study with recipes, from its command line to what its folder says it is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sweeper.config.compose import compose
from sweeper.errors import ConfigError, IdentityError
from sweeper.tracking.paths import StudyPaths
from sweeper.verbs import estimate
from sweeper.verbs.running import _prove_identity, prepare
from tests.verbs.conftest import MOCK

SETTINGS = [entry for entry in MOCK if not entry.startswith("space=")]


def identity(folder: Path, *overrides: str) -> dict[str, Any]:
    """What a study is, written into its folder or held against what stands there."""
    paths = StudyPaths(folder, "s")
    paths.create()
    return _prove_identity(prepare(compose([*SETTINGS, *overrides]), lambda _: None), paths)


def test_a_study_is_another_one_with_another_recipe(tmp_path: Path) -> None:
    texts = tmp_path / "texts.txt"
    texts.write_text("a text")
    own = ("quantize=awq", f"quantize.recipes.awq.calibration={texts}")
    first = identity(tmp_path, *own)
    assert first["quantize"]["awq"]["group_size"] == 128
    moved = texts.rename(tmp_path / "moved.txt")
    again = (own[0], f"quantize.recipes.awq.calibration={moved}")
    assert identity(tmp_path, *again) == first
    with pytest.raises(IdentityError) as raised:
        identity(tmp_path, *again, "quantize.recipes.awq.group_size=64")
    assert "quantize.awq.group_size: 128 → 64" in raised.value.message
    moved.write_text("another text")
    with pytest.raises(IdentityError, match=r"quantize\.awq\.calibration"):
        identity(tmp_path, *again)
    with pytest.raises(ConfigError, match="the file does not exist"):
        identity(tmp_path, *own)


def test_a_study_without_recipes_is_what_it_was(tmp_path: Path) -> None:
    assert "quantize" not in identity(tmp_path)


def test_an_estimate_tells_of_recipes(capsys: pytest.CaptureFixture[str]) -> None:
    chosen = ["quantize=[awq,gptq]", "quantize.device=cpu", "space=none"]
    assert estimate.run([*SETTINGS, *chosen]) == 0
    told = capsys.readouterr().out
    assert "awq: made with autoawq, 4 bits, groups of 128, with zero points" in told
    assert "tool_needs_cuda: quantization=gptq" in told
    rows = [line.split() for line in told.splitlines() if line.split()[:1] == ["awq"]]
    weights_gib = {float(row[2]) for row in rows if len(row) > 5 and "fits" in row}
    assert weights_gib == {5.2}
