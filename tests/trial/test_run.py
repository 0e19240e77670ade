"""One launch from plan to outcome: what is measured, and each way it can end."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sweeper.trial import vital
from sweeper.trial.outcome import QualityScore, TrialOutcome
from sweeper.trial.progress import Event, LevelDone, PhaseChanged
from sweeper.verdicts import Phase, Verdict
from tests.trial.conftest import Runner


def test_a_baseline_is_measured_at_every_level_and_writes_the_reference(
    trial: Runner, tmp_path: Path, events: list[Event]
) -> None:
    result = trial()
    outcome = result.outcome
    assert outcome.verdict is Verdict.OK, outcome.cause
    assert [point.concurrency for point in outcome.points] == [1, 4]
    assert all(point.valid for point in outcome.points), [p.reasons for p in outcome.points]
    assert outcome.points[0].metrics["input_tokens_mean"] == 16
    assert outcome.points[0].metrics["output_tokens_mean"] == 8
    assert result.reference is not None
    assert outcome.quality is not None
    assert outcome.quality.tokens == 3 * 8
    assert set(outcome.timings_s) >= {"start", "ready", "load", "quality", "stop", "total"}
    assert outcome.timings_s["total"] >= outcome.timings_s["load"]
    assert (tmp_path / "run" / "requests.parquet").exists()
    assert (tmp_path / "run" / "server.log").exists()
    assert not (tmp_path / "launch.json").exists(), "the note of a running launch is gone"
    phases = [event.phase for event in events if isinstance(event, PhaseChanged)]
    assert phases == ["start", "warmup", "load", "load", "quality", "stop"]
    driven = [event.level for event in events if isinstance(event, LevelDone)]
    assert driven == ["concurrency 1", "concurrency 4"]


def test_an_outcome_survives_the_journal(trial: Runner) -> None:
    outcome = trial().outcome
    line = json.dumps(outcome.to_dict(), allow_nan=False)
    assert TrialOutcome.from_dict(json.loads(line)) == outcome


def test_no_text_is_kept_anywhere(trial: Runner, tmp_path: Path) -> None:
    from sweeper.load.prompts import sentences
    from sweeper.quality.suite import load_suite

    outcome = trial().outcome
    kept = json.dumps(outcome.to_dict()) + "".join(
        path.read_bytes().decode("utf-8", errors="ignore")
        for path in (tmp_path / "run").rglob("*")
        if path.is_file()
    )
    for text in [*sentences(), *(prompt.text for prompt in load_suite())]:
        assert text not in kept


def test_a_known_score_is_reused_without_asking(trial: Runner, events: list[Event]) -> None:
    known = QualityScore(0.5, 0.1, -0.1, 0.05, 24, "k")
    outcome = trial(known_quality=known).outcome
    assert outcome.quality is not None
    assert (outcome.quality.agreement, outcome.quality.reused) == (0.5, True)
    assert "quality" not in [e.phase for e in events if isinstance(e, PhaseChanged)]


def test_broken_output_fails_by_its_quality_however_fast_it_is(trial: Runner) -> None:
    reference = trial().reference
    outcome = trial(
        {"quality_loss": {"fp8_per_tensor": 0.9}},
        number=1,
        kind="search",
        deployment={"quantization": "fp8_per_tensor"},
        engine_parameters={"quantization": "fp8_per_tensor"},
        reference=reference,
        may_write_reference=False,
    ).outcome
    assert outcome.verdict is Verdict.QUALITY_FAIL
    assert outcome.phase == Phase.QUALITY
    assert outcome.quality is not None
    assert outcome.quality.agreement < 0.5
    assert outcome.points, "what was measured is kept"


def test_without_a_reference_only_the_reference_deployment_may_write_one(trial: Runner) -> None:
    result = trial(may_write_reference=False)
    assert result.reference is None
    assert result.outcome.quality is None


FAULTS: list[tuple[dict[str, Any], Verdict, str]] = [
    (
        {"die_at": "start", "log_text": "ValueError: No available memory for the cache blocks."},
        Verdict.CAPACITY,
        "start",
    ),
    ({"die_at": "start", "log_text": "something nobody has seen"}, Verdict.UNKNOWN, "start"),
    (
        {"die_at": "load", "after_requests": 5, "exit_code": -9},
        Verdict.CRASH_UNDER_LOAD,
        "load",
    ),
    ({"http_500_after": 0}, Verdict.CRASH_UNDER_LOAD, "warmup"),
    ({"hang_at": "load", "after_requests": 8}, Verdict.CRASH_UNDER_LOAD, "load"),
    ({"no_usage": True}, Verdict.MEASUREMENT_INVALID, "load"),
    ({"reset_connection_every": 2}, Verdict.MEASUREMENT_INVALID, "load"),
]


@pytest.mark.parametrize(("fault", "verdict", "phase"), FAULTS, ids=[str(f[0]) for f in FAULTS])
def test_every_end_has_its_verdict_and_phase(
    trial: Runner,
    fault: dict[str, Any],
    verdict: Verdict,
    phase: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(vital, "ANSWER_TIMEOUT_S", 1.0)
    monkeypatch.setattr(vital, "DYING_S", 0.5)
    outcome = trial({"faults": [fault]}).outcome
    assert (outcome.verdict, outcome.phase) == (verdict, phase), outcome.cause
    assert outcome.cause
    assert outcome.remedy
    assert not any(point.valid for point in outcome.points) or verdict is Verdict.CRASH_UNDER_LOAD


def test_a_hang_at_start_is_ended_by_its_deadline(trial: Runner) -> None:
    outcome = trial({"faults": [{"hang_at": "start"}]}, start_timeout_s=1.5).outcome
    assert outcome.verdict is Verdict.STARTUP_TIMEOUT
    assert outcome.timings_s["total"] < 8
