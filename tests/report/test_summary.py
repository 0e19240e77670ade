from __future__ import annotations

from dataclasses import replace

import pytest

from sweeper.config.schema import SelectConfig, SloConfig, SweeperConfig
from sweeper.pareto.points import points_frame
from sweeper.pareto.select import recommend
from sweeper.report.summary import study_summary
from sweeper.report.words import number, seconds
from sweeper.tracking.mlflow_log import StudySummary
from sweeper.trial.outcome import TrialOutcome
from sweeper.verdicts import Verdict
from tests.factories import open_study, outcome, point, study
from tests.pareto.again import confirmed, searched


def summary_of(trials: list[TrialOutcome], slo: SloConfig | None = None) -> StudySummary:
    select = SelectConfig(slo=slo or SloConfig())
    cfg = SweeperConfig(select=select)
    frame = points_frame(trials)
    found = recommend(frame, select) if len(frame) else None
    return study_summary(cfg, trials, frame, found, "budget used up")


def test_summary_names_the_front_and_the_choice() -> None:
    summary = summary_of(study())
    found = recommend(points_frame(study()), SelectConfig())
    assert summary.pareto_trials <= {0, 1, 2}
    assert found.trial in summary.pareto_trials
    assert summary.recommended_trial == found.trial
    assert summary.metrics["recommended_concurrency"] == found.concurrency
    assert summary.tags["recommended_trial"] == str(found.trial)
    assert summary.tags["recommended_quality"] == "agreement with the reference 100.0%"
    assert not summary.interrupted
    assert summary.marks(found.trial) == {
        "pareto": "true",
        "recommended": "true",
        "confirmation": "none",
    }


def test_summary_of_nothing() -> None:
    cfg = SweeperConfig()
    summary = study_summary(cfg, [], points_frame([]), None, "stopped: KeyboardInterrupt")
    assert summary.pareto_trials == frozenset()
    names = ("front_size", "trials", "trials_refused", "launches", "minutes", "failures")
    assert summary.metrics == dict.fromkeys(names, 0.0)
    assert summary.interrupted


def test_launches_are_those_that_worked_and_those_that_failed_by_verdict() -> None:
    """A first attempt that failed was a launch; what was refused before one was none."""
    trials = [*study(), outcome(5, verdict=Verdict.INFRA), outcome(5, attempt=2)]
    told = summary_of(trials).metrics
    assert (told["trials"], told["trials_refused"], told["launches"]) == (6, 1, 6)
    assert (told["failures"], told["failures_capacity"], told["failures_infra"]) == (2, 1, 1)
    assert "failures_infeasible_config" not in told, "it was refused, not launched"
    assert told["minutes"] == pytest.approx(7 * 52 / 60)


def test_the_best_under_the_slo_is_beside_the_best_of_all() -> None:
    told = summary_of(study(), SloConfig(e2e_p95_ms=1000)).metrics
    assert told["study_best_output_tokens_per_s"] == 320
    assert told["study_best_under_slo_output_tokens_per_s"] == 150
    assert "study_best_under_slo_output_tokens_per_s" not in summary_of(study()).metrics
    never = summary_of(study(), SloConfig(e2e_p95_ms=1)).metrics
    assert "study_best_under_slo_output_tokens_per_s" not in never


def test_the_gain_has_the_interval_of_its_two_points() -> None:
    summary = summary_of(study(), SloConfig(e2e_p95_ms=1000))
    low, high = (150 * 0.98) / (100 * 1.02), (150 * 1.02) / (100 * 0.98)
    assert summary.metrics["gain_percent"] == pytest.approx(50)
    assert summary.metrics["gain_low_percent"] == pytest.approx(100 * (low - 1))
    assert summary.metrics["gain_high_percent"] == pytest.approx(100 * (high - 1))
    assert summary.tags["gain_basis"] == "measured once"


def test_a_gain_without_intervals_has_none_in_mlflow_either() -> None:
    bare = [replace(one, points=[replace(point(8), intervals={})]) for one in study()[:2]]
    bare[1].points[0].metrics |= {"output_tokens_per_s_per_gpu": 150.0, "e2e_p95_ms": 500.0}
    told = summary_of(bare).metrics
    assert told["gain_percent"] == pytest.approx(50)
    assert "gain_low_percent" not in told


def test_a_confirmed_gain_is_that_of_the_fresh_launches() -> None:
    summary = summary_of(confirmed(searched(100, 150), {0: [100, 101, 99], 1: [110, 112, 109]}))
    assert summary.tags["gain_basis"] == "confirmed"
    assert summary.metrics["gain_percent"] == pytest.approx(10.3, abs=0.1)
    assert 0 < summary.metrics["gain_low_percent"] < summary.metrics["gain_percent"]
    assert summary.marks(1)["confirmation"] == "better"
    assert summary.marks(0)["confirmation"] == "none"


def test_numbers_are_readable() -> None:
    values = [None, float("nan"), 0.98765, 123.45, 3, 12345.6, "x"]
    assert [number(v) for v in values] == ["-", "-", "0.9877", "123.5", "3", "12,346", "x"]
    assert [seconds(v) for v in (5.4, 65, 3725, -1)] == ["5 s", "1 min 05 s", "1 h 02 min", "0 s"]


def test_summary_of_a_study_at_request_rates() -> None:
    summary = summary_of(open_study())
    assert "recommended_rate_per_s" in summary.metrics
    assert "recommended_concurrency" not in summary.metrics
    assert summary.tags["recommended_level"].endswith("requests/s (poisson)")
