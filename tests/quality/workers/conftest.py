"""Worker scripts as modules: their neighbours and the protocol are put in their way, as at work."""

from __future__ import annotations

import importlib
from pathlib import Path
from types import ModuleType

import pytest

import sweeper

PACKAGE = Path(sweeper.__file__).parent
WORKERS = PACKAGE / "quality" / "workers"


@pytest.fixture
def in_the_way(monkeypatch: pytest.MonkeyPatch) -> None:
    for folder in (PACKAGE / "toolchain" / "side", WORKERS / "side", WORKERS):
        monkeypatch.syspath_prepend(str(folder))


@pytest.fixture
def scores(in_the_way: None) -> ModuleType:
    return importlib.import_module("lm_eval_scores")


@pytest.fixture
def script(in_the_way: None) -> ModuleType:
    return importlib.import_module("run_lm_eval")
