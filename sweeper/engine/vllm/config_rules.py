"""vLLM's error texts about what it refuses: parallelism, lengths, attention, compilation. Pure."""

from __future__ import annotations

import re

from sweeper.engine.rules import Learnt, Rule, groups, rule
from sweeper.verdicts import Verdict

INFEASIBLE = Verdict.INFEASIBLE_CONFIG

MAX_HEADS = 4096
_DEVICES = "lower tensor_parallel_size · pipeline_parallel_size to the devices of this machine"
_BACKEND = (
    "leave the attention backend to vLLM, or change what the reasons name (block_size, "
    "kv_cache_dtype, dtype)"
)


def _learn_heads(match: re.Match[str]) -> Learnt:
    """The number of heads, and the sizes that divide it."""
    learnt = groups(num_heads=int, tensor_parallel_size=int)(match)
    heads = learnt.get("num_heads", 0)
    if 0 < heads <= MAX_HEADS:
        learnt["allowed_tensor_parallel_sizes"] = [
            size for size in range(1, heads + 1) if heads % size == 0
        ]
    return learnt


PARALLELISM: tuple[Rule, ...] = (
    Rule(
        "heads_not_divisible",
        re.compile(
            r"Total number of attention heads \((?P<num_heads>\d+)\) must be divisible by tensor "
            r"parallel size \((?P<tensor_parallel_size>\d+)\)"
        ),
        INFEASIBLE,
        "choose a tensor_parallel_size that divides the number of attention heads",
        "0.32 and 0.33",
        _learn_heads,
    ),
    rule(
        "pipeline_unsupported",
        r"Pipeline parallelism is not supported for this model",
        INFEASIBLE,
        "leave pipeline_parallel_size at 1 for this model",
        "0.32 and 0.33",
    ),
    rule(
        "pipeline_partition",
        r"partitions\)=\d+ does not match (?:pp_size=(?P<pipeline_parallel_size>\d+)"
        r"|num_hidden_layers=(?P<num_hidden_layers>\d+))|Invalid partition string: ",
        INFEASIBLE,
        "let VLLM_PP_LAYER_PARTITION name one count of layers a stage, all layers together",
        "0.32",
        pipeline_parallel_size=int,
        num_hidden_layers=int,
    ),
    rule(
        "external_data_parallel",
        r"Non-MoE models do not support external data parallel"
        r"|Offline data parallel mode is not supported"
        r"|Invalid data-parallel launch options: (?P<problem>.{1,200})"
        r"|data_parallel_external_lb can only be set",
        INFEASIBLE,
        "leave data_parallel_size at 1, or start independent servers behind a balancer",
        "0.32 and 0.33",
        problem=str,
    ),
    rule(
        "data_parallel_local",
        r"data_parallel_size_local \((?P<data_parallel_size_local>\d+)\) must be <= "
        r"data_parallel_size \((?P<data_parallel_size>\d+)\)",
        INFEASIBLE,
        "lower data_parallel_size_local or raise data_parallel_size",
        "0.32 and 0.33",
        data_parallel_size_local=int,
        data_parallel_size=int,
    ),
    rule(
        "expert_parallel",
        r"Number of experts in the model must be greater than 0 when expert parallelism is enabled"
        r"|enable_expert_parallel must be True to use EPLB|EPLB requires tensor"
        r"|EPLB currently only supports even distribution of experts"
        r"|num_redundant_experts is set to \d+ but EPLB is not enabled"
        r"|Redundant experts are only supported with EPLB",
        INFEASIBLE,
        "expert parallelism needs a mixture of experts spread evenly: leave it out for this model",
        "0.32",
    ),
    rule(
        "context_parallel",
        r"[`(]--decode-context-parallel-size\b|Decode [Cc]ontext [Pp]arallelism\b"
        r"|does not support decode context parallelism"
        r"|tp_size=\d+ must be divisible by dcp_size=(?P<dcp_size>\d+)",
        INFEASIBLE,
        "leave decode_context_parallel_size at 1; above it, tensor_parallel_size must exceed the "
        "model's KV heads and be divisible by it",
        "0.32",
        dcp_size=int,
    ),
    rule(
        "too_few_devices",
        r"World size \((?P<world_size>\d+)\) is larger than the number of available GPUs "
        r"\((?P<devices>\d+)\)|invalid device ordinal"
        r"|local rank \d+ is out of bounds for (?P<seen>\d+) devices"
        r"|local_world_size \((?P<local_world_size>\d+)\) exceeds assigned_physical_gpu_ids"
        r"|--device-ids index \d+ is out of range",
        INFEASIBLE,
        _DEVICES,
        "0.32",
        world_size=int,
        devices=int,
        seen=int,
        local_world_size=int,
    ),
    rule(
        "too_few_numa_nodes",
        r"Not enough allowed NUMA nodes to bind threads of (?P<workers>\d+)",
        INFEASIBLE,
        "leave the parallel sizes at 1 on this processor, or bind threads with "
        "env.VLLM_CPU_OMP_THREADS_BIND",
        "0.32, CPU",
        workers=int,
    ),
    rule(
        "executor_backend",
        r"(?:Unrecognized|Unknown) distributed executor backend:? (?P<executor>[\w.]{1,100})"
        r"|nnodes > 1 can only be set when distributed executor backend",
        INFEASIBLE,
        "use distributed_executor_backend=mp, ray or uni",
        "0.32",
        executor=str,
    ),
)

SCHEDULER: tuple[Rule, ...] = (
    rule(
        "batched_tokens_below_seqs",
        r"max_num_batched_tokens \((?P<max_num_batched_tokens>\d+)\) must be greater than or "
        r"equal to max_num_seqs \((?P<max_num_seqs>\d+)\)",
        INFEASIBLE,
        "raise max_num_batched_tokens to at least max_num_seqs",
        "0.32 and 0.33",
        max_num_batched_tokens=int,
        max_num_seqs=int,
    ),
    rule(
        "batched_tokens_below_length",
        r"max_num_batched_tokens \((?P<max_num_batched_tokens>\d+)\) is smaller than max_model_len "
        r"\((?P<max_model_len>\d+)\)",
        INFEASIBLE,
        "without chunked prefill a whole prompt must fit one batch: raise max_num_batched_tokens, "
        "lower max_model_len, or leave chunked prefill on",
        "0.32 and 0.33",
        max_num_batched_tokens=int,
        max_model_len=int,
    ),
    rule(
        "active_seqs_above_seqs",
        r"max_num_active_seqs \((?P<max_num_active_seqs>\d+)\) cannot be greater than "
        r"max_num_seqs \((?P<max_num_seqs>\d+)\)",
        INFEASIBLE,
        "lower max_num_active_seqs to max_num_seqs",
        "0.32",
        max_num_active_seqs=int,
        max_num_seqs=int,
    ),
    rule(
        "prefill_threshold",
        r"long_prefill_token_threshold \((?P<long_prefill_token_threshold>\d+)\) cannot be greater "
        r"than the max_model_len \((?P<max_model_len>\d+)\)",
        INFEASIBLE,
        "lower long_prefill_token_threshold to max_model_len",
        "0.32",
        long_prefill_token_threshold=int,
        max_model_len=int,
    ),
    rule(
        "batched_tokens_below_item",
        r"max_tokens_per_mm_item \((?P<max_tokens_per_mm_item>\d+)\) is larger than "
        r"max_num_batched_tokens \((?P<max_num_batched_tokens>\d+)\)",
        INFEASIBLE,
        "raise max_num_batched_tokens to the tokens of the largest image",
        "0.32",
        max_tokens_per_mm_item=int,
        max_num_batched_tokens=int,
    ),
    rule(
        "longer_than_model",
        r"User-specified max_model_len \((?P<max_model_len>\d+)\) is greater than the derived "
        r"max_model_len \((?:(?P<length_key>\w{1,60})="
        r"(?P<max_position_embeddings>\d+(?:\.\d+)?))?",
        INFEASIBLE,
        "lower max_model_len to what the model was made for; forcing it gives broken output",
        "0.32 and 0.33",
        max_model_len=int,
        length_key=str,
        max_position_embeddings=int,
    ),
    rule(
        "async_scheduling",
        r"async scheduling is only supported with"
        r"|[Aa]sync scheduling is not (?:compatible|supported)|does not support async scheduling",
        INFEASIBLE,
        "leave async_scheduling to vLLM with this speculative method or executor",
        "0.32",
    ),
    rule(
        "prefix_match_unit",
        r"Invalid prefix_match_unit=(?P<prefix_match_unit>\d+)"
        r"|block_size must be divisible by hash_block_size",
        INFEASIBLE,
        "leave prefix_match_unit and block_size to vLLM for this model",
        "0.32",
        prefix_match_unit=int,
    ),
)

ATTENTION: tuple[Rule, ...] = (
    rule(
        "attention_backend",
        r"Selected backend (?P<backend>\S{1,80}) is not valid for this configuration\. Reason: "
        r"(?P<reason>.{1,300})"
        r"|No valid (?:attention|CPU MLA prefill|MLA prefill) backend found"
        r"(?:.{0,2000}?Reasons: (?P<reasons>.{1,400}))?"
        r"|Invalid attention backend for"
        r"|Attention backend '(?P<removed>\w{1,60})' has been removed",
        INFEASIBLE,
        _BACKEND,
        "0.32",
        backend=str,
        reason=str,
        reasons=str,
        removed=str,
    ),
    rule(
        "attention_package_missing",
        r"[Ff]lash[ -]?(?:[Ii]nfer|[Aa]ttn|[Aa]ttention)[\w -]{0,60} not "
        r"(?:installed|available|found)\b",
        INFEASIBLE,
        "the package of this attention backend is not installed: install it, or leave the backend "
        "to vLLM",
        "0.32",
    ),
    rule(
        "block_size",
        r"share no supported KV cache block size"
        r"|KV cache block size (?P<block_size>\d+) is not supported by attention backend"
        r"|requires --block-size in (?P<allowed_block_sizes>[(\[{][\d, ]{1,80})",
        INFEASIBLE,
        "leave block_size to vLLM, or use a multiple that the backend takes",
        "0.32",
        block_size=int,
        allowed_block_sizes=str,
    ),
    rule(
        "device_too_old_for_dtype",
        r"Bfloat16 is only supported on GPUs with compute capability of at least "
        r"(?P<min_capability>\d{1,2}\.\d)\. Your .{1,80} GPU has compute capability "
        r"(?P<capability>\d{1,2}\.\d)",
        INFEASIBLE,
        "use dtype=half on this device",
        "0.32",
        min_capability=float,
        capability=float,
    ),
)

COMPILATION: tuple[Rule, ...] = (
    rule(
        "graph_mode",
        r"CUDAGraphMode\.(?P<cudagraph_mode>\w{1,40}) is not supported with (?P<backend>\S{1,80})"
        r"|Compilation mode should be CompilationMode\.VLLM_COMPILE when cudagraph_mode"
        r"|piecewise CUDA graphs \(cudagraph_mode=(?P<mode>\w{1,40})\) unavailable"
        r"|Invalid compilation mode: (?P<compilation_mode>\S{1,40})",
        INFEASIBLE,
        "leave cudagraph_mode and the compilation mode to vLLM, or set enforce_eager",
        "0.32",
        cudagraph_mode=str,
        backend=str,
        mode=str,
        compilation_mode=str,
    ),
    rule(
        "graph_sizes",
        r"customized max_cudagraph_capture_size\(=(?P<max_cudagraph_capture_size>\d+)\) should be "
        r"consistent with the max value of cudagraph_capture_sizes"
        r"|cudagraph_capture_sizes should contain at least one element"
        r"|Maximum cudagraph size should be greater than or equal to 1",
        INFEASIBLE,
        "leave out one of max_cudagraph_capture_size and cudagraph_capture_sizes",
        "0.32",
        max_cudagraph_capture_size=int,
    ),
    rule(
        "model_runner",
        r"Model Runner V(?P<runner>[12]) (?:requires|does not (?:yet )?support):? "
        r"(?P<needs>.{1,200})",
        INFEASIBLE,
        "leave VLLM_USE_V2_MODEL_RUNNER unset, or leave out what the message names",
        "0.32",
        runner=int,
        needs=str,
    ),
)
