"""What the mock tells of itself, worded like vLLM: log lines, `/metrics`, `/server_info`. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sweeper.engine.mock.machine import Machine
from sweeper.engine.mock.scheduler import Scheduler


def start_lines(machine: Machine, parameters: Mapping[str, Any]) -> list[str]:
    """The log of a server that starts."""
    shown = {name: value for name, value in parameters.items() if "." not in name}
    head = "(EngineCore pid=1) INFO 01-01 00:00:00 [mock.py:1] "
    requests = machine.kv_tokens / machine.max_model_len
    return [
        f"(APIServer pid=1) INFO 01-01 00:00:00 [mock.py:1] non-default args: {shown!r}",
        f"{head}Model loading took {machine.weights_gib:.2f} GiB memory and 0.010000 seconds",
        f"{head}Available KV cache memory: {machine.kv_memory_gib:.2f} GiB",
        f"{head}GPU KV cache size: {machine.kv_tokens:,} tokens, Maximum concurrency for "
        f"{machine.max_model_len:,} tokens per request: {requests:.2f}x",
        f"{head}init engine (profile, create kv cache, warmup model) took {machine.start_s:.2f} s",
    ]


def failure_lines(cause: str) -> list[str]:
    """The log of a server that refuses to start."""
    head = "(EngineCore_DP0 pid=1) ERROR 01-01 00:00:00 [core.py:1] "
    return [
        f"{head}EngineCore failed to start.",
        f"{head}Traceback (most recent call last):",
        f'{head}  File "core.py", line 1, in run_engine_core',
        f"{head}    raise ValueError(",
        f"{head}ValueError: {cause}",
        "RuntimeError: Engine core initialization failed. See root cause above. "
        "Failed core proc(s): {}",
    ]


def metrics(scheduler: Scheduler, served_name: str) -> str:
    """Counters and gauges in Prometheus text form."""
    counters = scheduler.counters
    values: dict[str, tuple[str, float]] = {
        "vllm:prompt_tokens_total": ("counter", counters.prompt_tokens),
        "vllm:generation_tokens_total": ("counter", counters.generation_tokens),
        "vllm:num_preemptions_total": ("counter", counters.preemptions),
        "vllm:prefix_cache_queries_total": ("counter", counters.prefix_queries),
        "vllm:prefix_cache_hits_total": ("counter", counters.prefix_hits),
        "vllm:request_success_total": ("counter", counters.requests),
        "vllm:kv_cache_usage_perc": ("gauge", scheduler.kv_usage),
        "vllm:num_requests_running": ("gauge", len(scheduler.running)),
        "vllm:num_requests_waiting": ("gauge", len(scheduler.waiting)),
    }
    if scheduler.machine.drafts:
        values["vllm:spec_decode_num_draft_tokens_total"] = ("counter", counters.draft_tokens)
        values["vllm:spec_decode_num_accepted_tokens_total"] = (
            "counter",
            counters.accepted_tokens,
        )
    label = f'{{engine="0",model_name="{served_name}"}}'
    lines = []
    for name, (kind, value) in values.items():
        family = name.removesuffix("_total") if kind == "counter" else name
        lines += [f"# TYPE {family} {kind}", f"{name}{label} {float(value)}"]
    block_size, replicas = scheduler.machine.block_size, scheduler.machine.data_parallel
    lines += [
        f'vllm:cache_config_info{{block_size="{block_size}",engine="{replica}"}} 1.0'
        for replica in range(replicas)
    ]
    return "\n".join(lines) + "\n"


def server_info(machine: Machine) -> dict[str, Any]:
    """The effective configuration, in the sections of vLLM's answer."""
    speculative = None
    if machine.drafts:
        speculative = {
            "method": machine.speculative,
            "num_speculative_tokens": machine.draft_tokens,
        }
    return {
        "vllm_config": {
            "model_config": {
                "max_model_len": machine.max_model_len,
                "dtype": f"torch.{machine.dtype}",
                "quantization": None if machine.quantization == "none" else machine.quantization,
                "enforce_eager": machine.eager,
            },
            "cache_config": {
                "block_size": machine.block_size,
                "gpu_memory_utilization": machine.gpu_memory_utilization,
                "cache_dtype": machine.kv_cache_dtype,
                "enable_prefix_caching": machine.prefix_caching,
                "num_gpu_blocks": machine.kv_tokens // machine.block_size,
                "kv_cache_size_tokens": machine.kv_tokens,
            },
            "parallel_config": {
                "tensor_parallel_size": machine.tensor_parallel,
                "pipeline_parallel_size": machine.pipeline_parallel,
                "data_parallel_size": machine.data_parallel,
            },
            "scheduler_config": {
                "max_num_seqs": machine.max_num_seqs,
                "max_num_batched_tokens": machine.max_num_batched_tokens,
                "enable_chunked_prefill": machine.chunked_prefill,
            },
            "speculative_config": speculative,
        }
    }
