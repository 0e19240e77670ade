"""What holds for all tests."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from sweeper.engine.runtime_folder import VARIABLE

# Several workers share few cores: how long an example took says nothing of the code.
settings.register_profile("shared", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("shared")


@pytest.fixture(scope="session", autouse=True)
def own_runtime_folder() -> Iterator[None]:
    """Tests take no lock that a tuner of this machine, or another test run, could wait for."""
    before = os.environ.get(VARIABLE)
    with tempfile.TemporaryDirectory(prefix="sweeper-tests-") as folder:
        os.environ[VARIABLE] = folder
        yield
    if before is None:
        del os.environ[VARIABLE]
    else:
        os.environ[VARIABLE] = before


@pytest.fixture(scope="session", autouse=True)
def bytecode_is_kept() -> None:
    """Commands start as they do for a user: compiled once, not anew by every process of a test."""
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
