from __future__ import annotations

import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from sweeper.quantize.beforehand import installed_versions, model_bytes
from tests.quantize.fakes import job_for


def test_what_an_interpreter_has() -> None:
    assert installed_versions(sys.executable, ("no-such-tool", "pytest")) == {
        "pytest": version("pytest")
    }
    assert installed_versions("/no/such/python", ("pytest",)) == {"python": "/no/such/python"}


def test_the_size_of_a_model_on_this_machine_or_in_the_hub_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    snapshot = tmp_path / "models--org--m" / "snapshots" / "r1"
    snapshot.mkdir(parents=True)
    (snapshot / "config.json").write_text("{}")
    (snapshot / "model.safetensors").write_bytes(b"w" * 100)
    assert model_bytes(job_for(snapshot, tmp_path)) == 100
    assert model_bytes(job_for(Path("org/m"), tmp_path, revision="r1")) == 100
    assert model_bytes(job_for(Path("org/m"), tmp_path, revision="r2")) is None
    assert model_bytes(job_for(tmp_path / "none", tmp_path)) is None
    (snapshot / "model.safetensors.index.json").write_text('{"weight_map": {"a": "lost"}}')
    assert model_bytes(job_for(snapshot, tmp_path)) is None
