"""The log of a real server: vLLM 0.32 on a CPU, shortened."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def healthy_log() -> str:
    return (Path(__file__).parent.parent / "data" / "vllm_0_32_cpu_start.log").read_text()
