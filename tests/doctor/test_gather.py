"""What is looked at, on folders, packages and servers that are made up."""

from __future__ import annotations

import http.server
import socket
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from sweeper.config.schema import ModelConfig, SweeperConfig
from sweeper.doctor import gather_devices, gather_engine, gather_host, gather_outside, gather_places
from sweeper.doctor.gather import wants
from sweeper.doctor.needs import NEEDS


def package(folder: Path, name: str, version: str, code: str = "", requires: str = "") -> None:
    """An installed package: its metadata, and a module."""
    info = folder / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir(parents=True)
    needs = f"Requires-Dist: {requires}\n" if requires else ""
    (info / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{needs}"
    )
    (folder / f"{name.replace('-', '_')}.py").write_text(code)


TORCH = """
import warnings
class version: cuda = "13.0"
class cuda:
    @staticmethod
    def is_available():
        warnings.warn("CUDA initialization: found version 11040")
        return False
    @staticmethod
    def device_count(): return 0
    @staticmethod
    def get_arch_list(): return []
"""
NMS = "raise RuntimeError('operator torchvision::nms does not exist')"


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    return tmp_path


def test_a_torchvision_that_does_not_fit(packages: Path) -> None:
    package(packages, "torch", "2.13.0", TORCH)
    package(packages, "torchvision", "0.28.0", NMS, "torch==2.13.0")
    package(packages, "torchaudio", "2.13.0", "print('hello from an import')")
    facts = gather_engine.look(None, NEEDS["vllm"], limit_s=60, deep=False)
    assert facts is not None
    assert facts.error == ""
    assert facts.versions["torch"] == "2.13.0"
    assert facts.torch_pins == {"torchvision": "torch==2.13.0"}
    assert facts.imported["torch"] == facts.imported["torchaudio"] == ""
    assert facts.imported["torchvision"] == "RuntimeError: operator torchvision::nms does not exist"
    assert (facts.torch_cuda, facts.torch_sees) == ("13.0", 0)
    assert "11040" in facts.torch_says


def test_what_was_told_before_the_time_was_over_counts(packages: Path) -> None:
    package(packages, "torch", "2.13.0", "import time; time.sleep(600)")
    started = time.monotonic()
    facts = gather_engine.look(None, NEEDS["vllm"], limit_s=2, deep=False)
    assert time.monotonic() - started < 60
    assert facts is not None
    if not facts.error:  # a machine may be too busy to start an interpreter in the time
        assert facts.versions["torch"] == "2.13.0"
        assert facts.imported == {}


def test_an_interpreter_that_is_none() -> None:
    facts = gather_engine.look("/no/python", NEEDS["vllm"], limit_s=5, deep=False)
    assert facts is not None
    assert "No such file" in facts.error
    facts = gather_engine.look("/bin/false", NEEDS["vllm"], limit_s=5, deep=False)
    assert facts is not None
    assert facts.error == "it said nothing"


def test_an_engine_without_packages_asks_no_interpreter() -> None:
    assert gather_engine.look("/no/python", NEEDS["mock"], limit_s=5, deep=False) is None


def test_lines_that_are_no_answer_are_passed_over() -> None:
    facts = gather_engine.read("py", ["{", "[1]", '"x"', '{"version": "3.12.1"}'], "", 1)
    assert (facts.error, facts.version) == ("", "3.12.1")


def test_a_gpu_on_the_bus_and_its_kernel_module(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    device = tmp_path / "sys/bus/pci/devices/0000:01:00.0"
    device.mkdir(parents=True)
    (device / "class").write_text("0x030200\n")
    (device / "vendor").write_text("0x10de\n")
    (tmp_path / "dev").mkdir()
    (tmp_path / "dev/nvidia0").touch()
    (tmp_path / "dev/nvidiactl").touch()
    version = tmp_path / "proc/driver/nvidia/version"
    version.parent.mkdir(parents=True)
    version.write_text(
        "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.65.06  Release\n"
    )
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    facts = gather_devices.look(tmp_path)
    assert facts.on_bus == ("NVIDIA",)
    assert facts.nodes == ("nvidia0",)
    assert facts.kernel_driver == "580.65.06"
    assert facts.setting == ""


def test_a_bus_that_is_not_shown(tmp_path: Path) -> None:
    assert gather_devices.look(tmp_path).on_bus is None


def test_a_folder_that_is_to_be_made_has_the_room_of_its_disk(tmp_path: Path) -> None:
    found = gather_places.folder("studies", "studies_dir=", tmp_path / "a" / "b")
    assert found.error == ""
    assert found.room is not None
    assert found.room.free_gib > 0
    assert not (tmp_path / "a").exists()


def test_a_file_where_a_folder_should_be(tmp_path: Path) -> None:
    (tmp_path / "studies").write_text("")
    assert "is a file" in gather_places.folder("studies", "x", tmp_path / "studies").error


def test_a_folder_nobody_may_write_to() -> None:
    """/proc refuses new files to everyone, root included."""
    assert gather_places.folder("studies", "x", Path("/proc/studies")).error != ""


def test_no_orphans_where_nothing_ran(tmp_path: Path) -> None:
    (tmp_path / "s").mkdir()
    (tmp_path / "s" / "launch.json").write_text("{broken")
    assert gather_places.orphans(tmp_path) == {}
    assert gather_places.orphans(tmp_path / "absent") == {}


class Refusing(http.server.BaseHTTPRequestHandler):
    """Answers /health, refuses anything else."""

    def do_GET(self) -> None:
        self.send_response(200 if self.path == "/health" else 401)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Keep quiet."""


@pytest.fixture
def server() -> Iterator[str]:
    made = http.server.HTTPServer(("127.0.0.1", 0), Refusing)
    thread = threading.Thread(target=made.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{made.server_port}"
    made.shutdown()
    made.server_close()
    thread.join()


def test_who_answers_and_who_does_not(server: str) -> None:
    assert gather_outside.answer(server, "/health").status == 200
    assert gather_outside.answer(server, "/v1/models").status == 401
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        silent = f"postgresql://u:secret@127.0.0.1:{free.getsockname()[1]}/m"
        found = gather_outside.answer(silent, "/health")
    assert "refused" in found.error
    assert "secret" not in found.address
    assert gather_outside.answer("http://[broken", "/health").error != ""
    assert gather_outside.answer("nothing", "/health").error != ""


def test_a_wrong_model_is_a_fact(tmp_path: Path) -> None:
    cfg = SweeperConfig(model=ModelConfig(path="/no/such/model"))
    assert "/no/such/model" in wants(cfg, tmp_path).model_error


def test_the_embedded_model_is_not_here_yet(tmp_path: Path) -> None:
    wanted = wants(SweeperConfig(), tmp_path)
    assert (wanted.source, wanted.model_here) == ("embedded", False)
    assert wanted.weights_gib is not None
    assert 0.2 < wanted.weights_gib < 0.4


def test_this_machine_can_be_looked_at(tmp_path: Path) -> None:
    facts = gather_host.look(tmp_path)
    assert facts.python == sys.version_info[:3]
    assert facts.ports is None or facts.ports > 0
    assert facts.loopback_error == ""
    assert facts.disk_clock_s is not None
    assert abs(facts.disk_clock_s) < 60


def test_a_missing_dependency_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = ["uv>=9999", "no-such-package>=1", "pytest ; extra == 'dev'"]
    monkeypatch.setattr("importlib.metadata.requires", lambda name: asked)
    found = gather_host.unmet()
    assert found is not None
    assert found[0].startswith("uv ")
    assert found[1:] == ("no-such-package is missing",)
