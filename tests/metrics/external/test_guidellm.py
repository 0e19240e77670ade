"""Reports of guidellm. data/guidellm_0_8.json is a report of guidellm 0.8.1 against its own mock
server, at 1 and 4 streams, the server failing in the second; trimmed to what is read."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sweeper.metrics.external.guidellm import missing, read

DATA = Path(__file__).parent / "data"


def report() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((DATA / "guidellm_0_8.json").read_text())
    return found


def as_0_3(document: dict[str, Any]) -> dict[str, Any]:
    """The same in the form of guidellm 0.3: no metadata, `args` for `config`, totals outside."""
    old = copy.deepcopy({"benchmarks": document["benchmarks"]})
    for benchmark in old["benchmarks"]:
        benchmark["args"] = {"strategy": benchmark.pop("config")["strategy"]}
        benchmark["request_totals"] = benchmark["metrics"].pop("request_totals")
        benchmark["worker"] = {"backend_model": "mock"}
    return old


def test_every_benchmark_is_a_level_named_as_ours() -> None:
    assert [level.name for level in read(report()).levels] == ["concurrency 1", "concurrency 4"]


def test_units_go_by_the_field() -> None:
    document = report()
    level, _ = read(document).levels
    requests = document["benchmarks"][0]["requests"]["successful"]
    for ours, theirs, to_ms in (
        ("ttft", "time_to_first_token_ms", 1.0),
        ("tpot", "inter_token_latency_ms", 1.0),
        ("e2e", "request_latency", 1e3),
    ):
        values = [to_ms * request[theirs] for request in requests]
        for percent in (50, 95):
            name = f"{ours}_p{percent}_ms"
            assert level.metrics[name] == pytest.approx(float(np.percentile(values, percent)))
            low, high = level.intervals[name]
            assert low <= level.metrics[name] <= high


def test_tpot_leaves_out_the_first_token() -> None:
    document = report()
    level, _ = read(document).levels
    theirs = document["benchmarks"][0]["metrics"]["time_per_output_token_ms"]["successful"]
    # (E2E - TTFT) / (16 - 1) of the medians, far from their time per output token.
    ours = (level.metrics["e2e_p50_ms"] - level.metrics["ttft_p50_ms"]) / 15
    assert level.metrics["tpot_p50_ms"] == pytest.approx(ours, rel=0.1)
    assert level.metrics["tpot_p50_ms"] < 0.7 * theirs["mean"]


def test_throughput_is_tokens_by_time_and_not_a_mean_of_rates() -> None:
    document = report()
    level, _ = read(document).levels
    benchmark = document["benchmarks"][0]
    assert level.metrics["output_tokens_per_s"] == pytest.approx(48 * 16 / benchmark["duration"])
    low, high = level.intervals["output_tokens_per_s"]
    assert low < level.metrics["output_tokens_per_s"] < high


def test_only_successful_requests_count_and_failures_are_said() -> None:
    fine, failing = read(report()).levels
    assert fine.reasons == ()
    assert failing.n == 32
    assert failing.metrics["success_share"] == pytest.approx(32 / 48)
    assert any("32 of 48" in reason for reason in failing.reasons)
    assert "achieved_concurrency" not in failing.metrics


def test_requests_cut_off_by_the_time_limit_have_not_failed() -> None:
    document = report()
    totals = document["benchmarks"][0]["metrics"]["request_totals"]
    totals |= {"incomplete": 4, "total": 52}
    level, _ = read(document).levels
    assert level.reasons == ()
    assert level.metrics["success_share"] == 1.0


def test_a_report_without_single_requests_gives_its_summary() -> None:
    document = report()
    for benchmark in document["benchmarks"]:
        benchmark["requests"]["successful"] = benchmark["requests"]["successful"][:5]
    level, _ = read(document).levels
    summary = document["benchmarks"][0]["metrics"]["request_latency"]["successful"]
    assert level.metrics["e2e_p95_ms"] == 1e3 * summary["percentiles"]["p95"]
    bounds = summary["percentile_cis"]["p50"]
    assert level.intervals["e2e_p50_ms"] == [1e3 * bounds["lower"], 1e3 * bounds["upper"]]
    assert "e2e_p95_ms" not in level.intervals
    assert "e2e_p95_ms" in level.low_confidence


def test_intervals_of_another_confidence_are_not_taken_for_95_per_cent() -> None:
    document = report()
    benchmark = document["benchmarks"][0]
    benchmark["config"]["confidence"], benchmark["requests"]["successful"] = 0.8, []
    assert read(document).levels[0].intervals == {}


def test_nothing_successful_gives_no_figures() -> None:
    document = report()
    totals = document["benchmarks"][0]["metrics"]["request_totals"]
    totals |= {"successful": 0, "errored": 48}
    level, _ = read(document).levels
    assert level.metrics == {"success_share": 0.0}


def test_the_form_of_version_0_3_reads_the_same() -> None:
    new, old = read(report()), read(as_0_3(report()))
    for ours, theirs in zip(new.levels, old.levels, strict=True):
        assert (ours.name, ours.n, ours.reasons) == (theirs.name, theirs.n, theirs.reasons)
        assert ours.metrics == theirs.metrics
    assert old.conditions["model"] == "mock"
    assert "client_version" not in old.conditions


@pytest.mark.parametrize(
    ("strategy", "name"),
    [
        ({"type_": "synchronous"}, "concurrency 1"),
        ({"type_": "constant", "rate": 2.0}, "2 requests/s (constant)"),
        ({"type_": "poisson", "rate": 2.5}, "2.5 requests/s (poisson)"),
        (
            {"type_": "throughput", "max_concurrency": 64},
            "throughput load of guidellm, at most 64 at once",
        ),
        ({"type_": "trace", "time_scale": 2.0}, "trace at 2x speed"),
    ],
)
def test_strategies_are_loads(strategy: dict[str, Any], name: str) -> None:
    document = report()
    document["benchmarks"][0]["config"]["strategy"] = strategy
    assert read(document).levels[0].name == name


def test_open_loop_latency_counts_from_when_a_request_was_due() -> None:
    document = report()
    benchmark = document["benchmarks"][0]
    benchmark["config"]["strategy"] = {"type_": "poisson", "rate": 2.0}
    due = copy.deepcopy(benchmark["metrics"]["request_latency"])
    due["successful"]["percentiles"]["p95"] = 7.0
    benchmark["metrics"]["request_scheduled_latency"] = due
    benchmark["requests"]["successful"] = []
    run = read(document)
    assert run.levels[0].metrics["e2e_p95_ms"] == 7000
    assert any("TTFT from when a request was sent" in note for note in run.notes)


def test_conditions_that_the_report_tells() -> None:
    conditions = read(report()).conditions
    assert conditions["input_tokens_asked"] == 32
    assert conditions["output_tokens_asked"] == 16
    assert conditions["client_version"] == "0.8.1"
    assert conditions["warm_up"] == "none"
    assert conditions["time"].startswith("2026-11-30T00:0")


def test_what_is_missing_is_named() -> None:
    assert missing(report()) == []
    assert missing(as_0_3(report())) == []
    assert missing({}) == ["benchmarks"]
    document = report()
    document["benchmarks"][1]["metrics"].pop("request_latency")
    assert missing(document) == ["benchmarks[].metrics.request_latency"]
