"""Answers that are none: each has its verdict at every stage, in time."""

from __future__ import annotations

import resource

import pytest

from sweeper.engine.mock.fault import ASKED_STAGES, GARBAGE
from sweeper.verdicts import Phase, Verdict
from tests.faults.cells import FIRST_LEVEL
from tests.faults.conftest import Bench

PHASES = {
    "ready": {Phase.WARMUP},
    "warmup": {Phase.WARMUP},
    "load": {Phase.LOAD},
    "quality": {Phase.QUALITY},
}
VERDICTS = {
    "ready": {Verdict.CRASH_UNDER_LOAD, Verdict.STARTUP_TIMEOUT},
    "warmup": {Verdict.MEASUREMENT_INVALID},
    "load": {Verdict.CRASH_UNDER_LOAD, Verdict.MEASUREMENT_INVALID},
    "quality": {Verdict.MEASUREMENT_INVALID, Verdict.QUALITY_FAIL},
}
MORE_MIB = 500


@pytest.mark.parametrize("garbage", [kind for kind in GARBAGE if kind != "not_numbers"])
@pytest.mark.parametrize("stage", ASKED_STAGES)
def test_garbage_has_its_verdict(bench: Bench, stage: str, garbage: str) -> None:
    before_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    outcome = bench.run({"garbage_at": stage, "garbage": garbage}, start_timeout_s=3).outcome
    assert outcome.verdict in VERDICTS[stage], outcome.cause
    assert outcome.phase in PHASES[stage]
    assert outcome.cause and "\n" not in outcome.cause and len(outcome.cause) < 1000
    assert "fault of the tuner" not in outcome.cause
    assert outcome.remedy and outcome.evidence
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024 - before_mib < MORE_MIB


@pytest.mark.parametrize("stage", ["warmup", "load", "quality"])
def test_numbers_that_are_none_are_no_measurement(bench: Bench, stage: str) -> None:
    outcome = bench.run({"garbage_at": stage, "garbage": "not_numbers"}).outcome
    assert outcome.verdict is Verdict.MEASUREMENT_INVALID, outcome.cause
    assert "fault of the tuner" not in outcome.cause
    assert outcome.phase in PHASES[stage]


def test_a_healthy_server_with_a_dead_engine_is_a_crash(bench: Bench) -> None:
    """Everything but completions goes on answering, /health with 200 among it."""
    for fault in ({"http_500_after": 3}, {"hang_at": "load", "after_requests": FIRST_LEVEL}):
        outcome = bench.run(fault).outcome
        assert (outcome.verdict, outcome.phase) == (Verdict.CRASH_UNDER_LOAD, Phase.LOAD)
