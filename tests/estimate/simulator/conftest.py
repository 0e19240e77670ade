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

FAKE = Path(__file__).with_name("fake_worker.py")
QWEN = {
    "architectures": ["Qwen2ForCausalLM"],
    "model_type": "qwen2",
    "num_hidden_layers": 28,
    "hidden_size": 3584,
    "intermediate_size": 18944,
    "num_attention_heads": 28,
    "num_key_value_heads": 4,
    "vocab_size": 152064,
    "max_position_embeddings": 32768,
    "torch_dtype": "bfloat16",
}


def ask(parameters: dict[str, Any] | None = None, **changes: Any) -> SimulatorAsk:
    """Qwen2.5-7B on an H200 under 8 streams."""
    plain = SimulatorAsk(
        model_config=QWEN,
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
