"""Whole studies on the mock engine, run as commands."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

SPACE = """
name: small
parameters:
  max_num_seqs: {choices: [4, 16, 64], default: 16}
  quantization: {choices: [none, fp8_per_tensor]}
  speculative: {choices: [none, ngram]}
  num_speculative_tokens: {choices: [2, 4], default: 2, when: {speculative: [ngram]}}
seeds:
  - {speculative: ngram}
"""

Run = Callable[..., subprocess.CompletedProcess[str]]
MOCK = [
    "engine=mock",
    "hardware=h100_80gb",
    "model=qwen7b",
    "space=small.yaml",
    "workload.input_tokens=16",
    "workload.output_tokens=8",
    "load.concurrency=[1,4]",
    "load.requests_per_stream=2",
    "quality.max_prompts=3",
    "quality.reference_tokens=8",
    "budget.launches=3",
    "sampler=tpe",
    "tracking=none",
]


@pytest.fixture
def sweeper(tmp_path: Path) -> Run:
    """Run `python -m sweeper` in an empty folder that holds a small space."""
    (tmp_path / "small.yaml").write_text(SPACE)

    def run(*arguments: str, timeout_s: float = 120) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "sweeper", *arguments],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
        )

    return run
