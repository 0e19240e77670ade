"""A start that hangs is ended by what stands still, and one that works slowly is not."""

from __future__ import annotations

from typing import Any

import pytest

from sweeper.config.schema import EngineConfig
from sweeper.engine.protocol import Engine, LaunchFailure
from sweeper.engine.registry import create
from sweeper.verdicts import Phase, Verdict
from tests.engine.conftest import Bench


def patient(bench: Bench, stall_timeout_s: float, **options: Any) -> Engine:
    cfg = EngineConfig(
        name="mock", options=options, stop_timeout_s=1.0, stall_timeout_s=stall_timeout_s
    )
    return create(cfg, cache_dir=bench.folder / "cache")


def test_a_start_in_which_nothing_moves_ends_before_its_deadline(bench: Bench) -> None:
    text = "vLLM is using nccl==2.27.3"
    engine = patient(bench, 1.5, faults={"hang_at": "start", "log_text": text})
    with (
        pytest.raises(LaunchFailure) as caught,
        engine.serve(bench.request(start_timeout_s=120.0)),
    ):
        pass
    found = caught.value.diagnosis
    assert (found.verdict, found.phase) == (Verdict.STARTUP_TIMEOUT, Phase.START)
    assert found.learnt == {"rule": "start_stalled", "last_log_line": text}
    assert "the start hangs: nothing answered on its port; nothing moved for" in found.cause
    assert found.cause.endswith(f"last line of the log: {text}")
    assert not bench.left()


def test_a_first_completion_that_never_comes_is_a_stall_of_the_warmup(bench: Bench) -> None:
    engine = patient(bench, 1.5, faults={"hang_at": "ready"})
    with (
        pytest.raises(LaunchFailure) as caught,
        engine.serve(bench.request(start_timeout_s=120.0)),
    ):
        pass
    found = caught.value.diagnosis
    assert (found.verdict, found.phase) == (Verdict.STARTUP_TIMEOUT, Phase.WARMUP)
    assert found.learnt["rule"] == "start_stalled"
