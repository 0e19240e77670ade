"""Every error text of vLLM that is known: its verdict and what is learnt from it."""

# ruff: noqa: E501 - texts are quoted as they stand

from __future__ import annotations

import pytest

from sweeper.engine.vllm.diagnosis import diagnose_vllm
from sweeper.verdicts import Phase, Verdict

CAPACITY, INFEASIBLE, INFRA = Verdict.CAPACITY, Verdict.INFEASIBLE_CONFIG, Verdict.INFRA
SEE = "See https://docs.vllm.ai/en/latest/configuration/conserving_memory/ for more details."

CASES: list[tuple[str, str, Verdict, dict[str, object]]] = [
    (
        "V01 now",
        "ValueError: No available memory for the cache blocks. Try increasing "
        "`gpu_memory_utilization` when initializing the engine (this flag also controls CPU memory "
        f"reservation on the CPU backend, despite its name). {SEE}",
        CAPACITY,
        {},
    ),
    (
        "V01 until 0.11",
        "ValueError: No available memory for the cache blocks. Try increasing "
        "`gpu_memory_utilization` when initializing the engine.",
        CAPACITY,
        {},
    ),
    (
        "V03 now",
        "ValueError: To serve at least one request with the model's max seq len (65536), (8.50 GiB KV "
        "cache is needed, which is larger than the available KV cache memory (3.21 GiB). Based on the "
        "available memory, the estimated maximum model length is 24752. Try increasing "
        "`gpu_memory_utilization` (which also controls CPU memory on the CPU backend) or decreasing "
        f"`max_model_len` when initializing the engine. {SEE}",
        CAPACITY,
        {
            "max_model_len": 65536,
            "needed_kv_gib": 8.5,
            "kv_cache_memory_gib": 3.21,
            "estimated_max_model_len": 24752,
        },
    ),
    (
        "V03 without an estimate",
        "ValueError: To serve at least one request with the model's max seq len (65536), (8.50 GiB KV "
        "cache is needed, which is larger than the available KV cache memory (0.01 GiB). Try "
        "increasing `gpu_memory_utilization`",
        CAPACITY,
        {"max_model_len": 65536, "kv_cache_memory_gib": 0.01},
    ),
    (
        "V03 at 0.11",
        "ValueError: To serve at least one request with the models's max seq len (40960), (5.62 GiB "
        "KV cache is needed, which is larger than the available KV cache memory (2.10 GiB). Based on "
        "the available memory, the estimated maximum model length is 15280.",
        CAPACITY,
        {"estimated_max_model_len": 15280},
    ),
    (
        "V03 at 0.6",
        "ValueError: The model's max seq len (8192) is larger than the maximum number of tokens that "
        "can be stored in KV cache (4912). Try increasing `gpu_memory_utilization` or decreasing "
        "`max_model_len` when initializing the engine.",
        CAPACITY,
        {"max_model_len": 8192, "estimated_max_model_len": 4912},
    ),
    (
        "V04 with a neighbour",
        "ValueError: Free memory on device cuda:1 (31.5/79.2 GiB) on startup is less than desired GPU "
        "memory utilization (0.92, 72.9 GiB). Decrease GPU memory utilization or reduce GPU memory "
        "used by other processes.",
        INFRA,
        {"free_gib": 31.5, "total_gib": 79.2, "asked_gib": 72.9, "device": "cuda:1"},
    ),
    (
        "V04 at 0.11",
        "ValueError: Free memory on device (31.5/79.2 GiB) on startup is less than desired GPU memory "
        "utilization (0.92, 72.9 GiB). Decrease GPU memory utilization",
        INFRA,
        {"max_gpu_memory_utilization": 0.3977},
    ),
    (
        "V04 without a neighbour",
        "ValueError: Free memory on device cuda:0 (78.6/79.2 GiB) on startup is less than desired GPU "
        "memory utilization (0.995, 78.8 GiB). Decrease GPU memory utilization",
        CAPACITY,
        {"max_gpu_memory_utilization": 0.9924},
    ),
    (
        "V04 on a CPU",
        "ValueError: Available memory on node 0 (9.1/15.6 GiB) on startup is less than desired CPU "
        "memory utilization (0.9, 14.0 GiB). On the CPU backend, the flag",
        CAPACITY,
        {"free_gib": 9.1},
    ),
    (
        "V07",
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 256.00 MiB. GPU 0 has a total "
        "capacity of 39.49 GiB of which 97.50 MiB is free.",
        CAPACITY,
        {"tried_gib": 0.25, "device_memory_gib": 39.49, "free_gib": 0.0952},
    ),
    ("V07 bare", "RuntimeError: CUDA error: out of memory", CAPACITY, {}),
    (
        "V13",
        "  Value error, Total number of attention heads (40) must be divisible by tensor parallel "
        "size (16). [type=value_error, input_value=ArgsKwargs((), {}), input_type=ArgsKwargs]",
        INFEASIBLE,
        {"num_heads": 40, "tensor_parallel_size": 16},
    ),
    (
        "V18",
        "NotImplementedError: Pipeline parallelism is not supported for this model. Supported models "
        "implement the `SupportsPP` interface.",
        INFEASIBLE,
        {},
    ),
    (
        "V19",
        "ValueError: Non-MoE models do not support external data parallel mode. For external load "
        "balancing, launch independent vLLM instances without --data-parallel-* arguments.",
        INFEASIBLE,
        {},
    ),
    (
        "V19 local",
        "ValueError: data_parallel_size_local (4) must be <= data_parallel_size (2)",
        INFEASIBLE,
        {"data_parallel_size_local": 4, "data_parallel_size": 2},
    ),
    (
        "V21",
        "RuntimeError: NCCL error: unhandled system error (run with NCCL_DEBUG=INFO for details)",
        INFRA,
        {"nccl_error": "unhandled system error"},
    ),
    (
        "V22",
        "  Value error, max_num_batched_tokens (64) must be greater than or equal to max_num_seqs "
        "(192). [type=value_error, input_value=1, input_type=int]",
        INFEASIBLE,
        {"max_num_batched_tokens": 64, "max_num_seqs": 192},
    ),
    (
        "V23",
        "ValueError: max_num_batched_tokens (1024) is smaller than max_model_len (8192). This "
        "effectively limits the maximum sequence length to max_num_batched_tokens",
        INFEASIBLE,
        {"max_num_batched_tokens": 1024, "max_model_len": 8192},
    ),
    (
        "V25",
        "ValueError: User-specified max_model_len (65536) is greater than the derived max_model_len "
        "(max_position_embeddings=40960 or model_max_length=None in model's config.json). To allow "
        "overriding this maximum, set the env var VLLM_ALLOW_LONG_MAX_MODEL_LEN=1.",
        INFEASIBLE,
        {"max_model_len": 65536, "max_position_embeddings": 40960},
    ),
    (
        "V27",
        "ValueError: torch.bfloat16 is not supported for quantization method awq. Supported dtypes: "
        "[torch.float16]",
        INFEASIBLE,
        {"dtype": "bfloat16", "quantization": "awq"},
    ),
    (
        "V28",
        "ValueError: The quantization method fp8 is not supported for the current GPU. Minimum "
        "capability: 75. Current capability: 61.",
        INFEASIBLE,
        {"quantization": "fp8", "min_capability": 75, "capability": 61},
    ),
    (
        "V30",
        "ValueError: Quantization method specified in the model config (gptq) does not match the "
        "quantization method specified in the `quantization` argument (awq).",
        INFEASIBLE,
        {"checkpoint": "gptq", "quantization": "awq"},
    ),
    (
        "V30 unknown",
        "ValueError: Unknown quantization method: bitsandbytes. Must be one of ['awq', 'fp8'].",
        INFEASIBLE,
        {"quantization": "bitsandbytes"},
    ),
    (
        "V31",
        "ValueError: The `fp8` quantization method no longer supports online quantization. Please use "
        "`--quantization fp8_per_tensor` instead.",
        INFEASIBLE,
        {"quantization": "fp8", "replacement": "fp8_per_tensor"},
    ),
    (
        "V33 input",
        "ValueError: Weight input_size_per_partition = 9472 is not divisible by min_thread_k = 128. "
        "Consider reducing tensor_parallel_size or running with --quantization gptq.",
        INFEASIBLE,
        {"partition": 9472, "divisor": 128},
    ),
    (
        "V33 output, two spaces",
        "ValueError: Weight output_size_per_partition = 96 is not divisible by  min_thread_n = 64. "
        "Consider reducing tensor_parallel_size",
        INFEASIBLE,
        {"partition": 96, "divisor": 64},
    ),
    (
        "V34",
        "ValueError: Weight input_size_per_partition=924 is not divisible by group_size=128. This "
        "happens when tensor_parallel_size splits the layer input into shards",
        INFEASIBLE,
        {"partition": 924, "divisor": 128},
    ),
    (
        "V38 triton",
        'ValueError("type fp8e4nv not supported in this architecture. The supported fp8 dtypes are '
        "('fp8e4b15', 'fp8e5')\")",
        INFEASIBLE,
        {},
    ),
    (
        "V38 backend",
        "ValueError: FP8 KV cache is not supported by the Triton attention backend on NVIDIA A100 "
        "(compute capability 8.0); native FP8 (fp8e4nv) requires SM89+. Re-run with --kv-cache-dtype "
        "bfloat16.",
        INFEASIBLE,
        {"backend": "Triton", "suggested_kv_cache_dtype": "bfloat16"},
    ),
    (
        "V40",
        "ValueError: Target and draft model should have the same vocabulary size. Target model "
        "vocab_size=128256. Draft model vocab_size=32000. Using models with different tokenizers can "
        "cause out-of-bounds errors during speculative decoding.",
        INFEASIBLE,
        {"target_vocab_size": 128256, "draft_vocab_size": 32000},
    ),
    (
        "V41 multiple",
        "ValueError: num_speculative_tokens:5 must be divisible by n_predict=3",
        INFEASIBLE,
        {"num_speculative_tokens": 5, "n_predict": 3},
    ),
    (
        "V41 no count",
        "ValueError: A speculative model was provided, but `num_speculative_tokens` was not provided",
        INFEASIBLE,
        {},
    ),
    (
        "V41 no model",
        "ValueError: num_speculative_tokens was provided but without speculative model.",
        INFEASIBLE,
        {},
    ),
    (
        "V41 zero",
        "ValueError: Expected num_speculative_tokens to be greater than zero (0).",
        INFEASIBLE,
        {},
    ),
    (
        "V42",
        "ValueError: prompt_lookup_min=6 must be <= prompt_lookup_max=2",
        INFEASIBLE,
        {"prompt_lookup_min": 6, "prompt_lookup_max": 2},
    ),
    (
        "V42 none",
        "ValueError: Either prompt_lookup_max or prompt_lookup_min must be provided when using the "
        "ngram method.",
        INFEASIBLE,
        {},
    ),
    (
        "V44 scheduled",
        "ValueError: max_num_scheduled_tokens is set to -640 based on the speculative decoding "
        "settings, which does not allow any tokens to be scheduled.",
        INFEASIBLE,
        {"max_num_scheduled_tokens": -640},
    ),
    (
        "V44 slots",
        "ValueError: VllmConfig does not have enough slots to schedule a token and support the "
        "speculative decoding settings. Got max_num_batched_tokens=8 and num_lookahead_tokens=9",
        INFEASIBLE,
        {"max_num_batched_tokens": 8, "num_lookahead_tokens": 9},
    ),
    (
        "V44 graphs",
        "ValueError: No valid cudagraph sizes after rounding to multiple of 6",
        INFEASIBLE,
        {"multiple": 6},
    ),
    ("V49", "OSError: [Errno 98] Address already in use", INFRA, {"rule": "port_taken"}),
    (
        "V49 as asyncio says it",
        "[Errno 98] error while attempting to bind on address ('127.0.0.1', 8000): address already "
        "in use",
        INFRA,
        {"rule": "port_taken"},
    ),
    (
        "V54",
        "RuntimeError: vLLM failed to compile the model. The most likely reason for this is that a "
        "previous compilation failed, leading to a corrupted compilation artifact.",
        INFRA,
        {"rule": "compile_cache_corrupt"},
    ),
    (
        "V54 cache",
        "AssertionError: Expected tensors only, but got: <class 'int'>",
        INFRA,
        {"rule": "compile_cache_corrupt"},
    ),
    (
        "V56",
        "vllm: error: unrecognized arguments: --disable-log-requests --swap-space 4",
        INFEASIBLE,
        {"unrecognized_arguments": "--disable-log-requests --swap-space 4"},
    ),
    (
        "flag value",
        "api_server.py: error: argument --quantization/-q: invalid choice: 'x' (choose from 'awq')",
        INFEASIBLE,
        {"argument": "--quantization/-q"},
    ),
    (
        "CPU kernel",
        "RuntimeError: _C::static_scaled_fp8_quant() expected at most 0 argument(s) but received 4",
        INFEASIBLE,
        {"kernel": "static_scaled_fp8_quant"},
    ),
    (
        "CPU nodes",
        "AssertionError: Not enough allowed NUMA nodes to bind threads of 2 local CPUWorkers.",
        INFEASIBLE,
        {"workers": 2},
    ),
    (
        "Q07",
        "ValueError: Sparsity support has been removed from compressed-tensors. Please use a model "
        "without sparsity configuration.",
        INFEASIBLE,
        {},
    ),
]

PREFIXES = (
    "",
    "(EngineCore_DP0 pid=1234) ERROR 10-25 13:08:43 [core.py:708] ",
    "(APIServer pid=99) ",
    "(Worker_TP1 pid=77) ERROR 10-25 13:08:43 [multiproc_executor.py:671] ",
    "(EngineCore pid=5) \x1b[31mERROR\x1b[0m 01-02 03:04:05 [core.py:1] ",
    "[rank0]: ",
    "[vllm]: ",
    "(APIServer pid=9) [rank3]: ",
)


def wrapped(text: str, prefix: str = "") -> str:
    """A failed log around one text: harmless lines before, wrapper lines around and after."""
    said = [
        "(APIServer pid=1) INFO 10-25 13:08:01 [api_utils.py:286] non-default args: {'port': 1}",
        "(EngineCore pid=2) WARNING 10-25 13:08:02 [shm_broadcast.py:1] No available shared memory "
        "broadcast block found in 60 seconds. This typically happens when some processes hang.",
        f"{prefix}EngineCore failed to start.",
        f"{prefix}Traceback (most recent call last):",
        f'{prefix}  File "/site/vllm/v1/engine/core.py", line 10, in run',
        f"{prefix}    raise RuntimeError(",
        f"{prefix}{text}",
        "Traceback (most recent call last):",
        "RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}",
    ]
    return "\n".join(said)


@pytest.mark.parametrize(
    ("text", "verdict", "learnt"), [case[1:] for case in CASES], ids=[case[0] for case in CASES]
)
def test_known_text(text: str, verdict: Verdict, learnt: dict[str, object]) -> None:
    found = diagnose_vllm(wrapped(text), Phase.START, 1)
    assert (found.verdict, found.phase) == (verdict, Phase.START)
    assert learnt.items() <= dict(found.learnt).items()
    assert found.remedy
    assert found.cause in found.evidence
    assert not found.cause.startswith(("ValueError", "Value error"))
    assert "[type=" not in found.cause


@pytest.mark.parametrize("prefix", PREFIXES)
@pytest.mark.parametrize("text", [CASES[0][1], CASES[12][1], CASES[10][1]])
def test_prefixes_do_not_matter(prefix: str, text: str) -> None:
    plain = diagnose_vllm(wrapped(text), Phase.START, 1)
    found = diagnose_vllm(wrapped(text, prefix), Phase.START, 1)
    assert (found.verdict, found.cause, found.learnt) == (plain.verdict, plain.cause, plain.learnt)


def test_first_cause_wins_over_what_follows_from_it() -> None:
    log = (
        wrapped("torch.OutOfMemoryError: CUDA out of memory.")
        + "\n"
        + wrapped(
            "RuntimeError: NCCL error: unhandled cuda error (run with NCCL_DEBUG=INFO for details)"
        )
    )
    assert diagnose_vllm(log, Phase.START, 1).verdict is CAPACITY


def test_wrappers_alone_are_unknown_with_the_tail_kept() -> None:
    log = "\n".join(
        [
            "RuntimeError: Engine core initialization failed. See root cause above. Failed core "
            "proc(s): {'EngineCore_DP0': 1}",
            "RuntimeError: WorkerProc failed to start.",
            "ERROR 10-25 13:08:43 [x.py:1] Worker proc VllmWorker-0 died unexpectedly (exit code: -9), "
            "shutting down executor.",
        ]
    )
    found = diagnose_vllm(log, Phase.START, 1)
    assert found.verdict is Verdict.UNKNOWN
    assert "Engine core" not in found.cause
    assert "shutting down executor" in found.evidence


@pytest.mark.parametrize("exit_code", [None, 0, 1])
def test_a_core_that_was_killed_under_load_is_told_from_a_server_that_ended(
    exit_code: int | None,
) -> None:
    """As vLLM 0.32 words it: the server notices, shuts down in order, and exits with 0."""
    log = "\n".join(
        [
            "INFO:     Application startup complete.",
            "(APIServer pid=7) ERROR 11-30 07:17:25 [async_llm.py:906] AsyncLLM output_handler failed.",
            "(APIServer pid=7) ERROR 11-30 07:17:25 [async_llm.py:906] "
            "vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue. See stack "
            "trace (above) for the root cause.",
            "INFO:     Shutting down",
            "INFO:     Finished server process [7]",
        ]
    )
    found = diagnose_vllm(log, Phase.LOAD, exit_code)
    assert found.verdict is Verdict.CRASH_UNDER_LOAD
    assert "ended without a word" in found.cause
    assert "dmesg" in found.remedy
    assert "EngineDeadError" in found.evidence
    assert diagnose_vllm(log, Phase.LOAD, -9).cause != found.cause


def test_unknown_exception_is_told_as_the_cause() -> None:
    found = diagnose_vllm(wrapped("KeyError: 'a_new_thing'"), Phase.START, 1)
    assert (found.verdict, found.cause) == (Verdict.UNKNOWN, "KeyError: 'a_new_thing'")
    assert "Engine core initialization failed" in found.evidence


def test_warnings_and_quoted_source_are_no_causes() -> None:
    log = "\n".join(
        [
            "WARNING 10-25 13:08:43 [x.py:1] CUDA out of memory while tuning, smaller one taken",
            "INFO 10-25 13:08:43 [x.py:1] retry after NCCL error: unhandled system error (see)",
            '  File "kv_cache_utils.py", line 5, in check',
            '    raise ValueError("No available memory for the cache blocks. ")',
            "TypeError: 'NoneType' object is not callable",
        ]
    )
    found = diagnose_vllm(log, Phase.START, 1)
    assert (found.verdict, found.cause) == (
        Verdict.UNKNOWN,
        "TypeError: 'NoneType' object is not callable",
    )


@pytest.mark.parametrize("phase", [Phase.WARMUP, Phase.LOAD, Phase.QUALITY])
def test_fault_of_the_deployment_after_the_start_is_a_crash_with_the_same_bounds(
    phase: Phase,
) -> None:
    text = {case[0]: case[1] for case in CASES}["V07"]
    found = diagnose_vllm(wrapped(text), phase, None)
    assert (found.verdict, found.phase) == (Verdict.CRASH_UNDER_LOAD, phase)
    assert found.learnt["tried_gib"] == 0.25


def test_fault_of_the_machine_stays_one_under_load() -> None:
    text = "RuntimeError: NCCL error: unhandled system error (run with NCCL_DEBUG=INFO for details)"
    assert diagnose_vllm(wrapped(text), Phase.LOAD, 1).verdict is INFRA


def test_impossible_graph_estimate_blames_the_engine() -> None:
    log = "INFO 10-25 13:08:43 [x.py:1] Estimated CUDA graph memory: 118.65 GiB total\n" + wrapped(
        CASES[0][1]
    )
    found = diagnose_vllm(log, Phase.START, 1)
    assert found.verdict is INFRA
    assert "VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS" in found.remedy
    believable = log.replace("118.65", "0.26")
    assert diagnose_vllm(believable, Phase.START, 1).verdict is CAPACITY


def test_out_of_memory_while_capturing_graphs_says_so() -> None:
    log = "Capturing CUDA graphs (decode): 12%\n" + wrapped(
        "torch.OutOfMemoryError: CUDA out of memory."
    )
    assert diagnose_vllm(log, Phase.START, 1).learnt["stage"] == "graph_capture"


@pytest.mark.parametrize(
    ("exit_code", "said"),
    [
        (-9, "killed by signal 9 (out of host memory?)"),
        (-11, "killed by signal 11 (segmentation fault)"),
        (0, "exit code 0"),
        (3, "exit code 3"),
        (None, "still ran"),
    ],
)
def test_exit_code_is_told_where_the_log_is_silent(exit_code: int | None, said: str) -> None:
    found = diagnose_vllm(
        "INFO 10-25 13:08:43 [x.py:1] Starting to load model", Phase.START, exit_code
    )
    assert found.verdict is Verdict.UNKNOWN
    assert said in found.cause
    assert "Starting to load model" in found.evidence


def test_text_decides_even_if_the_exit_code_is_0() -> None:
    assert diagnose_vllm(CASES[0][1], Phase.START, 0).verdict is CAPACITY


def test_empty_log_is_unknown() -> None:
    assert diagnose_vllm("", Phase.START, 1).verdict is Verdict.UNKNOWN


def test_log_of_a_healthy_server_has_no_cause(healthy_log: str) -> None:
    assert diagnose_vllm(healthy_log, Phase.START, None).verdict is Verdict.UNKNOWN


def test_what_a_dying_engine_shows_of_its_work_is_no_cause() -> None:
    log = (
        "ERROR 06-26 00:04:52 [dump_input.py:69] Dumping input data for V1 LLM engine (v0.9.1) with "
        "config: model='m'\n"
        "ERROR 06-26 00:04:52 [dump_input.py:76] Dumping scheduler output for model execution: "
        "SchedulerOutput(sampling_params=SamplingParams(stop=['CUDA out of memory']))\n"
        "ERROR 06-26 00:04:52 [core.py:517] KeyError: 'moon'"
    )
    assert diagnose_vllm(log, Phase.START, 1).cause == "KeyError: 'moon'"
