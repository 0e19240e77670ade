"""A toolchain that is a script of this folder, and models and jobs for it."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sweeper.quantize import tools
from sweeper.quantize.job import CheckpointJob
from sweeper.quantize.recipe import Recipe

SCRIPT = Path(__file__).with_name("fake_worker.py")
NAME = "llmcompressor"
"""The tool whose place it takes, so that the configuration knows its recipes."""

RECIPE = Recipe("w4a16", NAME, method="W4A16", bits=4, group_size=64, symmetric=True)


class FakeTool(tools.Tool):
    """`tools.Tool`, but for its script."""

    pins = {"fake": "==1.0"}  # noqa: RUF012 - takes the place of a cached property

    @property
    def script(self) -> Path:
        return SCRIPT


def install(patch: pytest.MonkeyPatch) -> None:
    """Put the fake in the place of a real tool."""
    real = tools.TOOLS[NAME]
    patch.setitem(tools.TOOLS, NAME, FakeTool(NAME, real.formats))  # type: ignore[attr-defined]


def model_in(folder: Path, say: Mapping[str, Any] | None = None) -> Path:
    """A model's folder that tells the fake what to do."""
    folder.mkdir(exist_ok=True)
    tell(folder, say or {})
    return folder


def tell(model: Path, say: Mapping[str, Any]) -> None:
    (model / "fake.json").write_text(json.dumps(dict(say)))


def runs(model: Path) -> int:
    """How often the fake has begun."""
    path = model / "runs.txt"
    return len(path.read_text().splitlines()) if path.exists() else 0


def job_for(model: Path, cache_dir: Path, **changes: Any) -> CheckpointJob:
    job = CheckpointJob(
        recipe=RECIPE,
        model_path=str(model),
        model_digest="d1",
        cache_dir=cache_dir,
        timeout_s=60,
        python=sys.executable,
        device="cpu",
        memory_gib=8.0,
    )
    return replace(job, **changes)
