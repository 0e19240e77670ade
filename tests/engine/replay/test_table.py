"""Tables: the four forms, the baseline, what is not in them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sweeper.engine.replay.table import NOT_IN_TABLE, Table
from sweeper.errors import ConfigError
from sweeper.space.canonical import enumerate_canonical, size
from sweeper.space.parse import parse_space
from sweeper.verdicts import Phase, Verdict
from tests.engine.replay.tables import (
    csv_row,
    deployment_line,
    metrics,
    sparse_table,
    write_csv,
    write_lines,
)
from tests.factories import outcome, point


def test_one_deployment_a_line(tmp_path: Path) -> None:
    table = Table.load(sparse_table(tmp_path / "t.jsonl.gz"))
    assert len(table.rows) == 12
    assert not table.is_predicted
    row = table.lookup({"speculative": "ngram", "max_num_seqs": 1, "num_speculative_tokens": 2})
    assert row is not None
    assert (row.virtual_s, row.start_s, row.device_count) == (50.0, 30.0, 1)
    assert [level.concurrency for level in row.levels] == [1, 8]
    assert [streams for _, streams, _ in table.ladder] == [1, 8]
    failed = table.lookup({"max_num_seqs": 32})
    assert failed is not None and failed.verdict is Verdict.CAPACITY


def test_the_space_lists_what_the_table_has(tmp_path: Path) -> None:
    table = Table.load(sparse_table(tmp_path / "t.jsonl"))
    product = parse_space(table.space)
    listed = table.within(product)
    assert size(product) == 18
    assert size(listed) == 12
    everything = enumerate_canonical(listed, 1)
    assert everything is not None
    assert {json.dumps(one) for one in everything} == {
        json.dumps(dict(sorted(row.deployment.items()))) for row in table.rows
    }


def test_a_whole_product_needs_no_list(tmp_path: Path) -> None:
    lines = [
        deployment_line({"max_num_seqs": n, "block_size": b}) for n in (1, 2) for b in (16, 32)
    ]
    table = Table.load(write_lines(tmp_path / "t.jsonl", lines))
    assert table.within(parse_space(table.space)).listed is None


def test_a_space_without_any_of_its_deployments_is_refused(tmp_path: Path) -> None:
    table = Table.load(sparse_table(tmp_path / "t.jsonl"))
    other = Table.load(write_lines(tmp_path / "o.jsonl", [deployment_line({"block_size": 16})]))
    with pytest.raises(ConfigError, match="none of the 12 deployments") as refused:
        table.within(parse_space(other.space))
    assert "max_num_seqs" in refused.value.remedy


def test_what_is_not_there_or_was_never_launched_is_refused(tmp_path: Path) -> None:
    lines = [
        deployment_line({"max_num_seqs": 8}),
        {
            "deployment": {"max_num_seqs": 16},
            "verdict": "INFEASIBLE_CONFIG",
            "cause": "too many",
            "remedy": "fewer",
            "launched": False,
            "learnt": {"rule": "r"},
        },
    ]
    table = Table.load(write_lines(tmp_path / "t.jsonl", lines))
    assert table.refusal({"max_num_seqs": 8}) is None
    assert table.refusal({"max_num_seqs": 16}) == (NOT_IN_TABLE, "too many", "fewer")
    missing = table.refusal({"max_num_seqs": 32})
    assert missing is not None and missing[0] == NOT_IN_TABLE and "not in the table" in missing[1]


def test_a_study_of_ones_own(tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    trials = [
        outcome(0, points=[point(1, throughput=10), point(8, throughput=50)]),
        outcome(1, deployment={"max_num_seqs": 4}, points=[point(1), point(8, valid=False)]),
        outcome(2, deployment={"max_num_seqs": 9}, verdict=Verdict.INFRA, points=[]),
        outcome(3, deployment={"max_num_seqs": 8}, verdict=Verdict.CAPACITY, points=[]),
        outcome(4, kind="confirm", points=[point(1, throughput=99)]),
    ]
    lines = [{**one.to_dict(), "timings_s": {"load": 20.0, "total": 60.0}} for one in trials]
    write_lines(folder / "trials.jsonl", lines)
    table = Table.load(folder)
    assert [dict(row.deployment) for row in table.rows] == [
        {},
        {"max_num_seqs": 4},
        {"max_num_seqs": 8},
    ]
    assert table.contents.notes == ("1 trials that say nothing of their deployment",)
    assert table.baseline.deployment == {}
    first, second, third = table.rows
    assert (first.start_s, [level.virtual_s for level in first.levels]) == (40.0, [10.0, 10.0])
    assert first.levels[0].metrics["output_tokens_per_s"] == 10
    assert second.levels[1].reasons == ("success rate 0.5 is below 0.99",)
    assert third.verdict is Verdict.CAPACITY
    assert "study mine" in table.told_source


def test_a_retry_counts_and_a_torn_end_does_not(tmp_path: Path) -> None:
    lines = [
        outcome(0, points=[point(1)]).to_dict(),
        {**outcome(1, verdict=Verdict.INFRA, points=[]).to_dict(), "deployment": {"block_size": 1}},
        {**outcome(1, attempt=2, points=[point(1)]).to_dict(), "deployment": {"block_size": 1}},
    ]
    path = write_lines(tmp_path / "trials.jsonl", lines)
    path.write_text(path.read_text() + '{"number": 2, "depl')
    assert [row.verdict for row in Table.load(path).rows] == [Verdict.OK, Verdict.OK]


def test_simulated_points_are_predicted(tmp_path: Path) -> None:
    lines = [
        {"tp": 2, "ms": 8, "mbt": 512, "q": q, "mf": 0.9, "conc": c, "thr": 100.0 * c, "p95": 50.0}
        for q in ("bf16", "fp8_block")
        for c in (8, 1)
    ]
    table = Table.load(write_lines(tmp_path / "simulated_tiny_h200.jsonl.gz", lines))
    assert table.is_predicted and "predicted, not measured" in table.told_source
    assert (table.contents.model, table.contents.hardware) == ("tiny", "h200")
    assert table.baseline.deployment.get("quantization") is None
    level = table.rows[1].levels[1]
    assert level.metrics["output_tokens_per_s"] == 2 * level.metrics["output_tokens_per_s_per_gpu"]
    assert "ttft_p50_ms" not in level.metrics


# CSV of measured rows


def test_rows_of_a_csv_have_their_throughput_by_littles_law(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "s.csv", [csv_row(8), csv_row(16, silicon_tpot_ms=19)])
    table = Table.load(path)
    assert len(table.rows) == 1
    light, heavy = table.rows[0].levels
    # 100 ms to the first token and 100 further ones of 9 ms: a request a second and stream.
    assert light.metrics["e2e_mean_ms"] == pytest.approx(1000.0)
    assert light.metrics["output_tokens_per_s"] == pytest.approx(8 * 101)
    assert light.metrics["output_tokens_per_s_per_gpu"] == pytest.approx(4 * 101)
    assert heavy.metrics["e2e_mean_ms"] == pytest.approx(2000.0)
    assert not any("p95" in name for name in table.metrics)
    assert (table.contents.input_tokens, table.contents.output_tokens) == (1000, 101)


def test_workers_that_run_apart_are_a_branch_of_their_own(tmp_path: Path) -> None:
    apart = {"mode": "disagg", "tp_size": "", "attention_dp_size": "", "prefill_num_workers": 2}
    apart |= {"prefill_tp_size": 1, "decode_num_workers": 1, "decode_tp_size": 4}
    rows = [csv_row(8), csv_row(8, tp_size=4), csv_row(8, **apart)]
    rows.append(csv_row(8, **{**apart, "decode_tp_size": 8}))
    table = Table.load(write_csv(tmp_path / "s.csv", rows))
    assert [row.device_count for row in table.rows] == [2, 4, 6, 10]
    forms = table.space.parameters
    assert forms["flag.decode_tp_size"]["when"] == {"flag.mode": ["disagg"]}
    assert forms["tensor_parallel_size"]["when"] == {"flag.mode": ["agg"]}
    assert table.baseline.deployment["flag.mode"] == "agg"


def test_of_repeated_rows_the_latest_counts_and_silent_ones_are_left_out(tmp_path: Path) -> None:
    late = csv_row(8, silicon_tpot_ms=1)
    late["silicon_data_source"] = late["silicon_data_source"].replace("2026-04", "2026-05")
    table = Table.load(write_csv(tmp_path / "s.csv", [late, csv_row(8), csv_row(None)]))
    assert table.rows[0].levels[0].metrics["tpot_mean_ms"] == 1
    assert table.contents.notes == ("1 rows that do not say their number of streams",)


def test_a_batch_may_be_a_parameter(tmp_path: Path) -> None:
    rows = [csv_row(8, batch_size=8), csv_row(16, batch_size=16)]
    table = Table.load(write_csv(tmp_path / "s.csv", rows), batch="parameter")
    assert [row.deployment["flag.batch_size"] for row in table.rows] == [8, 16]


def test_groups_are_listed_and_found_by_their_words(tmp_path: Path) -> None:
    rows = [csv_row(8), csv_row(16), csv_row(8, system="b200"), csv_row(8, backend="trtllm")]
    path = write_csv(tmp_path / "s.csv", rows)
    with pytest.raises(ConfigError, match="3 groups") as several:
        Table.load(path)
    assert "Model-7B/h200_sxm/1000x101/vllm  (1 deployments, 2 points)" in several.value.remedy
    assert Table.load(path, group="b200").contents.hardware == "b200"
    assert Table.load(path, group="Model-7B/h200_sxm/1000x101/vllm").contents.engine == "vllm"
    with pytest.raises(ConfigError, match="2 groups"):
        Table.load(path, group="h200")
    with pytest.raises(ConfigError, match="no group of"):
        Table.load(path, group="a100")


# Which deployment a search begins with


def test_a_source_without_defaults_begins_with_what_is_usual(tmp_path: Path) -> None:
    lines = [
        deployment_line({"max_num_seqs": n, "tensor_parallel_size": tp})
        for n in (1024, 256, 16)
        for tp in (8, 1)
    ]
    path = write_lines(tmp_path / "t.jsonl", lines)
    assert Table.load(path).baseline.deployment == {"max_num_seqs": 256, "tensor_parallel_size": 1}
    asked = Table.load(path, begin={"max_num_seqs": 16})
    assert asked.baseline.deployment == {"max_num_seqs": 16, "tensor_parallel_size": 1}
    assert asked.space.parameters["max_num_seqs"]["default"] == 16
    with pytest.raises(ConfigError, match="no deployment with these values"):
        Table.load(path, begin={"max_num_seqs": 17})


def test_a_stated_space_begins_with_its_own_defaults(tmp_path: Path) -> None:
    space = {"parameters": {"max_num_seqs": {"choices": [4, 16], "default": 16}}}
    lines: list[dict[str, Any]] = [{"table": {"model": "m", "space": space}}]
    lines += [deployment_line({"max_num_seqs": 4}), deployment_line({})]
    table = Table.load(write_lines(tmp_path / "t.jsonl", lines))
    assert table.baseline.deployment == {}
    assert table.is_predicted
    with pytest.raises(ConfigError, match="no deployment of the table that worked"):
        Table.load(write_lines(tmp_path / "u.jsonl", lines[:2]))


# What is no table


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("t.jsonl", "", "none of the tables"),
        ("t.jsonl", "{}\n", "none of the tables"),
        ("t.jsonl", "[]\n{}\n", "line 1 is no mapping"),
        ("t.jsonl", 'nonsense\n{"deployment": {}}\n', "line 1 is no JSON"),
        ("t.jsonl", '{"deployment": {}, "verdict": "ODD"}\n', "line 1 is no deployment"),
        ("t.jsonl", '{"deployment": {}, "verdict": "CAPACITY"}\n', "no deployment that worked"),
        ("t.jsonl", '{"table": {"space": {"odd": 1}}}\n', "space with other keys"),
        ("t.jsonl", '{"number": 0, "deployment": {}}\n', "is no trial of a study"),
        ("t.csv", "a,b\n", "has no column model_path"),
    ],
)
def test_a_file_that_is_no_table_is_named_with_what_is_wrong(
    tmp_path: Path, name: str, text: str, said: str
) -> None:
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(ConfigError, match=said) as refused:
        Table.load(path)
    assert refused.value.remedy


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        Table.load(tmp_path / "none.jsonl")


def test_a_metric_that_is_no_number_is_absent(tmp_path: Path) -> None:
    line = deployment_line({"max_num_seqs": 1})
    line["levels"][0]["metrics"] |= {"ttft_p95_ms": None, "tpot_p95_ms": float("nan")}
    table = Table.load(write_lines(tmp_path / "t.jsonl", [line]))
    assert set(table.rows[0].levels[0].metrics) == set(metrics(1, 1))
    assert table.rows[0].phase is Phase.STOP


def test_a_table_of_others_cannot_steer_a_terminal(tmp_path: Path) -> None:
    header = {"table": {"model": "m\x1b[2J", "source": "s\x1b[2J"}}
    table = Table.load(write_lines(tmp_path / "t.jsonl", [header, deployment_line({})]))
    assert "\x1b" not in f"{table.told_source}{table.contents.model}"
    with pytest.raises(ConfigError) as several:
        rows = [csv_row(8, system="a\x1b[2J"), csv_row(8)]
        Table.load(write_csv(tmp_path / "s.csv", rows))
    assert "\x1b" not in str(several.value.remedy)
