"""vLLM's error texts about what it refuses: parallelism, lengths, quantization, drafts. Pure."""

from __future__ import annotations

from sweeper.engine.diagnosis import rule
from sweeper.verdicts import Verdict

INFEASIBLE = Verdict.INFEASIBLE_CONFIG
INFRA = Verdict.INFRA

_NGRAM = "set prompt_lookup_max, and prompt_lookup_min no larger than it"
_SPEC_SLOTS = "raise max_num_batched_tokens, or lower num_speculative_tokens or max_num_seqs"
_SHARD = "lower tensor_parallel_size, or choose a checkpoint with another group size"

PARALLELISM = (
    rule(
        "heads_not_divisible",
        r"Total number of attention heads \((?P<num_heads>\d+)\) must be divisible by tensor "
        r"parallel size \((?P<tensor_parallel_size>\d+)\)",
        INFEASIBLE,
        "choose a tensor_parallel_size that divides the number of attention heads",
        num_heads=int,
        tensor_parallel_size=int,
    ),
    rule(
        "pipeline_unsupported",
        r"Pipeline parallelism is not supported for this model",
        INFEASIBLE,
        "leave pipeline_parallel_size at 1 for this model",
    ),
    rule(
        "external_data_parallel",
        r"Non-MoE models do not support external data parallel|"
        r"Offline data parallel mode is not supported",
        INFEASIBLE,
        "leave data_parallel_size at 1, or start independent servers behind a balancer",
        "0.30 and later",
    ),
    rule(
        "data_parallel_local",
        r"data_parallel_size_local \((?P<data_parallel_size_local>\d+)\) must be <= "
        r"data_parallel_size \((?P<data_parallel_size>\d+)\)",
        INFEASIBLE,
        "lower data_parallel_size_local or raise data_parallel_size",
        data_parallel_size_local=int,
        data_parallel_size=int,
    ),
    rule(
        "too_few_devices",
        r"World size \((?P<world_size>\d+)\) is larger than the number of available GPUs "
        r"\((?P<devices>\d+)\)",
        INFEASIBLE,
        "lower tensor_parallel_size · pipeline_parallel_size to the devices of this machine",
        world_size=int,
        devices=int,
    ),
    rule(
        "too_few_numa_nodes",
        r"Not enough allowed NUMA nodes to bind threads of (?P<workers>\d+)",
        INFEASIBLE,
        "leave the parallel sizes at 1 on this processor, or bind threads with "
        "env.VLLM_CPU_OMP_THREADS_BIND",
        "0.30 and later, CPU",
        workers=int,
    ),
    rule(
        "nccl",
        r"NCCL error:? (?P<nccl_error>[^(]*[^( ])",
        INFRA,
        "communication between the devices failed, not the deployment: run with "
        "env.NCCL_DEBUG=INFO, and leave tensor_parallel_size at 1 if it persists",
        nccl_error=str,
    ),
)

SCHEDULER = (
    rule(
        "batched_tokens_below_seqs",
        r"max_num_batched_tokens \((?P<max_num_batched_tokens>\d+)\) must be greater than or "
        r"equal to max_num_seqs \((?P<max_num_seqs>\d+)\)",
        INFEASIBLE,
        "raise max_num_batched_tokens to at least max_num_seqs",
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
        max_num_batched_tokens=int,
        max_model_len=int,
    ),
    rule(
        "longer_than_model",
        r"User-specified max_model_len \((?P<max_model_len>\d+)\) is greater than the derived "
        r"max_model_len \((?:max_position_embeddings=(?P<max_position_embeddings>\d+))?",
        INFEASIBLE,
        "lower max_model_len to what the model was made for; forcing it gives broken output",
        max_model_len=int,
        max_position_embeddings=int,
    ),
)

QUANTIZATION = (
    rule(
        "dtype_for_quantization",
        r"(?:torch\.)?(?P<dtype>\w+) is not supported for quantization method "
        r"(?P<quantization>[\w-]+)",
        INFEASIBLE,
        "use one of the precisions that the message names, or another quantization",
        dtype=str,
        quantization=str,
    ),
    rule(
        "device_too_old_for_quantization",
        r"The quantization method (?P<quantization>\S+) is not supported for the current GPU\. "
        r"Minimum capability: (?P<min_capability>\d+)\. Current capability: (?P<capability>\d+)",
        INFEASIBLE,
        "leave this quantization out on this device",
        quantization=str,
        min_capability=int,
        capability=int,
    ),
    rule(
        "quantization_mismatch",
        r"Quantization method specified in the model config \((?P<checkpoint>\S+)\) does not "
        r"match the quantization method specified in the `quantization` argument "
        r"\((?P<quantization>\S+)\)",
        INFEASIBLE,
        "use the checkpoint's own quantization, or a checkpoint made for the one asked for",
        checkpoint=str,
        quantization=str,
    ),
    rule(
        "unknown_quantization",
        r"Unknown quantization method: (?P<quantization>[\w-]+)",
        INFEASIBLE,
        "the installed version does not have this quantization; use one that the message names",
        quantization=str,
    ),
    rule(
        "no_online_quantization",
        r"The `(?P<quantization>\w+)` quantization method no longer supports online quantization"
        r"(?:.*`--quantization (?P<replacement>\w+)`)?",
        INFEASIBLE,
        "use the replacement that the message names, or a checkpoint quantized beforehand",
        "0.32 and later",
        quantization=str,
        replacement=str,
    ),
    rule(
        "shard_not_divisible",
        r"Weight (?:in|out)put_size_per_partition ?= ?(?P<partition>\d+) is not divisible by\s+"
        r"(?:min_thread_[kn]|group_size) ?= ?(?P<divisor>\d+)",
        INFEASIBLE,
        _SHARD,
        partition=int,
        divisor=int,
    ),
    rule(
        "kernel_shape", r"size_[kn] must (?:be )?divisible by BLOCK_SIZE_[KN]", INFEASIBLE, _SHARD
    ),
    rule(
        "fp8_on_old_device",
        r"type fp8e4nv not supported in this architecture"
        r"|FP8 KV cache is not supported by the (?P<backend>\w+) attention backend"
        r"(?:.*Re-run with --kv-cache-dtype (?P<suggested_kv_cache_dtype>\w+))?",
        INFEASIBLE,
        "this device has no native FP8: leave kv_cache_dtype and quantization without fp8",
        backend=str,
        suggested_kv_cache_dtype=str,
    ),
    rule(
        "fp8_kv_cache_on_cpu",
        r"FP8 KV cache on CPU requires|FP8 KV cache requires head_size divisible",
        INFEASIBLE,
        "this processor has no kernel for it: leave kv_cache_dtype at auto",
        "0.32, CPU",
    ),
    rule(
        "not_built_for_cpu",
        r"_C::(?P<kernel>\w+)\(\) expected at most 0 argument",
        INFEASIBLE,
        "this build of vLLM lacks the kernel: leave the quantization out on this platform",
        "CPU builds",
        kernel=str,
    ),
    rule(
        "checkpoint_unsupported",
        r"activation ordering \(actorder=.*no longer supported"
        r"|Sparsity support has been removed from compressed-tensors"
        r"|Unsupported quantization config: bits=",
        INFEASIBLE,
        "the installed version cannot read this checkpoint: use one made for it",
        "0.33",
    ),
)

SPECULATIVE = (
    rule(
        "draft_vocabulary",
        r"Target and draft model should have the same vocabulary size\. Target model "
        r"vocab_size=(?P<target_vocab_size>\d+)\. Draft model vocab_size=(?P<draft_vocab_size>\d+)",
        INFEASIBLE,
        "use a draft model with the target's vocabulary, or speculative=ngram",
        target_vocab_size=int,
        draft_vocab_size=int,
    ),
    rule(
        "draft_tokens_not_divisible",
        r"num_speculative_tokens: ?(?P<num_speculative_tokens>\d+) must be divisible by "
        r"n_predict=(?P<n_predict>\d+)",
        INFEASIBLE,
        "choose a multiple of n_predict for num_speculative_tokens",
        num_speculative_tokens=int,
        n_predict=int,
    ),
    rule(
        "draft_incomplete",
        r"A speculative model was provided, but `num_speculative_tokens` was not provided"
        r"|num_speculative_tokens was provided but without speculative model"
        r"|Expected num_speculative_tokens to be greater than zero",
        INFEASIBLE,
        "give speculative, its model where it needs one, and num_speculative_tokens ≥ 1 together",
    ),
    rule(
        "prompt_lookup_order",
        r"prompt_lookup_min=(?P<prompt_lookup_min>\d+) must be <= "
        r"prompt_lookup_max=(?P<prompt_lookup_max>\d+)",
        INFEASIBLE,
        _NGRAM,
        prompt_lookup_min=int,
        prompt_lookup_max=int,
    ),
    rule(
        "prompt_lookup_missing",
        r"Either prompt_lookup_max or prompt_lookup_min must be provided",
        INFEASIBLE,
        _NGRAM,
    ),
    rule(
        "no_tokens_left_to_schedule",
        r"max_num_scheduled_tokens is set to (?P<max_num_scheduled_tokens>-?\d+) based on the "
        r"speculative decoding settings",
        INFEASIBLE,
        _SPEC_SLOTS,
        max_num_scheduled_tokens=int,
    ),
    rule(
        "no_slots_left_to_schedule",
        r"does not have enough slots to schedule a token and support the speculative decoding "
        r"settings(?:\. Got max_num_batched_tokens=(?P<max_num_batched_tokens>\d+) and "
        r"num_lookahead_tokens=(?P<num_lookahead_tokens>\d+))?",
        INFEASIBLE,
        _SPEC_SLOTS,
        max_num_batched_tokens=int,
        num_lookahead_tokens=int,
    ),
    rule(
        "no_graph_sizes_left",
        r"No valid cudagraph sizes after rounding to multiple of (?P<multiple>\d+)",
        INFEASIBLE,
        "raise max_num_seqs above num_speculative_tokens, or run eager",
        multiple=int,
    ),
)
