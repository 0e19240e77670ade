"""Trials and launches as tables: retries, confirmations, types, missing figures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from sweeper.notebook.frames import LAUNCH_COLUMNS, TRIAL_COLUMNS, launches_frame, trials_frame
from sweeper.pareto.points import points_frame
from sweeper.trial.outcome import TrialOutcome
from sweeper.verdicts import Verdict
from tests.factories import outcome, point
from tests.factories import study as outcomes_of_a_study


def folder_of(number: int, attempt: int) -> Path:
    return Path(f"/studies/x/trials/{number}/{attempt}")


def trials(outcomes: list[TrialOutcome]) -> pd.DataFrame:
    return trials_frame(outcomes, points_frame(outcomes))


def row_of(frame: pd.DataFrame, trial: int) -> dict[str, Any]:
    found = frame[frame["trial"] == trial].to_dict("records")
    assert len(found) == 1
    return {str(name): value for name, value in found[0].items()}


def test_a_trial_tells_its_end_its_best_and_what_it_cost() -> None:
    frame = trials(outcomes_of_a_study())
    assert list(frame.columns[: len(TRIAL_COLUMNS)]) == list(TRIAL_COLUMNS)
    best = row_of(frame, 1)
    assert (
        best["peak_output_tokens_per_s_per_gpu"] == 320 and best["peak_level"] == "concurrency 32"
    )
    assert best["lowest_e2e_p95_ms"] == 380 and best["on_front"]
    assert (best["points"], best["valid_points"], best["launches"]) == (3, 3, 1)
    invalid = row_of(frame, 2)
    assert invalid["peak_output_tokens_per_s_per_gpu"] == 130 and invalid["valid_points"] == 2
    failed = row_of(frame, 3)
    assert failed["verdict"] == "CAPACITY" and failed["remedy"]


def test_what_was_not_measured_is_no_number() -> None:
    frame = trials(outcomes_of_a_study())
    for trial in (3, 4):
        row = row_of(frame, trial)
        for name in ("peak_output_tokens_per_s_per_gpu", "lowest_e2e_p95_ms", "quality"):
            assert pd.isna(row[name])
        assert not row["on_front"]
    assert row_of(frame, 4)["launches"] == 0
    untimed = trials([outcome(0, timings_s={})])
    assert pd.isna(row_of(untimed, 0)["total_s"])


def test_settings_keep_their_types_where_others_leave_them_out() -> None:
    frame = trials(outcomes_of_a_study())
    assert str(frame["param.max_num_seqs"].dtype) == "Int64"
    assert row_of(frame, 1)["param.max_num_seqs"] == 64
    assert pd.isna(row_of(frame, 0)["param.max_num_seqs"])
    assert str(frame["param.enable_prefix_caching"].dtype) == "boolean"


def test_confirmations_and_retries_are_launches_and_no_trials() -> None:
    outcomes = [
        outcome(0),
        outcome(1, deployment={"max_num_seqs": 64}, verdict=Verdict.INFRA),
        outcome(1, deployment={"max_num_seqs": 64}, attempt=2),
        outcome(2, kind="confirm", deployment={"max_num_seqs": 64}, repeats=1),
        outcome(3, kind="confirm", repeats=0),
    ]
    frame = trials(outcomes)
    assert frame["trial"].tolist() == [0, 1]
    assert frame["launches"].tolist() == [2, 3]
    assert frame["total_s"].tolist() == [104.0, 156.0]
    assert row_of(frame, 1)["verdict"] == "OK"
    launches = launches_frame(outcomes, folder_of)
    assert list(launches.columns) == list(LAUNCH_COLUMNS)
    assert launches[["trial", "attempt"]].to_numpy().tolist() == [
        [0, 1], [1, 1], [1, 2], [2, 1], [3, 1],
    ]  # fmt: skip
    assert launches["repeats"].tolist() == [pd.NA, pd.NA, pd.NA, 1, 0]
    assert launches["folder"].iloc[2] == "/studies/x/trials/1/2"


def test_a_launch_tells_its_seconds_by_phase_and_when_it_began() -> None:
    frame = launches_frame([outcome(0), outcome(1, started_at="")], folder_of)
    assert frame[["start_s", "load_s", "total_s"]].iloc[0].tolist() == [30.0, 20.0, 52.0]
    assert pd.isna(frame["quality_s"].iloc[0])
    assert frame["started_at"].iloc[0] == pd.Timestamp("2024-01-01", tz="UTC")
    assert pd.isna(frame["started_at"].iloc[1])
    assert frame["requests_ok"].tolist() == [64, 64]


def test_a_table_without_latency_at_p95_gives_none_of_it() -> None:
    only = point(1)
    del only.metrics["e2e_p95_ms"]
    only.metrics["e2e_mean_ms"] = 5.0
    row = row_of(trials([outcome(0, points=[only])]), 0)
    assert row["peak_output_tokens_per_s_per_gpu"] == 100 and pd.isna(row["lowest_e2e_p95_ms"])


@pytest.mark.parametrize("made", [[], [outcome(0, points=[])]])
def test_types_do_not_depend_on_what_is_there(made: list[TrialOutcome]) -> None:
    full = outcomes_of_a_study()
    for frame, other, columns in (
        (trials(made), trials(full), TRIAL_COLUMNS),
        (launches_frame(made, folder_of), launches_frame(full, folder_of), LAUNCH_COLUMNS),
    ):
        assert [frame[c].dtype for c in columns] == [other[c].dtype for c in columns]
