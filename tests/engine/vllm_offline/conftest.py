"""Workers on a made-up vLLM, and a watch on what they leave behind."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from sweeper.config.schema import EngineConfig
from sweeper.engine.protocol import BatchJob, EngineFacts, RunningServer
from sweeper.engine.vllm import engine as vllm_engine
from sweeper.engine.vllm.facts import VllmInstallation
from sweeper.engine.vllm_offline.engine import VllmOfflineEngine
from tests.engine.conftest import Bench

FAKE = Path(__file__).with_name("fake")


class OfflineBench(Bench):
    """Engines whose interpreter finds the made-up vLLM first."""

    def offline(self, *, stop_timeout_s: float = 1.0, **fields: Any) -> VllmOfflineEngine:
        env = {"PYTHONPATH": str(FAKE), **fields.pop("env", {})}
        cfg = EngineConfig(name="vllm_offline", env=env, stop_timeout_s=stop_timeout_s, **fields)
        return VllmOfflineEngine(cfg, cache_dir=self.folder / "cache")

    @contextmanager
    def worker(
        self, parameters: dict[str, Any] | None = None, **changes: Any
    ) -> Iterator[RunningServer]:
        """A ready worker; parameters beginning with ``fake_`` are faults of the made-up vLLM."""
        flagged = {
            f"flag.{k}" if k.startswith("fake_") else k: v for k, v in (parameters or {}).items()
        }
        with self.offline().serve(self.request(flagged, **changes)) as server:
            yield server


def job(*lengths: int, timeout_s: float = 10.0, **fields: Any) -> BatchJob:
    """Prompts of three tokens, with these output lengths."""
    return BatchJob([[1, 2, 3] for _ in lengths], list(lengths), timeout_s, **fields)


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[OfflineBench]:
    import os
    import signal
    import sys

    facts = EngineFacts("vllm", "0.0.1", "vllm", "cpu")
    found = VllmInstallation(facts, sys.executable, "vllm.server")
    monkeypatch.setattr(vllm_engine, "probe", lambda python: found)
    bench = OfflineBench(tmp_path)
    yield bench
    for pid in bench.left():
        os.kill(pid, signal.SIGKILL)
