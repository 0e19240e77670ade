"""The simulated engine on a worker that answers by a formula."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sweeper.config.schema import EngineConfig, WorkloadConfig
from sweeper.engine.modelling import Surroundings
from sweeper.engine.simulate.engine import SimulateEngine
from sweeper.estimate.simulator import client
from sweeper.estimate.weights import as_it_is
from sweeper.hardware.facts import HardwareFacts
from tests.estimate.simulator.conftest import FAKE
from tests.models.fakes import QWEN7B_CONFIG

H200 = HardwareFacts("cuda", "h200", 8, 140.4, detected=False)
Make = Callable[..., SimulateEngine]


@pytest.fixture
def make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Make:
    """An engine with the given options."""
    monkeypatch.setattr(client, "WORKER", FAKE)

    def made(options: dict[str, Any] | None = None, **changes: Any) -> SimulateEngine:
        cfg = EngineConfig(name="simulate", python=sys.executable, options=options or {}, **changes)
        return SimulateEngine(cfg, cache_dir=tmp_path / "cache")

    return made


def surroundings(
    model_config: dict[str, Any] | None = None,
    hardware: HardwareFacts = H200,
    **workload: Any,
) -> Surroundings:
    return Surroundings(
        model_config or QWEN7B_CONFIG, hardware, WorkloadConfig(**workload), as_it_is
    )
