"""The verb `diagnose`: any log in, one clear answer out, never a traceback."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pytest

from sweeper.engine.diagnosis import NO_CAUSE
from sweeper.engine.log_life import explain
from sweeper.engine.vllm.diagnosis import diagnose_vllm
from sweeper.errors import ConfigError
from sweeper.verbs import diagnose
from sweeper.verdicts import Verdict
from tests.verbs.conftest import Run

DATA = Path(__file__).parent.parent / "engine" / "data"
READY = "INFO:     Application startup complete.\n"
REFUSAL = (
    "(EngineCore_DP0 pid=1) ERROR 10-25 13:08:43 [core.py:708] ValueError: To serve at least one "
    "request with the model's max seq len (65536), (8.50 GiB KV cache is needed, which is larger "
    "than the available KV cache memory (3.21 GiB). Based on the available memory, the estimated "
    "maximum model length is 24752.\n"
)


def answer(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, object]:
    assert diagnose.run([*arguments, "format=json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert isinstance(found, dict)
    return found


def test_a_refusal_as_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "any.log"
    log.write_text(REFUSAL)
    found = answer(capsys, f"log={log}")
    assert found.keys() == {"verdict", "phase", "cause", "remedy", "evidence", "learnt"}
    assert (found["verdict"], found["phase"]) == ("CAPACITY", "start")
    assert isinstance(found["learnt"], dict)
    assert found["learnt"]["estimated_max_model_len"] == 24752


def test_as_text_with_its_evidence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "any.log"
    log.write_text(READY + REFUSAL)
    assert diagnose.run([f"log={log}"]) == 0
    out = capsys.readouterr().out
    assert "verdict  CRASH_UNDER_LOAD\nphase    warmup\n" in out
    assert "learnt   estimated_max_model_len = 24752" in out
    assert "evidence\n  | " in out


def test_a_healthy_log_is_ok(capsys: pytest.CaptureFixture[str]) -> None:
    found = answer(capsys, f"log={DATA / 'vllm_0_32_cpu_start.log'}")
    assert (found["verdict"], found["phase"]) == ("OK", "stop")
    assert str(found["cause"]).startswith("no failure found")


def test_a_trials_folder_stands_for_its_log(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "server.log").write_text(REFUSAL)
    assert answer(capsys, f"log={tmp_path}")["verdict"] == "CAPACITY"


def test_standard_input(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(REFUSAL.encode())))
    assert answer(capsys, "log=-")["verdict"] == "CAPACITY"


@pytest.mark.parametrize(
    "data",
    [b"", b"\n", bytes(range(256)) * 50, b"\0" * 5000, "日志\n".encode("gbk"), b'\xff\xfe{"log":'],
    ids=["empty", "newline", "binary", "zeros", "gbk", "torn"],
)
def test_a_log_that_is_none_is_unknown(tmp_path: Path, data: bytes) -> None:
    log = tmp_path / "any.log"
    log.write_bytes(data)
    found = explain(diagnose.read(str(log)), diagnose_vllm, NO_CAUSE)
    assert found.verdict is Verdict.UNKNOWN
    assert json.loads(diagnose.as_json(found))["verdict"] == "UNKNOWN"
    assert diagnose.as_text(found)


@pytest.mark.parametrize("name", ["absent.log", "empty", "a\0b", "x" * 5000])
def test_what_cannot_be_read_is_bad_input(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    with pytest.raises(ConfigError) as raised:
        diagnose.run([f"log={name}"])
    assert raised.value.remedy


def test_as_a_command_under_an_encoding_that_lacks_the_characters(
    sweeper: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONIOENCODING", "ascii")
    (tmp_path / "any.log").write_text("OSError: [Errno 28] 设备上没有空间\n")
    done = sweeper("diagnose", "log=any.log")
    assert (done.returncode, done.stderr) == (0, "")
    assert "verdict  INFRA" in done.stdout
    assert "learnt   scope = machine" in done.stdout
