"""One stream and the system, prefill and decode: each figure under its own head."""

from __future__ import annotations

from typing import Any

from sweeper.report.modes import modes
from sweeper.trial.outcome import TrialOutcome
from sweeper.verdicts import Verdict
from tests.factories import outcome, point


def level(concurrency: int, load: dict[str, Any] | None = None, **metrics: float) -> Any:
    made = point(concurrency)
    made.metrics.update(metrics)
    made.load.update(load or {})
    return made


def trial(*points: Any, number: int = 0, kind: str = "baseline") -> TrialOutcome:
    made = outcome(number, kind=kind)
    made.points[:] = points
    return made


def test_one_streams_speed_is_not_the_systems() -> None:
    alone = level(1, single_stream_tokens_per_s=41.5, output_tokens_per_s=40.25)
    many = level(8, output_tokens_per_s=222.5, output_tokens_per_s_per_user=27.8)
    text = modes([trial(alone, many)], None)
    assert "one stream alone" in text and "41.5" in text and "222.5" in text
    assert "Prefill: TTFT" in text and "Decode: TPOT" in text


def test_only_the_baseline_and_the_recommended_trial_are_shown() -> None:
    trials = [
        trial(level(1, tpot_p50_ms=11.25)),
        trial(level(1, tpot_p50_ms=22.25), number=1, kind="search"),
        trial(level(1, tpot_p50_ms=33.25), number=2, kind="search"),
    ]
    text = modes(trials, 2)
    assert "11.25" in text and "33.25" in text and "22.25" not in text


def test_details_appear_where_a_level_has_them() -> None:
    bins = [{"n": 7, "input_tokens_mean": 512.0, "ttft_p50_ms": 77.5, "ttft_p95_ms": 88.5}]
    parts = [{"request_rate_offered_per_s": 3.5, "n": 9, "ttft_p95_ms": 5.0, "e2e_p95_ms": 66.5}]
    plain = modes([trial(level(1))], None)
    assert "by input length" not in plain and "Ramp" not in plain
    text = modes([trial(level(1, {"ttft_by_input": bins, "segments": parts}))], None)
    assert "by input length" in text and "77.5" in text
    assert "Ramp" in text and "66.5" in text


def test_nothing_is_said_without_a_valid_point() -> None:
    failed = trial()
    failed.verdict = Verdict.CAPACITY
    assert modes([failed], None) == ""
