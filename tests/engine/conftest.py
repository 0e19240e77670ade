"""Launches of the mock engine, and a watch on what they leave behind."""

from __future__ import annotations

import os
import secrets
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from sweeper.config.schema import EngineConfig
from sweeper.engine import procfs
from sweeper.engine.protocol import Engine, LaunchRequest
from sweeper.engine.registry import create


class Bench:
    """Makes engines and requests of one test, each under a token of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.token = f"test-{secrets.token_hex(8)}"

    def engine(self, *, stop_timeout_s: float = 1.0, **options: Any) -> Engine:
        cfg = EngineConfig(name="mock", options=options, stop_timeout_s=stop_timeout_s)
        return create(cfg, cache_dir=self.folder / "cache")

    def request(self, parameters: dict[str, Any] | None = None, **changes: Any) -> LaunchRequest:
        fields: dict[str, Any] = {
            "model_path": "mock",
            "parameters": {"enforce_eager": True, **(parameters or {})},
            "run_dir": self.folder / "run",
            "served_name": "trial-7",
            "start_timeout_s": 20.0,
            "token": self.token,
            "record_path": self.folder / "launch.json",
        }
        return LaunchRequest(**{**fields, **changes})

    def left(self) -> set[int]:
        """Living processes that carry this test's token."""
        return living_with(self.token)


def living_with(token: str) -> set[int]:
    return {
        pid
        for pid, process in procfs.table().items()
        if not process.is_zombie and procfs.launch_token(pid) == token
    }


def wait_for(condition: Callable[[], Any], timeout_s: float = 10.0) -> Any:
    """The condition's first true value. Fails the test if there is none in time."""
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        value = condition()
        if value:
            return value
        time.sleep(0.02)
    pytest.fail("waited in vain")


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    bench = Bench(tmp_path)
    yield bench
    for pid in bench.left():
        os.kill(pid, signal.SIGKILL)
