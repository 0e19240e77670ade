"""Failed launches on GPUs as their users reported them, down to the lines that decide.

The number is that of the report; names of hosts and folders are replaced. They differ in version
(V0 and V1 of the engine, Ray or not), in prefixes (Compose, journald, CI) and in what stands around
the cause: what follows from it, what warns of nothing, and what only shows the configuration.
"""

# ruff: noqa: E501 - texts are quoted as they stand

from __future__ import annotations

from typing import Any, NamedTuple

from sweeper.verdicts import Phase, Verdict

SITE = "/opt/venv/lib/python3.12/site-packages"
READY = "INFO:     Application startup complete."
SERVED = 'INFO:     10.0.0.4:60994 - "POST /v1/chat/completions HTTP/1.1" 200 OK'


class Report(NamedTuple):
    """One report.

    Attributes:
        number: where it was reported.
        log: the decisive lines.
        verdict: that must be found, by the log alone.
        rule: that must know it.
        cause: what the cause begins with.
        phase: that the log must tell.
        learnt: at least this.
    """

    number: str
    log: str
    verdict: Verdict
    rule: str
    cause: str
    phase: Phase = Phase.START
    learnt: dict[str, Any] = {}  # noqa: RUF012 - never changed


def _with(prefix: str, *said: str) -> str:
    return "\n".join(prefix + line for line in said)


_ASYNC_CUDA = (
    "CUDA kernel errors might be asynchronously reported at some other API call, so the stacktrace below might be incorrect.",
    "For debugging consider passing CUDA_LAUNCH_BLOCKING=1",
    "Compile with `TORCH_USE_CUDA_DSA` to enable device-side assertions.",
)
_V1_FOOT = "\n".join(
    [
        "(EngineCore_DP0 pid=241) ERROR 11-12 16:25:36 [core.py:708] EngineCore failed to start.",
        "(EngineCore_DP0 pid=241) ERROR 11-12 16:25:36 [core.py:708] Exception: WorkerProc initialization failed due to an exception in a background process. See stack trace for root cause.",
        "(APIServer pid=1) RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}",
    ]
)

MEMORY = (
    Report(
        "vllm#19186",
        "INFO 06-05 06:18:01 [gpu_worker.py:227] Available KV cache memory: 60.11 GiB\n"
        + _with(
            "(VllmWorker rank=3 pid=1090) ERROR 06-05 06:18:13 [multiproc_executor.py:470] ",
            "WorkerProc hit an exception.",
            "Traceback (most recent call last):",
            f'  File "{SITE}/vllm/v1/worker/gpu_worker.py", line 250, in compile_or_warm_up_model',
            "    self.model_runner.capture_model()",
            f'  File "{SITE}/torch/cuda/graphs.py", line 84, in capture_end',
            "    super().capture_end()",
            "RuntimeError: CUDA error: out of memory",
            *_ASYNC_CUDA,
        )
        + f"\n{_V1_FOOT}",
        Verdict.CAPACITY,
        "device_out_of_memory",
        "CUDA error: out of memory",
        learnt={"stage": "graph_capture"},
    ),
    Report(
        "vllm#6746",
        _with(
            "[rank0]: ",
            "Traceback (most recent call last):",
            f'  File "{SITE}/vllm/worker/worker.py", line 236, in _warm_up_model',
            "    self.model_runner.capture_model(self.gpu_cache)",
            f'  File "{SITE}/torch/cuda/graphs.py", line 82, in capture_end',
            "    super().capture_end()",
            "RuntimeError: CUDA error: out of memory",
            *_ASYNC_CUDA,
        ),
        Verdict.CAPACITY,
        "device_out_of_memory",
        "CUDA error: out of memory",
        learnt={"stage": "graph_capture"},
    ),
    Report(
        "vllm#15598",
        "(RayWorkerWrapper pid=1861983) INFO 03-27 10:29:03 [model_runner.py:1442] Capturing cudagraphs for decoding. This may lead to unexpected consequences if the model is not static. If out-of-memory error occurs during cudagraph capture, consider decreasing `gpu_memory_utilization` or switching to eager mode.\n"
        + _with(
            "(RayWorkerWrapper pid=206994, ip=10.0.0.25) ERROR 03-27 10:29:13 [worker_base.py:620] ",
            "Error executing method 'initialize_cache'. This might cause deadlock in distributed execution.",
            "Traceback (most recent call last):",
            f'  File "{SITE}/vllm/worker/worker_base.py", line 612, in execute_method',
            "    return run_method(target, method, args, kwargs)",
            "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 MiB. GPU 6 has a total capacity of 44.53 GiB of which 448.00 KiB is free. Process 1863183 has 44.52 GiB memory in use. Of the allocated memory 43.02 GiB is allocated by PyTorch [repeated 30x across cluster]",
        ),
        Verdict.CAPACITY,
        "device_out_of_memory",
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 MiB.",
        learnt={"device_memory_gib": 44.53},
    ),
    Report(
        "vllm#10439",
        _with(
            "vllm-1  | ERROR 11-18 18:07:28 engine.py:366] ",
            f'  File "{SITE}/vllm/worker/worker.py", line 493, in raise_if_cache_size_invalid',
            '    raise ValueError("No available memory for the cache blocks. "',
            "ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when initializing the engine.",
        ),
        Verdict.CAPACITY,
        "no_kv_memory",
        "No available memory for the cache blocks.",
    ),
    Report(
        "vllm#14574",
        _with(
            "  | [2025-03-10T15:07:20Z] ERROR 03-10 08:07:20 [core.py:302] ",
            "EngineCore hit an exception: Traceback (most recent call last):",
            f'  File "{SITE}/vllm/v1/engine/core.py", line 294, in run_engine_core',
            "    engine_core = EngineCoreProc(*args, **kwargs)",
            "                  ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^",
            "ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when initializing the engine.",
        ),
        Verdict.CAPACITY,
        "no_kv_memory",
        "No available memory for the cache blocks.",
    ),
    Report(
        "vllm#4429",
        _with(
            "ERROR 04-28 15:55:45 worker_base.py:157] ",
            "Error executing method initialize_cache. This might cause deadlock in distributed execution.",
            "Traceback (most recent call last):",
            f'  File "{SITE}/vllm/worker/worker.py", line 335, in raise_if_cache_size_invalid',
            "    raise ValueError(",
            "ValueError: The model's max seq len (16384) is larger than the maximum number of tokens that can be stored in KV cache (11776). Try increasing `gpu_memory_utilization` or decreasing `max_model_len` when initializing the engine.",
        ),
        Verdict.CAPACITY,
        "kv_too_small_for_max_model_len",
        "The model's max seq len (16384) is larger",
        learnt={"max_model_len": 16384, "estimated_max_model_len": 11776},
    ),
)

SHAPES = (
    Report(
        "llm-compressor#57",
        _with(
            "(VllmWorkerProcess pid=14678) ERROR 08-05 23:29:38 multiproc_worker_utils.py:226] ",
            "Exception in worker VllmWorkerProcess while processing method load_model: Weight input_size_per_partition = 7392 is not divisible by min_thread_k = 128., Traceback (most recent call last):",
            f'  File "{SITE}/vllm/executor/multiproc_worker_utils.py", line 223, in _run_worker_process',
            "    output = executor(*args, **kwargs)",
            "ValueError: Weight input_size_per_partition = 7392 is not divisible by min_thread_k = 128. Consider reducing tensor_parallel_size or running with --quantization gptq.",
        ),
        Verdict.INFEASIBLE_CONFIG,
        "shard_not_divisible",
        "Weight input_size_per_partition = 7392 is not divisible by min_thread_k = 128.",
        learnt={"partition": 7392, "divisor": 128},
    ),
    Report(
        "vllm#17604",
        f"{READY}\n"
        + _with(
            "ERROR 06-26 00:04:52 [dump_input.py:69] ",
            'Dumping input data for V1 LLM engine (v0.9.1) with config: model=\'m\', speculative_config=None, quantization=gptq_marlin, enforce_eager=True, kv_cache_dtype=auto, compilation_config={"level":0,"cudagraph_capture_sizes":[]},',
            "Dumping scheduler output for model execution: SchedulerOutput(scheduled_new_reqs=[NewRequestData(req_id=cmpl-1,prompt_token_ids_len=1)], num_common_prefix_blocks=[1])",
        )
        + "\n"
        + _with(
            "ERROR 06-26 00:04:52 [core.py:517] ",
            "EngineCore encountered a fatal error.",
            "Traceback (most recent call last):",
            f'  File "{SITE}/vllm/v1/executor/multiproc_executor.py", line 230, in get_response',
            "    raise RuntimeError(",
            "RuntimeError: Worker failed with error 'size_k must divisible by BLOCK_SIZE_K', please check the stack trace above for the root cause",
        )
        + "\nERROR 06-26 00:04:52 [async_llm.py:420] vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue. See stack trace (above) for the root cause.",
        Verdict.CRASH_UNDER_LOAD,
        "kernel_shape",
        "size_k must divisible by BLOCK_SIZE_K",
        Phase.WARMUP,
    ),
    Report(
        "vllm#25928",
        _with(
            "(EngineCore_DP0 pid=3030) ERROR 09-30 03:12:11 [core.py:708] ",
            "EngineCore failed to start.",
            "Traceback (most recent call last):",
            f'  File "{SITE}/vllm/v1/worker/gpu_worker.py", line 266, in initialize_from_config',
            "    self.model_runner.initialize_kv_cache(kv_cache_config)",
            f'  File "{SITE}/vllm/v1/attention/backends/flashinfer.py", line 310, in __init__',
            "    assert self.q_data_type in SUPPORTED",
            "           ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^",
            "AssertionError",
        )
        + "\n(APIServer pid=2909) RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {'EngineCore_DP0': 1}",
        Verdict.INFEASIBLE_CONFIG,
        "refused_by_engine",
        "AssertionError at vllm/v1/attention/backends/flashinfer.py:310: assert self.q_data_type in SUPPORTED",
    ),
)

COMMUNICATION = (
    Report(
        "vllm#6732",
        _with(
            "(VllmWorkerProcess pid=760) ERROR 07-24 08:26:01 multiproc_worker_utils.py:226] ",
            "Exception in worker VllmWorkerProcess while processing method init_device: NCCL error: unhandled cuda error (run with NCCL_DEBUG=INFO for details), Traceback (most recent call last):",
            f'  File "{SITE}/vllm/distributed/device_communicators/pynccl_wrapper.py", line 223, in NCCL_CHECK',
            '    raise RuntimeError(f"NCCL error: {error_str}")',
            "RuntimeError: NCCL error: unhandled cuda error (run with NCCL_DEBUG=INFO for details)",
        ),
        Verdict.INFRA,
        "nccl",
        "NCCL error: unhandled cuda error",
    ),
    Report(
        "vllm#9321",
        f"{READY}\n{SERVED}\n"
        "(VllmWorkerProcess pid=3106) WARNING 10-12 22:31:22 shm_broadcast.py:396] No available block found in 60 second.\n"
        "[rank3]:[E1012 22:31:22.267261276 ProcessGroupNCCL.cpp:607] [Rank 3] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=203441, OpType=GATHER, NumelIn=32064, NumelOut=0, Timeout(ms)=600000) ran for 600020 milliseconds before timing out.\n"
        "[rank3]:[E1012 22:31:22.268279156 ProcessGroupNCCL.cpp:621] [Rank 3] Some NCCL operations have failed or timed out. Due to the asynchronous nature of CUDA kernels, subsequent GPU operations might run on corrupted/incomplete data.",
        Verdict.INFRA,
        "nccl",
        "[Rank 3] Watchdog caught collective operation timeout",
        Phase.LOAD,
    ),
    Report(
        "vllm#46611",
        f"{READY}\n{SERVED}\n"
        "(EngineCore pid=40) WARNING 07-12 09:10:37 [shm_broadcast.py:681] No available shared memory broadcast block found in 60 seconds. This typically happens when some processes are hanging or doing some time-consuming work.\n"
        + _with(
            "(EngineCore pid=40) ERROR 07-12 09:14:37 ",
            "[dump_input.py:81] Dumping scheduler stats: SchedulerStats(num_running_reqs=1, num_waiting_reqs=0, kv_cache_usage=0.53)",
            "[core.py:1138] EngineCore encountered a fatal error.",
            "[core.py:1138] TimeoutError: RPC call to sample_tokens timed out.",
        )
        + "\n(APIServer pid=1) ERROR 07-12 09:14:37 [async_llm.py:704] vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue. See stack trace (above) for the root cause.",
        Verdict.INFRA,
        "worker_silent",
        "TimeoutError: RPC call to sample_tokens timed out.",
        Phase.LOAD,
    ),
    Report(
        "vllm#5443",
        f"{READY}\n{SERVED}\n"
        "ERROR 06-13 02:36:52 async_llm_engine.py:532] Engine iteration timed out. This should never happen!\n"
        "ERROR 06-13 02:36:52 async_llm_engine.py:52] Engine background task failed\n"
        "ERROR 06-13 02:36:52 async_llm_engine.py:52] asyncio.exceptions.CancelledError\n"
        "vllm.engine.async_llm_engine.AsyncEngineDeadError: Task finished unexpectedly. This should never happen! Please open an issue on Github. See stack trace above for the actual cause.",
        Verdict.INFRA,
        "worker_silent",
        "Engine iteration timed out.",
        Phase.LOAD,
    ),
)

COMPILERS = (
    Report(
        "vllm#36077",
        _with(
            "(EngineCore_DP0 pid=1359765) ERROR 03-05 09:56:09 [core.py:1100] ",
            "EngineCore failed to start.",
            "Traceback (most recent call last):",
            f'  File "{SITE}/flashinfer/jit/cpp_ext.py", line 340, in run_ninja',
            "    raise RuntimeError(msg) from e",
            "RuntimeError: Ninja build failed. Ninja output:",
            "ninja: Entering directory `/home/u/.cache/flashinfer/0.6.4/89/cached_ops'",
            "[1/9] :/usr/local/cuda-12.8/bin/nvcc --generate-dependencies-with-compile -c batch_prefill.cu",
            "/bin/sh: 1: :/usr/local/cuda-12.8/bin/nvcc: not found",
            "ninja: build stopped: subcommand failed.",
        ),
        Verdict.INFRA,
        "compiler_missing",
        "/bin/sh: 1: :/usr/local/cuda-12.8/bin/nvcc: not found",
    ),
    Report(
        "LMCache#1925",
        _with(
            "(Worker_TP0 pid=428) ERROR 10-30 18:49:38 [multiproc_executor.py:671] ",
            f'  File "{SITE}/flashinfer/jit/cpp_ext.py", line 280, in run_ninja',
            "    subprocess.run(",
            "FileNotFoundError: [Errno 2] No such file or directory: 'ninja'",
        )
        + f"\n{_V1_FOOT}",
        Verdict.INFRA,
        "compiler_missing",
        "FileNotFoundError: [Errno 2] No such file or directory: 'ninja'",
    ),
    Report(
        "kserve#4565",
        _with(
            "ERROR 07-02 07:04:46 [core.py:500] ",
            "EngineCore failed to start.",
            "Traceback (most recent call last):",
            f'  File "{SITE}/torch/utils/cpp_extension.py", line 2506, in _run_ninja_build',
            "    subprocess.run(",
            "subprocess.CalledProcessError: Command '['ninja', '-v', '-f', '/home/u/.cache/flashinfer/90/cached_ops/sampling/build.ninja']' returned non-zero exit status 1.",
            "The above exception was the direct cause of the following exception:",
            "Traceback (most recent call last):",
            "RuntimeError: Error building extension 'sampling'",
        ),
        Verdict.INFEASIBLE_CONFIG,
        "compile_failed",
        "subprocess.CalledProcessError: Command '['ninja', '-v'",
    ),
    Report(
        "vllm#21028",
        f'  File "{SITE}/torch/_inductor/runtime/compile_tasks.py", line 36, in _reload_python_module\n'
        "    exec(code, mod.__dict__, mod.__dict__)\n"
        "torch._inductor.exc.InductorError: RuntimeError: PassManager::run failed\n\n"
        "Set TORCHDYNAMO_VERBOSE=1 for the internal stack trace (please do this especially if you're reporting a bug to PyTorch).\n"
        "RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}",
        Verdict.INFEASIBLE_CONFIG,
        "compile_failed",
        "InductorError: RuntimeError: PassManager::run failed",
    ),
    Report(
        "vllm#50705",
        "(EngineCore pid=4140) Failed to get device capability: SM 12.x requires CUDA >= 12.9.\n"
        "(EngineCore pid=4140) INFO 08-03 17:45:55 [cuda.py:482] Using FLASHINFER attention backend out of potential backends: ['FLASHINFER', 'TRITON_ATTN'].\n"
        + _with(
            "(EngineCore pid=4140) ERROR 08-03 17:46:40 [core.py:1100] ",
            f'  File "{SITE}/flashinfer/jit/core.py", line 96, in check_cuda_arch',
            '    raise RuntimeError("FlashInfer requires GPUs with sm75 or higher")',
            "RuntimeError: FlashInfer requires GPUs with sm75 or higher",
        ),
        Verdict.INFEASIBLE_CONFIG,
        "no_kernel_for_device",
        "FlashInfer requires GPUs with sm75 or higher",
    ),
    Report(
        "vllm#36802",
        f"{READY}\n{SERVED}\n"
        + _with(
            "(Worker_TP2 pid=99) ERROR 03-11 15:46:59 [multiproc_executor.py:824] ",
            "WorkerProc hit an exception.",
            f'  File "{SITE}/triton/compiler/compiler.py", line 466, in _init_handles',
            '    raise_(OutOfResources(self.metadata.shared, max_shared, "shared memory"))',
            "triton.runtime.errors.OutOfResources: out of resource: shared memory, Required: 81920, Hardware limit: 65536. Reducing block sizes or `num_stages` may help.",
        )
        + "\n(EngineCore_DP0 pid=40) ERROR 03-11 15:46:59 [core.py:999] EngineCore encountered a fatal error.",
        Verdict.CRASH_UNDER_LOAD,
        "kernel_resources",
        "triton.runtime.errors.OutOfResources: out of resource: shared memory, Required: 81920",
        Phase.LOAD,
        {"required": 81920, "limit": 65536},
    ),
)

DEVICES = (
    Report(
        "vllm#31700",
        _with(
            "(EngineCore_DP0 pid=15638) ",
            "Traceback (most recent call last):",
            f'  File "{SITE}/vllm/model_executor/layers/rotary_embedding/base.py", line 50, in __init__',
            "    cache = self._compute_cos_sin_cache()",
            "            ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^",
            "torch.AcceleratorError: CUDA error: the provided PTX was compiled with an unsupported toolchain.",
            "Search for `cudaErrorUnsupportedPtxVersion' in https://docs.nvidia.com/cuda/cuda-runtime-api/group__CUDART__TYPES.html for more information.",
            *_ASYNC_CUDA,
        )
        + "\n[rank0]:[W105 12:12:02.882195276 ProcessGroupNCCL.cpp:1524] Warning: WARNING: destroy_process_group() was not called before program exit, which can leak resources.\n"
        "(APIServer pid=15495) RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}",
        Verdict.INFRA,
        "driver_too_old",
        "torch.AcceleratorError: CUDA error: the provided PTX was compiled",
        learnt={"scope": "machine"},
    ),
    Report(
        "gpustack#2097",
        "WARNING 05-26 07:50:26 [topk_topp_sampler.py:69] FlashInfer is not available. Falling back to the PyTorch-native implementation of top-p & top-k sampling. For the best performance, please install FlashInfer.\n"
        + _with(
            "ERROR 05-26 07:50:26 [core.py:396] ",
            "EngineCore failed to start.",
            "Traceback (most recent call last):",
            f'  File "{SITE}/vllm/model_executor/layers/vocab_parallel_embedding.py", line 34, in create_weights',
            "    weight = Parameter(torch.empty(",
            "RuntimeError: CUDA error: no kernel image is available for execution on the device",
            *_ASYNC_CUDA,
        ),
        Verdict.INFEASIBLE_CONFIG,
        "no_kernel_for_device",
        "CUDA error: no kernel image is available for execution on the device",
    ),
    Report(
        "vllm#20170",
        f"{READY}\n{SERVED}\n"
        + _with(
            "ERROR 06-26 23:10:17 [core.py:517] ",
            "EngineCore encountered a fatal error.",
            "Traceback (most recent call last):",
            f'  File "{SITE}/vllm/v1/worker/gpu_model_runner.py", line 1432, in execute_model',
            "    valid_sampled_token_ids = sampled_token_ids.tolist()",
            "RuntimeError: CUDA error: an illegal memory access was encountered",
            *_ASYNC_CUDA,
        )
        + "\nINFO 06-26 23:10:17 [async_llm.py:346] Request chatcmpl-f745 failed (engine dead).\n"
        'INFO:     172.18.0.1:38700 - "POST /v1/chat/completions HTTP/1.0" 500 Internal Server Error\n'
        "Failed: Cuda error /workspace/csrc/custom_all_reduce.cuh:490 'an illegal memory access was encountered'",
        Verdict.CRASH_UNDER_LOAD,
        "kernel_fault",
        "CUDA error: an illegal memory access was encountered",
        Phase.LOAD,
    ),
    Report(
        "vllm#13939",
        "INFO 02-25 11:11:31 metrics.py:455] Avg prompt throughput: 2082.8 tokens/s, Avg generation throughput: 194.4 tokens/s, Running: 3 reqs\n"
        f"{SERVED}\n"
        + _with(
            "ERROR 02-25 11:11:34 engine.py:139] ",
            "RuntimeError('CUDA error: an illegal memory access was encountered')",
            "Traceback (most recent call last):",
            f'  File "{SITE}/vllm/engine/multiprocessing/engine.py", line 137, in start',
            "    self.run_engine_loop()",
            "RuntimeError: CUDA error: an illegal memory access was encountered",
        )
        + "\nCRITICAL 02-25 11:11:34 launcher.py:101] MQLLMEngine is already dead, terminating server process",
        Verdict.CRASH_UNDER_LOAD,
        "kernel_fault",
        "CUDA error: an illegal memory access was encountered",
        Phase.LOAD,
    ),
    Report(
        "vllm#8100",
        f"{READY}\n{SERVED}\n"
        "ERROR:asyncio:Exception in callback functools.partial(<function _raise_exception_on_finish at 0x7fd3>, error_callback=<bound method AsyncLLMEngine._error_callback>)\n"
        "Traceback (most recent call last):\n"
        f'  File "{SITE}/vllm/engine/async_llm_engine.py", line 40, in _raise_exception_on_finish\n'
        "    task.result()\n"
        "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.02 GiB. GPU 0 has a total capacity of 23.69 GiB of which 900.00 MiB is free.\n"
        "The above exception was the direct cause of the following exception:\n"
        "vllm.engine.async_llm_engine.AsyncEngineDeadError: Task finished unexpectedly. This should never happen! Please open an issue on Github. See stack trace above for the actual cause.",
        Verdict.CRASH_UNDER_LOAD,
        "device_out_of_memory",
        "OutOfMemoryError: CUDA out of memory. Tried to allocate 1.02 GiB.",
        Phase.LOAD,
        {"tried_gib": 1.02, "device_memory_gib": 23.69},
    ),
)

REPORTS: tuple[Report, ...] = (*MEMORY, *SHAPES, *COMMUNICATION, *COMPILERS, *DEVICES)
