from __future__ import annotations

from typing import Any

import pytest

from sweeper.config.schema import SloConfig
from sweeper.report.misses import Miss, miss_rows, misses, nearness
from sweeper.trial.outcome import TrialOutcome
from sweeper.verdicts import Verdict
from tests.factories import outcome, point


def full(
    number: int, rule: str, verdict: Verdict = Verdict.CAPACITY, **learnt: Any
) -> TrialOutcome:
    return outcome(number, verdict=verdict, learnt={"rule": rule, **learnt}, cause=f"text {number}")


def kinds(found: list[Miss]) -> list[str]:
    return [miss.kind for miss in found]


def test_one_row_a_kind_of_cause_with_its_nearest_trial() -> None:
    found = misses(
        [
            full(1, "kv_too_small", needed_kv_gib=16.0, kv_cache_memory_gib=4.0),
            full(2, "kv_too_small", needed_kv_gib=10.0, kv_cache_memory_gib=8.0),
            full(3, "device_out_of_memory", tried_gib=1.0, free_gib=0.9),
            full(4, "no_kv_memory"),
            outcome(5),
        ]
    )
    assert kinds(found) == ["device_out_of_memory", "kv_too_small", "no_kv_memory"]
    kv = found[1]
    assert (kv.count, kv.example, kv.cause) == (2, 2, "text 2")
    assert kv.nearness is not None
    assert kv.nearness.text == "2 GiB of KV cache missing (10 needed, 8 there)"
    assert kv.nearness.excess == pytest.approx(0.25)
    assert found[2].nearness is None


def test_what_can_be_changed_stands_before_faults_of_the_surroundings() -> None:
    found = misses(
        [full(1, "nccl", Verdict.INFRA), full(2, "nccl", Verdict.INFRA), full(3, "no_kv_memory")]
    )
    assert kinds(found) == ["no_kv_memory", "nccl"]


def test_texts_that_no_rule_knows_are_one_kind_but_for_their_numbers() -> None:
    found = misses(
        [outcome(n, verdict=Verdict.UNKNOWN, learnt={}, cause=f"died at 0x{n}f") for n in (1, 2)]
    )
    assert [(miss.kind, miss.count) for miss in found] == [("died at #", 2)]


def test_what_a_bound_refused_counts_with_its_teacher() -> None:
    refused = outcome(
        2, verdict=Verdict.CAPACITY, launched=False,
        learnt={"rule": "learnt_bound", "bound": "x-1", "taught_by_rule": "no_kv_memory"},
    )  # fmt: skip
    (miss,) = misses([full(1, "no_kv_memory"), refused])
    assert (miss.count, miss.launched, miss.example) == (2, 1, 1)
    assert miss_rows([miss])[0][1] == "2 (1 launched)"


@pytest.mark.parametrize(
    ("learnt", "text"),
    [
        ({"asked_gib": 72.9, "free_gib": 70.0}, "2.9 GiB missing"),
        ({"max_num_seqs": 512, "max_num_batched_tokens": 256},
         "256 tokens of max_num_batched_tokens missing"),
        ({"max_model_len": 40000, "max_position_embeddings": 32768}, "tokens of max_model_len"),
        ({"world_size": 8, "devices": 4}, "4 devices missing"),
        ({"asked_gib": 5.0, "free_gib": 6.0}, None),
        ({"asked_gib": "much", "free_gib": True}, None),
        ({}, None),
    ],
)  # fmt: skip
def test_nearness_in_the_units_of_the_figures(learnt: dict[str, Any], text: str | None) -> None:
    found = nearness(full(1, "r", **learnt))
    assert (found is None) == (text is None)
    if found is not None and text is not None:
        assert text in found.text


def test_the_value_that_would_have_fitted_is_named() -> None:
    (miss,) = misses([full(1, "kv", max_model_len=9000, estimated_max_model_len=8192)])
    assert "max_model_len ≤ 8,192 would have fitted" in miss.remedy


def test_trials_that_keep_the_promise_nowhere_are_misses_by_metric() -> None:
    slow = outcome(1, points=[point(1, e2e_p95_ms=1200, ttft_p95_ms=90), point(8, e2e_p95_ms=3000)])
    slower = outcome(2, points=[point(1, e2e_p95_ms=2000)])
    kept = outcome(3, points=[point(1, e2e_p95_ms=900)])
    slo = SloConfig(e2e_p95_ms=1000, ttft_p95_ms=100)
    (miss,) = misses([slow, slower, kept], slo)
    assert (miss.kind, miss.count, miss.example) == ("SLO: E2E P95 ms", 2, 1)
    assert miss.nearness is not None
    assert miss.nearness.text == "200 ms over E2E P95 ms 1,000 at concurrency 1 (+20.0 %)"
    assert misses([slow, slower, kept]) == []


def test_the_last_attempt_of_a_trial_counts() -> None:
    first = full(1, "nccl", Verdict.INFRA)
    retry = outcome(1, attempt=2)
    assert misses([first, retry]) == []
