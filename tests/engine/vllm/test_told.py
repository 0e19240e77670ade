"""An installed vLLM is asked for its flags once, and never trusted with another's answer."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from sweeper.engine.vllm import told
from sweeper.engine.vllm.facts import VllmInstallation, probe
from sweeper.engine.vllm.told import NotToldError, Told, ask, cached, known
from tests.engine.vllm import stub


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> tuple[VllmInstallation, Path]:
    python = stub.bare_python(tmp_path_factory.mktemp("engine"))
    notes = stub.install(python)
    return probe(str(python)), notes


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "flags"


@pytest.fixture
def answer(installed: tuple[VllmInstallation, Path], folder: Path) -> Iterator[Told]:
    installation, notes = installed
    notes.unlink(missing_ok=True)
    yield ask(installation, folder, {})


def test_asked_once(installed: tuple[VllmInstallation, Path], folder: Path, answer: Told) -> None:
    installation, notes = installed
    said: list[str] = []
    assert known(installation, folder, {}, said.append) == (answer, None)
    assert notes.read_text().splitlines() == ["--help=all"]
    assert said == []
    assert len(answer.flags) > 300
    assert answer.values["quantization"] == stub.METHODS
    assert "max_num_seqs" in answer.engine_fields
    quantization = next(flag for flag in answer.with_values() if flag.name == "quantization")
    assert quantization.choices == stub.METHODS


def test_a_warm_answer_costs_next_to_nothing(
    installed: tuple[VllmInstallation, Path], folder: Path, answer: Told
) -> None:
    spent = []
    for _ in range(5):
        started = time.perf_counter()
        assert cached(installed[0], folder) == answer
        spent.append(time.perf_counter() - started)
    assert min(spent) < 0.05


@pytest.mark.parametrize(
    "other",
    [
        {"stamp": "another build of the same version"},
        {"python": "/opt/other/bin/python"},
        {"root": "/opt/other/vllm"},
    ],
)
def test_another_installation_is_asked_anew(
    installed: tuple[VllmInstallation, Path], folder: Path, answer: Told, other: dict[str, str]
) -> None:
    assert cached(replace(installed[0], **other), folder) is None


def test_another_version_is_asked_anew(
    installed: tuple[VllmInstallation, Path], folder: Path, answer: Told
) -> None:
    installation = installed[0]
    facts = replace(installation.facts, version="0.33.0")
    newer = replace(installation, facts=facts)
    assert cached(newer, folder) is None
    # Not even under the name that the newer one's answer would have.
    (file,) = folder.iterdir()
    told._path(folder, told._key(newer)).write_text(file.read_text())
    assert cached(newer, folder) is None


def test_another_reader_of_help_asks_anew(
    installed: tuple[VllmInstallation, Path],
    folder: Path,
    answer: Told,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(told, "SCHEMA", told.SCHEMA + 1)
    assert cached(installed[0], folder) is None


@pytest.mark.parametrize("damage", ["cut", "empty", "edited", "other json", "bytes"])
def test_a_damaged_answer_is_asked_anew(
    installed: tuple[VllmInstallation, Path], folder: Path, answer: Told, damage: str
) -> None:
    (file,) = folder.iterdir()
    text = file.read_text()
    damaged = {
        "cut": text[: len(text) // 2].encode(),
        "empty": b"",
        "edited": text.replace("max_num_seqs", "max_num_sqes").encode(),
        "other json": json.dumps([1, 2]).encode(),
        "bytes": b"\xff\x00" + text.encode(),
    }
    file.write_bytes(damaged[damage])
    assert cached(installed[0], folder) is None
    assert known(installed[0], folder, {}, lambda text: None) == (answer, None)
    assert cached(installed[0], folder) == answer


def test_a_cache_that_cannot_be_written_only_costs_time(
    installed: tuple[VllmInstallation, Path], tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    answer, note = known(installed[0], tmp_path / "file" / "flags", {}, lambda text: None)
    assert answer is not None
    assert note is None


def test_nothing_is_asked_where_no_time_may_be_taken(
    installed: tuple[VllmInstallation, Path], folder: Path
) -> None:
    installation, notes = installed
    notes.unlink(missing_ok=True)
    assert known(installation, folder, {}, None) == (None, None)
    assert not notes.exists()


BROKEN = {
    "fails": ("raise SystemExit('libcudart.so.12: cannot open shared object file')", "libcudart"),
    "says nothing": ("pass", "no flags"),
    "other help": ("print('usage: x\\n\\n  --other  Words.')", "no flags"),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_help_that_is_none_leaves_the_study_unchecked(
    kind: str, tmp_path: Path, folder: Path
) -> None:
    body, word = BROKEN[kind]
    python = stub.bare_python(tmp_path / "engine")
    stub.install(python, body=body)
    answer, note = known(probe(str(python)), folder, {}, lambda text: None)
    assert answer is None
    assert note is not None
    assert word in note
    assert "not checked" in note
    assert not folder.exists()


def test_help_that_hangs_is_ended(tmp_path: Path, folder: Path) -> None:
    python = stub.bare_python(tmp_path / "engine")
    pid_file = tmp_path / "pid"
    body = (
        f"import os; pathlib.Path({str(pid_file)!r}).write_text(str(os.getpid()))\ntime.sleep(99)"
    )
    stub.install(python, body=body)
    with pytest.raises(NotToldError, match="in time"):
        ask(probe(str(python)), folder, {}, timeout_s=1.5)
    if pid_file.exists():  # on a busy machine it may not even have begun
        assert not Path(f"/proc/{pid_file.read_text()}").exists()


def test_older_versions_list_all_flags_without_a_word(tmp_path: Path, folder: Path) -> None:
    python = stub.bare_python(tmp_path / "engine")
    notes = stub.install(
        python,
        version="0.8.5",
        distribution="vllm",
        body=stub.PRINT_OLD,
        help_name="help_0_6.txt",
    )
    answer = ask(probe(str(python)), folder, {})
    assert "num_scheduler_steps" in {flag.name for flag in answer.flags}
    assert notes.read_text().splitlines() == ["--help=all", "--help"]
