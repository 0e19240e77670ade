"""The workers' modules, which live outside the package: they run in environments of their own."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

SWEEPER = Path(__file__).parents[3] / "sweeper"
WORKERS = SWEEPER / "quantize" / "workers"


@pytest.fixture(scope="session", autouse=True)
def side_folders() -> Iterator[None]:
    """What a worker finds on its path: the protocol, and what the workers share."""
    added = [str(SWEEPER / "toolchain" / "side"), str(WORKERS / "side")]
    sys.path.extend(added)
    yield
    for path in added:
        sys.path.remove(path)


def load_script(name: str) -> ModuleType:
    """A worker's script as a module; importing it runs nothing."""
    path = WORKERS / f"{name}.py"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module
