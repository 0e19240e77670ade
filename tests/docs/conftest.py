"""The folder in which the docs' commands are typed, made once for a module."""

from __future__ import annotations

from pathlib import Path

import pytest

from sweeper.hardware import detect as detect_module
from tests.docs import desk as desks


@pytest.fixture(scope="module")
def laid_out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("desk")
    desks.lay_out(folder)
    return folder


@pytest.fixture
def desk(laid_out: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder, as the current one; caches are in it, and no command reaches a real machine."""
    monkeypatch.chdir(laid_out)
    monkeypatch.setenv("SWEEPER_CACHE_DIR", str(laid_out / "cache"))
    monkeypatch.setattr(detect_module, "detect", lambda: desks.CPU)
    return laid_out
