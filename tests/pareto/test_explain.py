"""Why a deployment wins: what bounds it, and what bounds the default."""

from __future__ import annotations

from typing import Any

import pytest

from sweeper.config.schema import SelectConfig, SloConfig
from sweeper.pareto.explain import explain, regime
from sweeper.pareto.points import points_frame
from sweeper.pareto.select import recommend
from tests.factories import outcome, point

MEMORY = {"predicted.tpot_bandwidth_floor_ms": 8.0, "predicted.tpot_compute_floor_ms": 1.0}


@pytest.mark.parametrize(
    ("row", "kind", "word"),
    [
        ({"preemptions": 30.0, "n": 100}, "kv_capacity", "0.30 preemptions a request"),
        (
            {"kv_cache_usage_max_share": 0.99, "queue_mean_requests": 8.0, "concurrency": 32},
            "kv_capacity",
            "KV cache up to 99% full",
        ),
        (
            {"kv_cache_usage_max_share": 0.2, "queue_mean_requests": 16.0, "concurrency": 32},
            "scheduler_limit",
            "16.0 requests waiting",
        ),
        ({"ttft_mean_ms": 600.0, "e2e_mean_ms": 1000.0}, "prefill", "60%"),
        (
            {**MEMORY, "predicted.bandwidth_utilization_share": 0.6},
            "memory_decode",
            "60% of the memory bandwidth",
        ),
        (
            {
                "predicted.tpot_bandwidth_floor_ms": 1.0,
                "predicted.tpot_compute_floor_ms": 8.0,
                "predicted.tpot_over_floor": 1.6,
            },
            "compute_decode",
            "1.6 times its floor",
        ),
        ({**MEMORY, "predicted.tpot_over_floor": 9.0}, "overhead", "9.0 times its floor"),
        ({"preemptions": 1.0, "n": 100, "queue_mean_requests": 0.1, "concurrency": 8}, None, ""),
        ({}, None, ""),
    ],
)
def test_what_bounds_a_point(row: dict[str, Any], kind: str | None, word: str) -> None:
    found = regime(row)
    assert found.kind == kind
    assert word in found.text


def told(base: dict[str, float], ours: dict[str, float]) -> str:
    trials = [
        outcome(0, points=[point(8, throughput=100, e2e_p95_ms=900, **base)]),
        outcome(
            1,
            deployment={"max_num_seqs": 64},
            points=[point(8, throughput=150, e2e_p95_ms=700, **ours)],
        ),
    ]
    chosen = recommend(points_frame(trials), SelectConfig(slo=SloConfig(e2e_p95_ms=5000)))
    return explain(chosen)


def test_the_winner_is_told_against_the_default() -> None:
    text = told(
        {
            "preemptions": 40.0, "kv_cache_usage_max_share": 1.0, "ttft_mean_ms": 300.0,
            "tpot_mean_ms": 12.0, "output_tokens_mean": 51.0,
        },
        {
            "queue_mean_requests": 4.0, "kv_cache_usage_max_share": 0.6, "ttft_mean_ms": 100.0,
            "tpot_mean_ms": 10.0, "output_tokens_mean": 51.0,
        },
    )  # fmt: skip
    assert "At concurrency 8 the default is KV-capacity-bound (" in text
    assert "Trial 1 (max_num_seqs=64) is scheduler-bound" in text
    assert "Waiting for the first token takes 100 ms instead of 300" in text
    assert "each later token takes 10 ms instead of 12" in text
    assert "33% of the time saved is saved in decode" in text
    assert "Its KV cache fills to 60%, the default's to 100%." in text


def test_both_may_be_bound_alike_or_by_nothing_known() -> None:
    same = {"queue_mean_requests": 4.0, "kv_cache_usage_max_share": 0.6}
    assert "is bound alike (4.0 requests waiting on average" in told(same, same)
    assert told({}, {}).startswith("Nothing measured tells what bounds trial 1")


def test_the_default_itself_may_win() -> None:
    trials = [outcome(0, points=[point(8, throughput=100, e2e_p95_ms=900, preemptions=90.0)])]
    text = explain(recommend(points_frame(trials), SelectConfig()))
    assert text.startswith("The engine's default is KV-capacity-bound")
