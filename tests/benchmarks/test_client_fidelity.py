"""Figures and tables from runs whose truth is known."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import pytest

from benchmarks import client_fidelity, vllm_agreement
from benchmarks.client_fidelity import Run, Study, table
from benchmarks.clients import GUIDELLM, OURS, VLLM_BENCH
from benchmarks.foreign_clients import (
    Job,
    Reported,
    guidellm_command,
    guidellm_reported,
    vllm_bench_command,
    vllm_bench_reported,
)
from benchmarks.many_requests import Memory
from benchmarks.truth import Truth
from benchmarks.vllm_agreement import Pair, ServerSide, server_side, totals

TRUTH = Truth(
    requests=256,
    tokens=1000,
    all_tokens=2000,
    whole_tokens_per_s=100.0,
    steady_tokens_per_s=200.0,
    ttft_ms=20.0,
    tpot_ms=10.0,
    load_s=15.0,
    late_p99_ms=1.0,
    ended=True,
)


def run(client: str, reported: Reported) -> Run:
    return Run(
        client, reported, TRUTH, wall_s=20.0, cpu_s=3.0, startup_wall_s=4.0, startup_cpu_s=1.0
    )


def job(folder: Path) -> Job:
    return Job("http://127.0.0.1:1", "stub", Path("tok"), 128, 256, 64, 32, 128, folder)


def test_a_run_is_held_against_the_truth_of_its_own_window() -> None:
    whole = run(VLLM_BENCH, Reported(99.0, 25.0, 10.1, 256)).figures()
    steady = run(OURS, Reported(198.0, 21.0, 10.0, 256, steady=True)).figures()
    assert whole["tokens_per_s_error_percent"] == pytest.approx(-1)
    assert steady["tokens_per_s_error_percent"] == pytest.approx(-1)
    assert whole["ttft_added_ms"] == pytest.approx(5)
    assert whole["tpot_error_percent"] == pytest.approx(1)
    assert whole["cpu_us_per_token"] == pytest.approx(1500)
    assert whole["net_cpu_us_per_token"] == pytest.approx(1000)  # warm-up tokens are tokens too
    assert whole["wall_beside_load_s"] == pytest.approx(5)
    assert whole["wall_beside_load_and_startup_s"] == pytest.approx(1)


def test_the_table_has_medians_and_every_round() -> None:
    study = Study()
    for said in (90.0, 99.0, 101.0):
        study.runs.append(run(VLLM_BENCH, Reported(said, 25.0, 10.0, 256)))
        own = Reported(200.0, 20.0, 10.0, 256, steady=True, details={"overhead_s": 0.01})
        study.runs.append(run(OURS, own))
    study.intake.append(run(OURS, Reported(1.0, 1.0, 1.0, 256, details={"whole_tokens_per_s": 9})))
    text = table(study, [OURS, VLLM_BENCH])
    assert "| vllm bench serve | 99 | 100 | -1.00 |" in text
    assert "vllm bench serve: -10.00 -1.00 +1.00;" in text
    assert "Overhead of a load level of ours beside warm-up and requests, s: 0.010" in text
    assert "- sweeper: 9 (9)" in text
    json.dumps(client_fidelity.as_json(study, argparse.Namespace(json=Path("x"))))


def test_results_of_the_other_clients_are_read_in_their_units(tmp_path: Path) -> None:
    told = {
        "output_throughput": 5867.0,
        "mean_ttft_ms": 41.0,
        "mean_tpot_ms": 20.85,
        "completed": 256,
        "duration": 5.6,
    }
    (tmp_path / "vllm_bench.json").write_text(json.dumps(told))
    assert vllm_bench_reported(job(tmp_path)).output_tokens_per_s == 5867.0

    def mean(value: float) -> dict[str, object]:
        return {"successful": {"mean": value}}

    metrics = {
        "output_tokens_per_second": mean(4321.0),
        "time_to_first_token_ms": mean(79.0),
        "time_per_output_token_ms": mean(21.0),  # has the time to the first token in it
        "inter_token_latency_ms": mean(20.0),
        "request_totals": {"successful": 255},
    }
    report = {"benchmarks": [{"metrics": metrics, "duration": 7.0}]}
    (tmp_path / "guidellm.json").write_text(json.dumps(report))
    reported = guidellm_reported(job(tmp_path))
    assert (reported.ttft_ms, reported.tpot_ms, reported.requests) == (79.0, 20.0, 255)


def test_all_clients_are_asked_for_the_same_load(tmp_path: Path) -> None:
    vllm, other = vllm_bench_command(job(tmp_path)), guidellm_command(job(tmp_path), Path("g"))
    assert vllm[vllm.index("--num-prompts") + 1] == "256"
    assert vllm[vllm.index("--max-concurrency") + 1] == "128"
    assert "kind=concurrent,streams=128" in other
    assert "kind=max_requests,count=256" in other
    assert client_fidelity.parser().parse_args([]).clients == [OURS, VLLM_BENCH, GUIDELLM]


def test_agreement_compares_whole_runs_and_names_the_furthest_pair() -> None:
    def pair(whole: float, tpot_ms: float) -> Pair:
        ours = Reported(70.0, 30.0, tpot_ms, 32, True, {"whole_tokens_per_s": whole})
        side = ServerSide(tpot_ms / 1.01, whole)
        return Pair(ours, Reported(50.0, 31.0, 20.0, 32), OURS, side, ServerSide(20.0, 50.0))

    text = vllm_agreement.table([pair(50.5, 20.0), pair(49.0, 20.2), pair(50.0, 21.0)])
    assert "throughput: median ratio 1.0000, furthest 0.9800; within 3 %" in text
    assert "TPOT: median ratio 1.0100, furthest 1.0500; not all within 3 %" in text
    assert "TPOT by the server's own: median ratio 1.0100, furthest 1.0100; within 3 %" in text


def test_the_server_tells_what_it_did_between_two_looks() -> None:
    def text(requests: int, decode_s: float, e2e_s: float, tokens: int) -> str:
        return (
            f'vllm:request_decode_time_seconds_count{{engine="0"}} {requests}\n'
            f'vllm:request_decode_time_seconds_sum{{engine="0"}} {decode_s}\n'
            f'vllm:e2e_request_latency_seconds_sum{{engine="0"}} {e2e_s}\n'
            f'vllm:generation_tokens_total{{engine="0"}} {tokens}\n'
        )

    side = server_side(totals(text(5, 1.0, 2.0, 55)), totals(text(15, 2.0, 4.0, 165)), 4)
    assert side.tpot_ms == pytest.approx(10.0)
    assert side.tokens_per_s == pytest.approx(4 * 110 / 2.0)


def test_growth_of_memory_is_a_slope_of_the_second_half() -> None:
    memory = Memory(file=None)  # type: ignore[arg-type]
    memory.samples = [(n, 100.0 if n < 50 else 50 + n / 1024) for n in range(100)]
    growth = memory.growth_bytes_per_request()
    assert growth == pytest.approx(1024)
    memory.samples = []
    assert memory.growth_bytes_per_request() is None
