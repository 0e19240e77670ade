"""The decisions of the set-up; making a real environment is what `make test` begins with."""

from __future__ import annotations

import fcntl
import importlib.util
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import TextIO

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture
def setup(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The set-up script over an empty folder, with everything that takes time taken out."""
    spec = importlib.util.spec_from_file_location("environment", ROOT / "scripts/environment.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    venv = tmp_path / ".venv"
    for name in ("STAMP", "CHOICE", "UNFINISHED"):
        monkeypatch.setattr(module, name, venv / getattr(module, name).name)
    monkeypatch.setattr(module, "VENV", venv)
    monkeypatch.setattr(module, "VENV_PYTHON", venv / "bin" / "python")
    monkeypatch.setattr(module, "verify", lambda _: None)
    monkeypatch.setattr(module, "detected_extra", lambda: "cpu")
    monkeypatch.setattr(module, "is_usable", (venv / "bin" / "python").exists)
    return module


def record(setup: ModuleType, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Stand-ins for making and filling the environment; returns what was done."""
    done: list[str] = []

    def make_venv() -> None:
        done.append("venv")
        setup.VENV_PYTHON.parent.mkdir(parents=True, exist_ok=True)
        setup.VENV_PYTHON.touch()
        for path in (setup.STAMP, setup.CHOICE):
            path.unlink(missing_ok=True)

    monkeypatch.setattr(setup, "make_venv", make_venv)
    monkeypatch.setattr(setup, "install", done.append)
    return done


def test_made_once(setup: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    done = record(setup, monkeypatch)
    setup.ensure(None)
    setup.ensure(None)
    assert done == ["venv", "cpu"]


def test_a_change_of_the_project_installs_again(
    setup: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = record(setup, monkeypatch)
    setup.ensure(None)
    monkeypatch.setattr(setup, "stamp_of", lambda _: "other")
    setup.ensure(None)
    assert done == ["venv", "cpu", "cpu"]


def test_an_interrupted_installation_is_done_again(
    setup: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = record(setup, monkeypatch)

    def interrupted(_: str) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(setup, "install", interrupted)
        assert setup.main([]) == 130
    setup.ensure(None)
    assert done == ["venv", "cpu"]


def test_another_engine_starts_from_nothing(
    setup: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = record(setup, monkeypatch)
    setup.ensure("cpu")
    setup.ensure("vllm")
    assert done == ["venv", "cpu", "venv", "vllm"]


def test_an_engine_asked_for_stays(setup: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    done = record(setup, monkeypatch)
    setup.ensure("none")
    setup.ensure(None)
    assert done == ["venv", "none"]


def test_an_engine_not_asked_for_follows_the_machine(
    setup: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = record(setup, monkeypatch)
    setup.ensure(None)
    monkeypatch.setattr(setup, "detected_extra", lambda: "vllm")
    setup.ensure(None)
    assert done == ["venv", "cpu", "venv", "vllm"]


def test_an_unknown_engine_is_refused(
    setup: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    assert setup.main(["gpu"]) == 2
    assert "use one of: cpu, vllm, none" in capsys.readouterr().err


def test_pips_sources_are_handed_on(setup: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("UV_FIND_LINKS", "UV_DEFAULT_INDEX", "SSL_CERT_FILE"):
        monkeypatch.delenv(name, raising=False)
    pip = {"find-links": "/a /b", "index-url": "https://mirror.invalid/simple"}
    environment = setup.installer_environment(pip)
    assert environment["UV_FIND_LINKS"] == "/a,/b"
    assert environment["UV_DEFAULT_INDEX"] == "https://mirror.invalid/simple"
    assert "SSL_CERT_FILE" not in environment
    monkeypatch.setenv("UV_FIND_LINKS", "/own")
    assert setup.installer_environment(pip)["UV_FIND_LINKS"] == "/own"


def test_torchs_cpu_build_must_match_this_python(setup: ModuleType, tmp_path: Path) -> None:
    version = f"cp{sys.version_info.major}{sys.version_info.minor}"
    name = f"torch-2.13.0+cpu-{version}-{version}-manylinux_2_28_{platform.machine()}.whl"
    assert not setup.has_cpu_torch(f"{tmp_path}")
    (tmp_path / name.replace(version, "cp39")).touch()
    (tmp_path / name.replace(platform.machine(), "riscv64")).touch()
    assert not setup.has_cpu_torch(f"{tmp_path}")
    (tmp_path / name).touch()
    assert setup.has_cpu_torch(f"/nowhere,file://{tmp_path}")
    assert not setup.has_cpu_torch("")


@pytest.mark.parametrize("found", [True, False])
def test_where_torch_comes_from(
    setup: ModuleType, monkeypatch: pytest.MonkeyPatch, found: bool
) -> None:
    commands: list[list[str]] = []
    run: Callable[..., None] = lambda command, *_: commands.append(command)  # noqa: E731
    monkeypatch.setattr(setup, "run", run)
    monkeypatch.setattr(setup, "pip_settings", dict)
    monkeypatch.setattr(setup, "has_cpu_torch", lambda _: found)
    setup.install("cpu")
    assert ("--torch-backend" in commands[-1]) is not found
    assert {"--override", "--compile-bytecode"} <= set(commands[-1])
    setup.install("vllm")
    assert not {"--override", "--torch-backend"} & set(commands[-1])


def test_the_lock_is_one_that_nfs_grants(
    setup: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel's NFS client refuses an exclusive lock on a file that is open for reading."""
    modes: list[int] = []

    def flock(file: TextIO, _: int) -> None:
        modes.append(fcntl.fcntl(file, fcntl.F_GETFL) & os.O_ACCMODE)

    monkeypatch.setattr(setup.fcntl, "flock", flock)
    monkeypatch.setattr(setup, "ensure", lambda _: None)
    before = Path(setup.__file__).read_bytes()
    assert setup.main([]) == 0
    assert modes == [os.O_RDWR]
    assert Path(setup.__file__).read_bytes() == before


def test_a_folder_that_cannot_be_removed_is_named(
    setup: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    setup.VENV.mkdir()
    monkeypatch.setattr(setup.shutil, "rmtree", lambda *_, **__: None)
    assert setup.main([]) == 2
    said = capsys.readouterr().err
    assert f"{setup.VENV} cannot be made anew (File exists)" in said
    assert "rm -rf .venv" in said


def test_a_python_whose_path_has_spaces(tmp_path: Path) -> None:
    scripts, python = tmp_path / "scripts", tmp_path / "my programs" / "python"
    scripts.mkdir()
    shutil.copy(ROOT / "scripts/setup.sh", scripts)
    (scripts / "environment.py").write_text("import sys; print('made with', sys.argv[1:])")
    python.parent.mkdir()
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    done = subprocess.run(
        ["/bin/sh", str(scripts / "setup.sh"), "cpu"],
        env={"PATH": "/usr/bin:/bin", "PYTHON": str(python)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "made with ['cpu']\n"), done.stderr


def test_a_machine_without_python_is_told_so(tmp_path: Path) -> None:
    done = subprocess.run(
        ["/bin/sh", str(ROOT / "scripts/setup.sh")],
        env={"PATH": "/usr/bin:/bin", "PYTHON": str(tmp_path / "none")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "needs Python 3.11, 3.12 or 3.13" in done.stderr
