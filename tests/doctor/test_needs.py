"""The table of needs names every engine, and the releases that the package asks for."""

from __future__ import annotations

import tomllib
from pathlib import Path

from packaging.requirements import Requirement

from sweeper.doctor.needs import NEEDS
from sweeper.engine.registry import ENGINES

PYPROJECT = Path(__file__).resolve().parents[2] / "pyproject.toml"


def test_every_engine_is_in_the_table() -> None:
    assert set(NEEDS) == set(ENGINES)


def test_tested_releases_are_those_of_the_extras() -> None:
    extras = tomllib.loads(PYPROJECT.read_text())["project"]["optional-dependencies"]
    asked = {one.name: one for name in ("vllm", "cpu") for one in map(Requirement, extras[name])}
    for package in NEEDS["vllm"].packages:
        begin, end = (".".join(map(str, release)) for release in package.tested)
        wanted = asked[package.name].specifier
        exact = next((one.version for one in wanted if one.operator == "=="), None)
        assert wanted.contains(exact or begin)
        assert not wanted.contains(end)
        assert exact is None or exact.startswith(begin)
