"""The imaginary engine has the trade-offs that a tuner must find."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweeper.engine.mock.language import CONTEXT, Language, language_of
from sweeper.engine.mock.machine import Machine
from sweeper.engine.mock.options import MockOptions
from sweeper.engine.vllm.diagnosis import diagnose_vllm
from sweeper.verdicts import Phase, Verdict

IDS = st.lists(st.integers(0, 999), min_size=1, max_size=12)


def machine(**parameters: Any) -> Machine:
    return Machine.of(parameters, MockOptions())


def test_batch_costs_latency_and_gives_throughput() -> None:
    one, many = machine().step_s(1, 0), machine().step_s(32, 0)
    assert one < many < 32 * one


def test_draft_tokens_help_alone_and_hurt_in_a_crowd() -> None:
    plain, drafting = machine(), machine(speculative="eagle", num_speculative_tokens=4)
    tokens = 1 + sum(drafting.acceptance**n for n in range(1, 5))
    assert drafting.step_s(1, 0) / tokens < plain.step_s(1, 0)
    assert drafting.step_s(512, 0) / tokens > plain.step_s(512, 0)


@pytest.mark.parametrize("quantization", ["awq", "fp8_per_tensor", "int8_per_channel_weight_only"])
def test_quantization_is_faster_and_smaller(quantization: str) -> None:
    assert machine(quantization=quantization).step_s(8, 0) < machine().step_s(8, 0)
    assert machine(quantization=quantization).kv_tokens > machine().kv_tokens


def test_what_takes_memory_leaves_less_for_the_cache() -> None:
    full = machine().kv_tokens
    assert machine(gpu_memory_utilization=0.7).kv_tokens < full
    assert machine(max_num_seqs=1024).kv_tokens < full
    assert machine(max_num_batched_tokens=8192).kv_tokens < full
    assert machine(kv_cache_dtype="fp8").kv_tokens > 1.9 * full
    assert machine(tensor_parallel_size=2).kv_tokens > 2 * full


@pytest.mark.parametrize(
    ("parameters", "verdict"),
    [
        ({"gpu_memory_utilization": 0.3}, Verdict.CAPACITY),
        ({"max_model_len": 500_000}, Verdict.CAPACITY),
        ({"gpu_memory_utilization": 0.99}, Verdict.CAPACITY),
        ({"max_num_seqs": 8000, "max_num_batched_tokens": 8000}, Verdict.CAPACITY),
        ({"tensor_parallel_size": 3}, Verdict.INFEASIBLE_CONFIG),
        ({"max_num_seqs": 64, "max_num_batched_tokens": 32}, Verdict.INFEASIBLE_CONFIG),
        ({"enable_chunked_prefill": False}, Verdict.INFEASIBLE_CONFIG),
        ({"speculative": "ngram"}, Verdict.INFEASIBLE_CONFIG),
    ],
)
def test_refusals_read_like_the_real_ones(parameters: dict[str, Any], verdict: Verdict) -> None:
    refusal = machine(**parameters).refusal()
    assert refusal is not None
    assert diagnose_vllm(f"ValueError: {refusal}", Phase.START, 1).verdict is verdict


def test_defaults_start() -> None:
    assert machine().refusal() is None


@given(IDS)
def test_what_is_written_reads_back_the_same(ids: list[int]) -> None:
    language = Language(1000)
    assert language.encode(language.decode(ids)) == ids


@given(IDS)
def test_undisturbed_model_ranks_its_own_choice_first(context: list[int]) -> None:
    language = Language(1000)
    logprob, rank = language.judge(context, language.next_token(context))
    assert rank == 1
    assert logprob < 0


@given(IDS, st.integers(0, 999))
def test_judgement_depends_on_the_last_tokens_only(ids: list[int], token: int) -> None:
    language = Language(1000, loss=0.3, flavour="x")
    assert language.judge(ids, token) == language.judge(ids[-CONTEXT:], token)


def test_lossy_deployment_disagrees_about_its_share() -> None:
    lossy = language_of(1000, "4", "awq", "auto", {"awq": 0.2})
    plain = language_of(1000, "16", "none", "auto", {})
    contexts = [[n, n + 1, n + 2, n + 3] for n in range(900)]
    ranks = [lossy.judge(context, plain.next_token(context))[1] for context in contexts]
    assert 0.15 < sum(rank != 1 for rank in ranks) / len(ranks) < 0.25
    assert all(plain.judge(c, plain.next_token(c))[1] == 1 for c in contexts)
