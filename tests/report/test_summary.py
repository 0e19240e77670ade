from __future__ import annotations

from sweeper.config.schema import SelectConfig
from sweeper.pareto.points import points_frame
from sweeper.pareto.select import recommend
from sweeper.report.summary import study_summary
from sweeper.report.words import number, seconds
from tests.factories import open_study, study


def test_summary_names_the_front_and_the_choice() -> None:
    frame = points_frame(study())
    found = recommend(frame, SelectConfig())
    summary = study_summary(frame, found, "budget used up")
    assert summary.pareto_trials <= {0, 1, 2}
    assert found.trial in summary.pareto_trials
    assert summary.metrics["recommended_concurrency"] == found.concurrency
    assert summary.tags["recommended_trial"] == str(found.trial)
    assert summary.tags["recommended_quality"] == "agreement with the reference 100.0%"
    assert not summary.interrupted


def test_summary_of_nothing() -> None:
    summary = study_summary(points_frame([]), None, "stopped: KeyboardInterrupt")
    assert summary.pareto_trials == frozenset()
    assert summary.metrics == {"front_size": 0.0}
    assert summary.interrupted


def test_numbers_are_readable() -> None:
    values = [None, float("nan"), 0.98765, 123.45, 3, 12345.6, "x"]
    assert [number(v) for v in values] == ["-", "-", "0.9877", "123.5", "3", "12,346", "x"]
    assert [seconds(v) for v in (5.4, 65, 3725, -1)] == ["5 s", "1 min 05 s", "1 h 02 min", "0 s"]


def test_summary_of_a_study_at_request_rates() -> None:
    frame = points_frame(open_study())
    summary = study_summary(frame, recommend(frame, SelectConfig()), "budget used up")
    assert "recommended_rate_per_s" in summary.metrics
    assert "recommended_concurrency" not in summary.metrics
    assert summary.tags["recommended_level"].endswith("requests/s (poisson)")
