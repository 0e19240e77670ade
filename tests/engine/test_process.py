"""A start that is interrupted leaves no server behind."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from sweeper.engine import process as process_module
from sweeper.engine.process import ProcessGroup, inherited_environment
from sweeper.errors import EngineError
from tests.engine.conftest import Bench

SLEEPER = [sys.executable, "-c", "import time; time.sleep(60)"]


def group(bench: Bench, argv: list[str] = SLEEPER) -> ProcessGroup:
    return ProcessGroup(
        argv,
        env=inherited_environment(),
        log_path=bench.folder / "log",
        token=bench.token,
        stop_timeout_s=1.0,
        record_path=bench.folder / "launch.json",
    )


@pytest.fixture
def interrupted(monkeypatch: pytest.MonkeyPatch) -> list[subprocess.Popen[bytes]]:
    """Ctrl-C arrives when the process is there and nobody has noted it."""
    started: list[subprocess.Popen[bytes]] = []
    real = subprocess.Popen

    def start(*arguments: Any, **options: Any) -> Any:
        started.append(real(*arguments, **options))
        raise KeyboardInterrupt

    monkeypatch.setattr(process_module.subprocess, "Popen", start)
    return started


def test_stop_ends_what_an_interrupted_start_left(
    bench: Bench, interrupted: list[subprocess.Popen[bytes]]
) -> None:
    launch = group(bench)
    with pytest.raises(KeyboardInterrupt):
        launch.start()
    assert interrupted[0].poll() is None
    launch.stop()
    assert interrupted[0].wait(timeout=5) is not None
    assert not bench.left()
    assert not (bench.folder / "launch.json").exists()


def test_the_context_ends_it_by_itself(
    bench: Bench, interrupted: list[subprocess.Popen[bytes]]
) -> None:
    with pytest.raises(KeyboardInterrupt), group(bench):
        pytest.fail("the start was interrupted")
    assert interrupted[0].wait(timeout=5) is not None
    assert not bench.left()


def test_stop_of_what_was_not_or_could_not_be_started_looks_for_nothing(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def looked(*_: Any) -> None:
        pytest.fail("nothing was started")

    monkeypatch.setattr(process_module.Family, "end", looked)
    group(bench).stop()
    impossible = group(bench, [str(tmp_path / "no-such-program")])
    with pytest.raises(EngineError, match="cannot start"):
        impossible.start()
    impossible.stop()
