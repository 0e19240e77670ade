"""A study with secrets all around leaves none behind: in files, in MLflow, on the screen."""

from __future__ import annotations

import json
import os
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from sweeper import verbs
from sweeper.__main__ import main
from sweeper.redaction import HIDDEN
from tests.verbs.conftest import MOCK, SPACE

HF = "hf_" + "aB3dE" * 7
PASSWORD = "correct-horse-battery"
SECRETS = (HF, PASSWORD, "s3cr3t-pw", "dXNlcjpwdzpsb25n")
ECHO = (
    f"non-default args: {{'api_key': ['{PASSWORD}'], 'hf_token': '{HF}'}}\n"
    f"401 Client Error for url: https://me:s3cr3t-pw@hub.example/x?token={HF}\n"
    "headers: {'Authorization': 'Basic dXNlcjpwdzpsb25n'}\n"
    f"\x1b[31mtorch.OutOfMemoryError: CUDA out of memory, token {HF}, <script>alert(1)</script>"
)

ENTRY = """
import sys
from sweeper.engine.mock import engine
from sweeper.__main__ import main
engine.SERVER_MODULE = "tests.security.echo_server"
sys.exit(main())
"""


def run(folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", ENTRY, *arguments],
        cwd=folder,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=250,
        check=False,
    )


@pytest.fixture(scope="module")
def finished(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[Path, subprocess.CompletedProcess[str]]]:
    """A study whose second launch dies with secrets in its log, mirrored into MLflow."""
    folder = tmp_path_factory.mktemp("study")
    (folder / "small.yaml").write_text(SPACE)
    echo = tmp_path_factory.mktemp("elsewhere") / "echo"
    echo.write_text(ECHO)
    settings = [s for s in MOCK if not s.startswith(("tracking=", "budget."))]
    done = run(
        folder,
        *settings,
        "engine.args.trust_remote_code=true",
        "record.text=true",
        "budget.launches=3",
        "study=s",
        HF_TOKEN=HF,
        MLFLOW_TRACKING_PASSWORD=PASSWORD,
        ECHO_FILE=str(echo),
    )
    assert done.returncode == 0, done.stdout + done.stderr
    yield folder, done


def contents(folder: Path) -> Iterator[tuple[Path, str]]:
    for path in folder.rglob("*"):
        if path.is_file():
            yield path, path.read_bytes().decode("utf-8", errors="replace")


def test_no_file_holds_a_secret(
    finished: tuple[Path, subprocess.CompletedProcess[str]],
) -> None:
    leaks = [
        (str(path.relative_to(finished[0])), secret)
        for path, text in contents(finished[0])
        for secret in SECRETS
        if secret in text
    ]
    assert leaks == []


def test_no_output_holds_a_secret_or_an_escape(
    finished: tuple[Path, subprocess.CompletedProcess[str]],
) -> None:
    folder, done = finished
    shown = done.stdout + done.stderr
    status = run(folder, "status", "study=s")
    log = folder / "studies" / "s" / "trials" / "1" / "server.log"
    told = run(folder, "diagnose", f"log={log}")
    shown += told.stdout + told.stderr + status.stdout + status.stderr
    assert [secret for secret in SECRETS if secret in shown] == []
    assert "\x1b" not in shown
    assert "trust_remote_code" in status.stdout
    assert HIDDEN in log.read_text()


def test_a_failed_trial_is_explained_all_the_same(
    finished: tuple[Path, subprocess.CompletedProcess[str]],
) -> None:
    journal = (finished[0] / "studies" / "s" / "trials.jsonl").read_text().splitlines()
    failed = json.loads(journal[1])
    assert failed["verdict"] != "OK" and failed["cause"]
    assert HIDDEN in failed["evidence"]
    assert json.loads(journal[0])["manifest"]["model"]["trust_remote_code"] is True


def test_mlflow_has_no_secret(finished: tuple[Path, subprocess.CompletedProcess[str]]) -> None:
    with sqlite3.connect(finished[0] / "studies" / "mlflow.db") as database:
        dump = "\n".join(database.iterdump())
    assert "deployment_hash" in dump
    assert [secret for secret in SECRETS if secret in dump] == []


def test_report_and_export_escape_and_warn(
    finished: tuple[Path, subprocess.CompletedProcess[str]],
) -> None:
    root = finished[0] / "studies" / "s"
    report = (root / "report.html").read_text()
    assert "<script>alert(1)" not in report
    assert "trust_remote_code: the server runs code" in report
    assert "trust_remote_code" in (root / "recommended" / "README.md").read_text()


def test_private_files_are_private(
    finished: tuple[Path, subprocess.CompletedProcess[str]],
) -> None:
    root = finished[0] / "studies" / "s"
    private = [*root.rglob("server.log"), *root.rglob("text.jsonl")]
    assert len(private) >= 4
    assert {stat.S_IMODE(path.stat().st_mode) for path in private} == {0o600}


def test_a_secret_in_the_settings_starts_nothing(tmp_path: Path) -> None:
    (tmp_path / "small.yaml").write_text(SPACE)
    done = run(tmp_path, *MOCK, "study=t", f"engine.env.HF_TOKEN={HF}")
    assert done.returncode == 2
    assert "export HF_TOKEN=" in done.stderr
    assert HF not in done.stdout + done.stderr
    assert not (tmp_path / "studies").exists()


def test_a_message_does_not_repeat_what_it_complains_about(
    capsys: pytest.CaptureFixture[str],
) -> None:
    wrong = ["tracking.uri=ftp://me:s3cr3t-pw@host/x", f"engine.env.HF_TOKEN=[{HF}", "\x1b[2Jx=1"]
    for override in wrong:
        assert main([override]) == 2
        told = capsys.readouterr().err
        assert "s3cr3t-pw" not in told and HF not in told
        assert "\x1b" not in told
    assert main(["--cfg", "tracking.uri=postgresql://me:s3cr3t-pw@host/x"]) == 0
    assert f"postgresql://me:{HIDDEN}@host/x" in capsys.readouterr().out


def test_a_bug_is_told_in_full_and_without_secrets(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(arguments: list[str]) -> int:
        raise ValueError(f"cannot use {HF}")

    monkeypatch.setattr(verbs, "run", fail)
    assert main([]) == 1
    told = capsys.readouterr().err
    assert "Traceback" in told and f"ValueError: cannot use {HIDDEN}" in told


def test_the_users_umask_counts(tmp_path: Path) -> None:
    from sweeper.tracking.paths import atomic_write_text, replace_folder

    before = os.umask(0o077)
    try:
        atomic_write_text(tmp_path / "a", "x")
        replace_folder(tmp_path / "b", {"c": ("x", 0o755)})
    finally:
        os.umask(before)
    modes = [stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("a", "b", "b/c")]
    assert modes == [0o600, 0o700, 0o700]
