from __future__ import annotations

import csv
import io

from sweeper.config.schema import SelectConfig
from sweeper.pareto.points import points_frame
from sweeper.pareto.select import recommend
from sweeper.report.conditions_csv import pareto_csv
from sweeper.trial.outcome import TrialOutcome
from tests.factories import outcome, point, study


def rows(outcomes: list[TrialOutcome]) -> list[dict[str, str]]:
    frame = points_frame(outcomes)
    found = recommend(frame, SelectConfig()) if len(frame) else None
    return list(csv.DictReader(io.StringIO(pareto_csv(frame, outcomes, found, "tiny"))))


def test_every_row_has_its_conditions_and_what_it_gains() -> None:
    outcomes = study()
    outcomes[1].manifest |= {"model": {"name": "qwen7b"}, "workload": {"input_tokens": 512}}
    told = rows(outcomes)
    assert sum(row["recommended"] == "True" for row in told) == 1
    row = next(row for row in told if row["trial"] == "1" and row["level"] == "concurrency 8")
    assert (row["study"], row["model"], row["engine"]) == ("tiny", "qwen7b", "vllm")
    assert (row["engine_version"], row["input_tokens_asked"]) == ("0.32.0", "512")
    assert float(row["output_tokens_per_s_per_gpu_over_baseline"]) == 1.5
    assert row["quality_unit"] == "share"
    assert row["hardware"] == ""
    assert row["output_tokens_per_s_per_gpu.low"] != ""


def test_no_cell_is_a_formula() -> None:
    evil = "=HYPERLINK(0)"
    told = rows(
        [outcome(0), outcome(1, deployment={"flag.x": evil}, points=[point(8, throughput=900)])]
    )
    assert [row["param.flag.x"] for row in told if row["param.flag.x"]] == [f"'{evil}"]


def test_nothing_measured_is_an_empty_table() -> None:
    assert rows([]) == []
    assert pareto_csv(points_frame([]), [], None, "tiny").startswith("trial,attempt")
