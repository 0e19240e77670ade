"""What is installed from a built wheel works without the repository at hand."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("dist")
    beside = Path(sys.executable).with_name("uv")
    uv = str(beside) if beside.exists() else shutil.which("uv")
    assert uv, "uv is installed by make setup"
    done = subprocess.run(
        [uv, "build", "--wheel", "--out-dir", str(out), str(ROOT)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    (built,) = out.glob("*.whl")
    return built


def test_the_wheel_carries_every_configuration_file(wheel: Path) -> None:
    wanted = {
        f"sweeper/conf/{path.relative_to(ROOT / 'conf').as_posix()}"
        for path in (ROOT / "conf").rglob("*.yaml")
    }
    assert "sweeper/conf/config.yaml" in wanted
    with zipfile.ZipFile(wheel) as archive:
        assert wanted <= set(archive.namelist())


def test_the_wheel_carries_data_beside_the_code(wheel: Path) -> None:
    data = {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "sweeper").rglob("*")
        if path.is_file() and path.suffix not in {".pyc", ".py"}
    }
    with zipfile.ZipFile(wheel) as archive:
        assert data <= set(archive.namelist())


@pytest.mark.parametrize("arguments", [["--help"], ["estimate", "model=qwen7b"]])
def test_the_installed_package_runs_from_any_folder(
    wheel: Path, tmp_path: Path, arguments: list[str]
) -> None:
    site, elsewhere = tmp_path / "site", tmp_path / "elsewhere"
    elsewhere.mkdir()
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    environment = {**os.environ, "PYTHONPATH": str(site)}

    where = subprocess.run(
        [sys.executable, "-c", "import sweeper; print(sweeper.__file__)"],
        capture_output=True,
        text=True,
        cwd=elsewhere,
        env=environment,
        check=True,
    )
    assert Path(where.stdout.strip()).is_relative_to(site), "the checkout was imported instead"

    if "estimate" in arguments:
        arguments = [*arguments, "hardware=h100_80gb"]
    done = subprocess.run(
        [sys.executable, "-m", "sweeper", *arguments],
        capture_output=True,
        text=True,
        cwd=elsewhere,
        env=environment,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert not list(elsewhere.iterdir()), "nothing is left behind by asking"
