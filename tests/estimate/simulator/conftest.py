"""Questions to a simulator, and one that is not there."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sweeper.estimate.simulator import client
from sweeper.estimate.simulator.ask import SimulatorAsk
from sweeper.estimate.simulator.client import Simulator
from tests.models.fakes import QWEN7B_CONFIG

FAKE = Path(__file__).with_name("fake_worker.py")


def ask(parameters: dict[str, Any] | None = None, **changes: Any) -> SimulatorAsk:
    """Qwen2.5-7B on an H200 under 8 streams."""
    plain = SimulatorAsk(
        model_config=QWEN7B_CONFIG,
        hardware="h200",
        parameters=parameters or {},
        input_tokens=512,
        output_tokens=128,
        requests=32,
        concurrency=8,
    )
    return replace(plain, **changes)


@pytest.fixture
def simulator(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Simulator]:
    monkeypatch.setattr(client, "WORKER", FAKE)
    with Simulator(tmp_path / "log", python=sys.executable) as made:
        yield made
