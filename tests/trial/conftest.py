"""Trials on the mock engine: a plan with few and small requests."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sweeper.config.schema import EngineConfig, LoadConfig, QualityConfig, WorkloadConfig
from sweeper.engine.registry import create
from sweeper.trial.plan import TrialPlan
from sweeper.trial.progress import Event
from sweeper.trial.run import TrialResult, run_trial

Runner = Callable[..., TrialResult]

# A request of eight tokens then takes long enough that a hiccup of a busy machine between two of
# them does not leave the streams idle for a tenth of the time, which would make the load invalid.
CALM = {"decode_ms": 20.0}


def plan_in(folder: Path, **changes: Any) -> TrialPlan:
    """A plan for a baseline that writes the reference."""
    plan = TrialPlan(
        number=0,
        kind="baseline",
        attempt=1,
        deployment={},
        deployment_hash="h",
        checkpoint="mock",
        engine_parameters={},
        run_dir=folder / "run",
        record_path=folder / "launch.json",
        token=f"test-{secrets.token_hex(8)}",
        start_timeout_s=10,
        workload=WorkloadConfig(input_tokens=16, output_tokens=8),
        load=LoadConfig(
            concurrency=[1, 4], requests_per_stream=3, min_requests=6, request_timeout_s=5
        ),
        quality=QualityConfig(reference_tokens=8, max_prompts=3, request_timeout_s=5),
        device_count=1,
        seed=1,
        quality_key="k",
        may_write_reference=True,
    )
    return replace(plan, **changes)


@pytest.fixture
def events() -> list[Event]:
    return []


@pytest.fixture
def trial(tmp_path: Path, events: list[Event]) -> Runner:
    """Run a trial: `dials` are the mock's options, the rest changes the plan."""

    def run(dials: dict[str, Any] | None = None, **changes: Any) -> TrialResult:
        engine = create(
            EngineConfig(name="mock", options=CALM | (dials or {}), stop_timeout_s=2),
            cache_dir=tmp_path / "cache",
        )
        plan = plan_in(tmp_path, **changes)
        plan.run_dir.mkdir(exist_ok=True)
        return run_trial(plan, engine, events.append)

    return run
