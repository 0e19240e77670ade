from __future__ import annotations

import json

import pandas as pd

from sweeper.pareto.points import FIXED_COLUMNS, latest_attempts, points_frame, row_dict
from sweeper.verdicts import Verdict
from tests.factories import open_load, open_study, outcome, point, study


def test_one_row_an_operating_point_in_order() -> None:
    frame = points_frame(reversed(study()))
    assert list(zip(frame["trial"], frame["concurrency"], strict=True)) == [
        (t, c) for t in (0, 1, 2) for c in (1, 8, 32)
    ]
    row = frame.iloc[5]
    assert row["output_tokens_per_s"] == 320
    assert row["param.max_num_seqs"] == 64
    assert row["deployment"] == {"max_num_seqs": 64, "enable_prefix_caching": False}
    assert pd.isna(frame.iloc[0]["param.max_num_seqs"])
    assert row["e2e_p95_ms.low"] < 1800 < row["e2e_p95_ms.high"]
    assert not frame.iloc[8]["valid"]
    assert frame.iloc[8]["quality"] == 0.95


def test_no_outcomes_give_an_empty_frame_with_columns() -> None:
    frame = points_frame([outcome(1, verdict=Verdict.CAPACITY)])
    assert frame.empty
    assert set(FIXED_COLUMNS) <= set(frame.columns)


def test_a_retry_takes_the_place_of_the_first_attempt() -> None:
    first = outcome(1, verdict=Verdict.MEASUREMENT_INVALID, points=[point(8, valid=False)])
    second = outcome(1, attempt=2, points=[point(8, throughput=7)])
    assert latest_attempts([second, first]) == [second]
    assert points_frame([first, second])["output_tokens_per_s"].tolist() == [7.0]


def test_what_was_not_measured_is_absent_from_a_row() -> None:
    frame = points_frame([outcome(0, agreement=None), outcome(1, points=[point(8, odd=1.0)])])
    row = row_dict(frame.iloc[0].to_dict())
    assert "quality" not in row
    assert "odd" not in row
    assert not any(name.startswith("param.") for name in row)
    json.dumps(row, allow_nan=False)


def test_prediction_is_read_from_the_manifest() -> None:
    frame = points_frame([outcome(0, manifest={"engine": {"predicted": True}})])
    assert frame["predicted"].tolist() == [True]


def test_rows_are_known_by_trial_and_level_in_the_order_of_the_ladder() -> None:
    frame = points_frame(open_study())
    rates = ["1 requests/s (poisson)", "2 requests/s (poisson)", "4 requests/s (poisson)"]
    assert frame["level"].tolist() == rates * 2
    assert frame["rung"].tolist() == [0, 1, 2] * 2
    assert set(frame["load_kind"]) == {"open"}
    row = row_dict(frame.iloc[0].to_dict())
    assert row["rate_per_s"] == 1.0
    assert "concurrency" not in row
    assert frame["saturated"].tolist() == [False] * 5 + [True]


def test_kinds_of_load_stand_in_one_table_without_losing_their_numbers() -> None:
    batch = {"kind": "batch", "concurrency": 16}
    replay = {"kind": "replay", "time_scale": 2.0}
    points = [point(8), point(load=batch), point(load=open_load(4.0)), point(load=replay)]
    frame = points_frame([outcome(0, points=points)])
    rows = [row_dict(row) for row in frame.to_dict("records")]
    assert {row["level"] for row in rows} == {
        "concurrency 8",
        "batch of 16",
        "4 requests/s (poisson)",
        "trace at 2x speed",
    }
    asked = {row["level"]: row.get("concurrency") for row in rows}
    assert asked["concurrency 8"] == 8
    assert isinstance(asked["concurrency 8"], int)
    assert asked["trace at 2x speed"] is None
    assert "None" not in str(frame.to_csv(columns=["level", "concurrency", "rate_per_s"]))


def test_what_arithmetic_says_of_a_point_is_kept_apart_from_what_was_measured() -> None:
    bounded = point(8)
    bounded.predicted = {"tpot_floor_ms": 5.0}
    frame = points_frame([outcome(0, points=[bounded])])
    assert frame["predicted.tpot_floor_ms"].tolist() == [5.0]
    assert frame["predicted"].tolist() == [False]
