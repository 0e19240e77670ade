"""Logs of real launches, from the first line to the last: what is said of each.

`data/starts` holds launches of vLLM 0.32 on a CPU, each with one flag or file that breaks it (the
name says which) and some that went well, reduced to the lines around what decides.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sweeper.engine.diagnosis import NO_CAUSE
from sweeper.engine.log_file import read_log
from sweeper.engine.log_life import explain
from sweeper.engine.log_messages import READABLE_CHARS
from sweeper.engine.vllm.diagnosis import diagnose_vllm
from sweeper.verdicts import Phase, Verdict
from tests.engine.vllm.gpu_logs import REPORTS, Report

STARTS = Path(__file__).parents[1] / "data" / "starts"
CAPACITY, INFEASIBLE, INFRA = Verdict.CAPACITY, Verdict.INFEASIBLE_CONFIG, Verdict.INFRA
HEALTHY = ("async", "int8", "spec_many")
AT_LEAST_1 = "Input should be greater than or equal to 1"

EXPECTED: dict[str, tuple[Verdict, str, str, dict[str, Any]]] = {
    "awq_on_plain": (
        INFEASIBLE, "quantization_config_missing", "Cannot find the config file for awq",
        {"quantization": "awq"},
    ),
    "bad_value": (
        INFEASIBLE, "bad_flag_value",
        "api_server.py: error: argument --max-num-seqs: invalid int value: 'many'",
        {"argument": "--max-num-seqs"},
    ),
    "bitsandbytes": (
        INFEASIBLE, "unknown_quantization", "Unknown quantization method: bitsandbytes.",
        {"quantization": "bitsandbytes"},
    ),
    "block_7": (
        INFRA, "host_share_not_free", "Available memory on node 0 (5.56/20.59 GiB) on startup",
        {"free_gib": 5.56, "asked_gib": 6.18},
    ),
    "compile_bad": (
        INFEASIBLE, "bad_flag_value",
        "api_server.py: error: argument --compilation-config/-cc: mode: Input should be 0, 1, 2",
        {"argument": "--compilation-config/-cc", "fields": ["mode"]},
    ),
    "dp2_ext": (INFEASIBLE, "external_data_parallel", "Non-MoE models do not support", {}),
    "ep": (INFEASIBLE, "expert_parallel", "Number of experts in the model must be greater", {}),
    "fp8": (
        INFEASIBLE, "not_built_for_cpu", "_C::static_scaled_fp8_quant() expected at most 0",
        {"kernel": "static_scaled_fp8_quant"},
    ),
    "hf_override_heads": (
        INFEASIBLE, "refused_by_engine", "num_heads (7) is not divisible by num_kv_heads (3)", {},
    ),
    "hub_model": (INFRA, "hub_unreachable", "LocalEntryNotFoundError: An error happened", {}),
    "kv_fp8": (INFEASIBLE, "fp8_kv_cache_on_cpu", "NotImplementedError: FP8 KV cache on CPU", {}),
    "kv_nonsense": (
        INFEASIBLE, "bad_flag_value",
        "api_server.py: error: argument --kv-cache-dtype: invalid choice: 'int3' (choose from",
        {"argument": "--kv-cache-dtype"},
    ),
    "kv_small": (
        CAPACITY, "kv_too_small_for_max_model_len", "To serve at least one request with the model",
        {"max_model_len": 8192, "estimated_max_model_len": 640},
    ),
    "len_too_long": (
        INFEASIBLE, "longer_than_model", "User-specified max_model_len (100000) is greater",
        {"max_position_embeddings": 8192},
    ),
    "load_format": (
        INFEASIBLE, "refused_by_engine", "Load format `gguf` is not supported", {},
    ),
    "mbt_lt_len_nochunk": (
        INFEASIBLE, "batched_tokens_below_length", "max_num_batched_tokens (512) is smaller than",
        {"max_num_batched_tokens": 512, "max_model_len": 8192},
    ),
    "missing_model": (INFEASIBLE, "model_missing", "HFValidationError: Repo id must be", {}),
    "neg_seqs": (
        INFEASIBLE, "configuration_refused",
        f"max_num_batched_tokens: {AT_LEAST_1}; max_num_seqs: {AT_LEAST_1}",
        {"fields": ["max_num_batched_tokens", "max_num_seqs"], "config": "SchedulerConfig"},
    ),
    "no_tokenizer": (
        INFEASIBLE, "tokenizer_missing",
        "Couldn't instantiate the backend tokenizer from one of: (1) a `tokenizers` library", {},
    ),
    "nofile": (INFRA, "too_many_files", "rv != -1. -1 vs -1. socket: Too many open files", {}),
    "pp2": (
        INFEASIBLE, "too_few_numa_nodes", "Not enough allowed NUMA nodes to bind threads of 2",
        {"workers": 2},
    ),
    "removed_swap": (
        INFEASIBLE, "unknown_flag", "api_server.py: error: unrecognized arguments: --swap-space",
        {"unrecognized_arguments": "--swap-space"},
    ),
    "served_port_taken": (INFRA, "port_taken", "OSError: [Errno 98] Address already in use", {}),
    "spec_draft_missing": (
        INFEASIBLE, "model_missing",
        "Invalid repository ID or local directory specified: '/nowhere/draft'.", {},
    ),
    "spec_eagle_self": (
        INFEASIBLE, "checkpoint_layout", "There is no module or parameter named 'model'",
        {"module": "model"},
    ),
    "spec_min_gt_max": (
        INFEASIBLE, "prompt_lookup_order", "prompt_lookup_min=5 must be <= prompt_lookup_max=3",
        {"prompt_lookup_min": 5, "prompt_lookup_max": 3},
    ),
    "spec_unknown": (
        INFEASIBLE, "configuration_refused", "method: Input should be 'ngram', 'medusa',",
        {"fields": ["method"], "config": "SpeculativeConfig"},
    ),
    "tp2": (
        INFEASIBLE, "heads_not_divisible", "Total number of attention heads (9) must be divisible",
        {"num_heads": 9, "tensor_parallel_size": 2, "allowed_tensor_parallel_sizes": [1, 3, 9]},
    ),
    "trunc_weights": (INFRA, "weights_damaged", "SafetensorError: Error while deserializing", {}),
    "unknown_flag": (
        INFEASIBLE, "unknown_flag",
        "api_server.py: error: unrecognized arguments: --disable-log-requests-x",
        {"unrecognized_arguments": "--disable-log-requests-x"},
    ),
    "util_099": (
        CAPACITY, "host_share_not_free", "Available memory on node 0 (16.17/18.09 GiB) on startup",
        {"max_gpu_memory_utilization": 0.8938},
    ),
    "util_2": (
        INFEASIBLE, "configuration_refused",
        "gpu_memory_utilization: Input should be less than or equal to 1",
        {"fields": ["gpu_memory_utilization"]},
    ),
    "util_tiny": (
        CAPACITY, "no_kv_memory", "Available memory on node 0 (16.13/18.09 GiB) on kv cache",
        {"used_gib": 1.01, "asked_gib": 0.36},
    ),
}  # fmt: skip


def test_every_log_is_expected() -> None:
    assert {path.stem for path in STARTS.glob("*.log")} == {*EXPECTED, *HEALTHY}


@pytest.mark.parametrize("name", EXPECTED)
def test_a_failed_start(name: str) -> None:
    verdict, rule, cause, learnt = EXPECTED[name]
    text = read_log(STARTS / f"{name}.log")
    for found in (diagnose_vllm(text, Phase.START, 1), explain(text, diagnose_vllm, NO_CAUSE)):
        assert (found.verdict, found.learnt["rule"]) == (verdict, rule)
        assert found.phase is Phase.START
        assert found.cause.startswith(cause)
        assert len(found.cause) <= READABLE_CHARS + 100
        assert learnt.items() <= dict(found.learnt).items()
        assert "max_gpu_memory_utilization" not in found.learnt or name == "util_099"


@pytest.mark.parametrize("name", HEALTHY)
def test_a_start_that_went_well(name: str) -> None:
    found = explain(read_log(STARTS / f"{name}.log"), diagnose_vllm, NO_CAUSE)
    assert (found.verdict, found.phase) == (Verdict.OK, Phase.STOP)
    assert found.cause == "no failure found: the server was ready and was asked to end"


def test_advice_points_in_the_right_direction() -> None:
    def remedy(name: str) -> str:
        return diagnose_vllm(read_log(STARTS / f"{name}.log"), Phase.START, 1).remedy

    assert remedy("util_tiny").startswith("raise gpu_memory_utilization")
    assert "a share of 0.06" in remedy("util_tiny")
    assert remedy("util_099").startswith("lower gpu_memory_utilization")
    assert "a share of 0.89 is free" in remedy("util_099")
    assert "other programs hold memory" in remedy("block_7")
    # The size of the cache was given: a larger share of the memory would not change it.
    assert "kv_cache_memory_bytes" in remedy("kv_small")


@pytest.mark.parametrize("report", REPORTS, ids=lambda report: report.number)
def test_a_report_from_a_gpu(report: Report) -> None:
    found = explain(report.log, diagnose_vllm, NO_CAUSE)
    assert (found.verdict, found.learnt.get("rule"), found.phase) == (
        report.verdict,
        report.rule,
        report.phase,
    )
    assert found.cause.startswith(report.cause)
    assert report.learnt.items() <= dict(found.learnt).items()
    launch = diagnose_vllm(report.log, report.phase, 1)
    assert (launch.verdict, launch.cause, launch.learnt) == (
        found.verdict,
        found.cause,
        found.learnt,
    )
