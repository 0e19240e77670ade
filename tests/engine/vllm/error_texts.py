"""Texts that end a launch, each as one process writes it, with what must be understood of it.

They are quoted from the engine's source, and in the shape in which users report them. A text may
have several lines: the first that says something is the cause.
"""

# ruff: noqa: E501 - texts are quoted as they stand

from __future__ import annotations

from typing import Any, NamedTuple

from sweeper.verdicts import Verdict

CAPACITY, INFEASIBLE, INFRA = Verdict.CAPACITY, Verdict.INFEASIBLE_CONFIG, Verdict.INFRA
TIMEOUT = Verdict.STARTUP_TIMEOUT
MACHINE = {"scope": "machine"}


class Text(NamedTuple):
    """One text.

    Attributes:
        rule: the rule that must know it.
        said: as it is written.
        verdict: at start.
        learnt: at least this.
    """

    rule: str
    said: str
    verdict: Verdict
    learnt: dict[str, Any] = {}  # noqa: RUF012 - never changed


MEMORY = (
    Text(
        "no_kv_memory",
        "ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when initializing the engine.",
        CAPACITY,
    ),
    Text(
        "kv_too_small_for_max_model_len",
        "ValueError: To serve at least one request with the model's max seq len (131072), (16.00 GiB KV cache is needed, which is larger than the available KV cache memory (9.84 GiB). Based on the available memory, the estimated maximum model length is 80592. Try increasing `gpu_memory_utilization` (which also controls CPU memory on the CPU backend) or decreasing `max_model_len` when initializing the engine.",
        CAPACITY,
        {
            "max_model_len": 131072,
            "needed_kv_gib": 16.0,
            "kv_cache_memory_gib": 9.84,
            "estimated_max_model_len": 80592,
        },
    ),
    Text(
        "kv_too_small_for_max_model_len",
        "ValueError: The model's max seq len (8192) is larger than the maximum number of tokens that can be stored in KV cache (5328). Try increasing `gpu_memory_utilization` or decreasing `max_model_len` when initializing the engine.",
        CAPACITY,
        {"max_model_len": 8192, "kv_cache_tokens": 5328, "estimated_max_model_len": 5328},
    ),
    Text(
        "kv_too_small_for_max_model_len",
        "ValueError: Cannot auto-fit max_model_len: not enough GPU memory available to serve even a single token. Try increasing `gpu_memory_utilization`.",
        CAPACITY,
    ),
    Text(
        "too_few_state_blocks",
        "ValueError: max_num_seqs (1024) exceeds available Mamba cache blocks (311). Each decode sequence requires one Mamba cache block, so CUDA graph capture cannot proceed. Please lower max_num_seqs to at most 311 or increase gpu_memory_utilization.",
        CAPACITY,
        {"max_num_seqs": 1024, "highest_max_num_seqs": 311},
    ),
    Text(
        "device_memory_taken",
        "ValueError: Free memory on device cuda:0 (20.1/79.2 GiB) on startup is less than desired GPU memory utilization (0.92, 72.9 GiB). Decrease GPU memory utilization or reduce GPU memory used by other processes.",
        INFRA,
        {
            "free_gib": 20.1,
            "total_gib": 79.2,
            "asked_gib": 72.9,
            "gpu_memory_utilization": 0.92,
            "max_gpu_memory_utilization": 0.2537,
            "device": "cuda:0",
        },
    ),
    Text(
        "device_memory_taken",
        "ValueError: Free memory on device (7.06/7.99 GiB) on startup is less than desired GPU memory utilization (0.92, 7.35 GiB). Decrease GPU memory utilization or reduce GPU memory used by other processes.",
        CAPACITY,
        {"max_gpu_memory_utilization": 0.8836},
    ),
    Text(
        "device_memory_taken",
        "ValueError: Free memory on device cuda:1 (11.20/79.10 GiB) on startup is less than the engine's budget after excluding external process's weights (0.9, 55.00 GiB). Decrease GPU memory utilization or reduce GPU memory used by other processes.",
        INFRA,
        {"device": "cuda:1", "asked_gib": 55.0},
    ),
    Text(
        "device_memory_changed",
        "AssertionError: Error in memory profiling. Initial free memory 41.22 GiB, current free memory 78.9 GiB. This happens when other processes sharing the same container release GPU memory while vLLM is profiling during initialization.",
        INFRA,
        {"free_gib": 41.22, "free_later_gib": 78.9},
    ),
    Text(
        "host_share_not_free",
        "ValueError: Available memory on node 0 (9.1/15.6 GiB) on startup is less than desired CPU memory utilization (0.9, 14.04 GiB). On the CPU backend, the `--gpu-memory-utilization` flag controls the fraction of CPU memory reserved (despite its name).",
        CAPACITY,
        {"free_gib": 9.1, "asked_gib": 14.04},
    ),
    Text(
        "host_share_not_free",
        "ValueError: Available memory on node 0 (60.10/64.00 GiB) on startup is less than desired CPU memory utilization (0.95, 60.80 GiB). On the CPU backend, the `--gpu-memory-utilization` flag controls the fraction of CPU memory reserved (despite its name).",
        CAPACITY,
        {"max_gpu_memory_utilization": 0.939},
    ),
    Text(
        "host_share_not_free",
        # An idle machine of this size has that much: others hold the rest.
        "ValueError: Available memory on node 0 (5.56/20.59 GiB) on startup is less than desired CPU memory utilization (0.3, 6.18 GiB). On the CPU backend, the `--gpu-memory-utilization` flag controls the fraction of CPU memory reserved (despite its name).",
        INFRA,
        {"asked_gib": 6.18},
    ),
    Text(
        "no_kv_memory",
        "ValueError: Available memory on node 0 (16.13/18.09 GiB) on kv cache allocation is less than requested memory for kv (-0.65/0.36 GiB). Reduce CPU memory used by other processes.",
        CAPACITY,
        {"used_gib": 1.01, "asked_gib": 0.36, "kv_cache_memory_gib": -0.65},
    ),
    Text(
        "host_memory_taken",
        "ValueError: Available memory on node 0 (2.13/18.09 GiB) on kv cache allocation is less than requested memory for kv (5.10/6.10 GiB). Reduce CPU memory used by other processes.",
        INFRA,
        {"used_gib": 1.0},
    ),
    Text(
        "kv_cache_larger_than_free",
        "ValueError: Available memory on node 1 (12.00/15.60 GiB) on kv cache allocation is less than requested memory for kv (14.00 GiB). Decrease --kv-cache-memory-bytes, VLLM_CPU_KVCACHE_SPACE, or reduce CPU memory used by other processes.",
        CAPACITY,
        {"free_gib": 12.0, "asked_gib": 14.0},
    ),
    Text(
        "warm_up_out_of_memory",
        "RuntimeError: CUDA out of memory occurred when warming up sampler with 1024 dummy requests. Please try lowering `max_num_seqs` or `gpu_memory_utilization` when initializing the engine.",
        CAPACITY,
        {"max_num_seqs": 1024},
    ),
    Text(
        "device_out_of_memory",
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 136.00 MiB. GPU 0 has a total capacity of 22.36 GiB of which 120.88 MiB is free. Including non-PyTorch memory, this process has 22.20 GiB memory in use. Of the allocated memory 21.30 GiB is allocated by PyTorch, and 12.81 MiB is reserved by PyTorch but unallocated.",
        CAPACITY,
        {"tried_gib": 0.1328, "device_memory_gib": 22.36, "own_gib": 22.2},
    ),
    Text(
        "device_out_of_memory",
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.20 GiB of which 1.10 GiB is free. Process 4711 has 40.00 GiB memory in use. Including non-PyTorch memory, this process has 38.00 GiB memory in use.",
        INFRA,
        {"foreign_gib": 40.0, "tried_gib": 2.0},
    ),
    Text(
        "device_out_of_memory",
        # In a container the own process is one of the others.
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 80.00 MiB. GPU 0 has a total capacity of 139.72 GiB of which 60.69 MiB is free. Process 691170 has 139.65 GiB memory in use. Of the allocated memory 139.21 GiB is allocated by PyTorch",
        CAPACITY,
    ),
    Text("device_out_of_memory", "RuntimeError: CUDA error: out of memory", CAPACITY),
    Text(
        "device_out_of_memory",
        "node1:77:77 [0] NCCL WARN Cuda failure 2 'out of memory'",
        CAPACITY,
    ),
    Text(
        "device_out_of_memory",
        "RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`",
        CAPACITY,
    ),
)

PARALLELISM = (
    Text(
        "heads_not_divisible",
        "  Value error, Total number of attention heads (28) must be divisible by tensor parallel size (8). [type=value_error, input_value=ArgsKwargs((), {'model_co...}), input_type=ArgsKwargs]",
        INFEASIBLE,
        {
            "num_heads": 28,
            "tensor_parallel_size": 8,
            "allowed_tensor_parallel_sizes": [1, 2, 4, 7, 14, 28],
        },
    ),
    Text(
        "pipeline_unsupported",
        "NotImplementedError: Pipeline parallelism is not supported for this model. Supported models implement the `SupportsPP` interface.",
        INFEASIBLE,
    ),
    Text(
        "pipeline_partition",
        "ValueError: len(partitions)=2 does not match pp_size=3.",
        INFEASIBLE,
        {"pipeline_parallel_size": 3},
    ),
    Text(
        "external_data_parallel",
        "  Value error, Non-MoE models do not support external data parallel mode. For external load balancing, launch independent vLLM instances without --data-parallel-* arguments. [type=value_error, input_value=1, input_type=int]",
        INFEASIBLE,
    ),
    Text(
        "external_data_parallel",
        "ValueError: Offline data parallel mode is not supported/useful for dense models.",
        INFEASIBLE,
    ),
    Text(
        "external_data_parallel",
        "ValueError: Invalid data-parallel launch options: `--nnodes 3` must evenly divide the total world size (8).",
        INFEASIBLE,
    ),
    Text(
        "data_parallel_local",
        "ValueError: data_parallel_size_local (4) must be <= data_parallel_size (2)",
        INFEASIBLE,
        {"data_parallel_size_local": 4, "data_parallel_size": 2},
    ),
    Text(
        "expert_parallel",
        "ValueError: Number of experts in the model must be greater than 0 when expert parallelism is enabled.",
        INFEASIBLE,
    ),
    Text(
        "expert_parallel",
        "ValueError: EPLB currently only supports even distribution of experts across ranks. Got 60 experts and 8 EP ranks.",
        INFEASIBLE,
    ),
    Text(
        "context_parallel",
        "ValueError: tp_size=4 must be divisible by dcp_size=3.",
        INFEASIBLE,
        {"dcp_size": 3},
    ),
    Text(
        "context_parallel",
        "ValueError: Decode context parallelism for GQA/MQA requires `--tensor-parallel-size` (4) to be greater than the model's total number of KV heads (8). Increase `--tensor-parallel-size` or set `--decode-context-parallel-size 1`.",
        INFEASIBLE,
    ),
    Text(
        "too_few_devices",
        "  Value error, World size (8) is larger than the number of available GPUs (4) in this node. If this is intentional and you are using:",
        INFEASIBLE,
        {"world_size": 8, "devices": 4},
    ),
    Text("too_few_devices", "RuntimeError: CUDA error: invalid device ordinal", INFEASIBLE),
    Text(
        "too_few_devices",
        "AssertionError: DP adjusted local rank 3 is out of bounds for 2 devices.",
        INFEASIBLE,
        {"seen": 2},
    ),
    Text(
        "too_few_numa_nodes",
        "AssertionError: Not enough allowed NUMA nodes to bind threads of 2 local CPUWorkers. Allowed NUMA nodes are [0]. Please try to bind threads manually or decrease DP/TP/PP.",
        INFEASIBLE,
        {"workers": 2},
    ),
    Text(
        "executor_backend",
        "ValueError: Unrecognized distributed executor backend rey. Supported values are 'ray', 'mp' 'uni', 'external_launcher',  custom Executor subclass or its import path.",
        INFEASIBLE,
        {"executor": "rey."},
    ),
)

SCHEDULER = (
    Text(
        "batched_tokens_below_seqs",
        "  Value error, max_num_batched_tokens (128) must be greater than or equal to max_num_seqs (256). [type=value_error, input_value=1, input_type=int]",
        INFEASIBLE,
        {"max_num_batched_tokens": 128, "max_num_seqs": 256},
    ),
    Text(
        "batched_tokens_below_length",
        "  Value error, max_num_batched_tokens (2048) is smaller than max_model_len (32768). This effectively limits the maximum sequence length to max_num_batched_tokens and makes vLLM reject longer sequences.",
        INFEASIBLE,
        {"max_num_batched_tokens": 2048, "max_model_len": 32768},
    ),
    Text(
        "active_seqs_above_seqs",
        "ValueError: max_num_active_seqs (512) cannot be greater than max_num_seqs (256).",
        INFEASIBLE,
        {"max_num_active_seqs": 512, "max_num_seqs": 256},
    ),
    Text(
        "prefill_threshold",
        "ValueError: long_prefill_token_threshold (9000) cannot be greater than the max_model_len (8192).",
        INFEASIBLE,
        {"long_prefill_token_threshold": 9000, "max_model_len": 8192},
    ),
    Text(
        "batched_tokens_below_item",
        "ValueError: Chunked MM input disabled but max_tokens_per_mm_item (16384) is larger than max_num_batched_tokens (8192). Please increase max_num_batched_tokens.",
        INFEASIBLE,
        {"max_tokens_per_mm_item": 16384, "max_num_batched_tokens": 8192},
    ),
    Text(
        "longer_than_model",
        "  Value error, User-specified max_model_len (65536) is greater than the derived max_model_len (max_position_embeddings=32768.0 or model_max_length=None in model's config.json). To allow overriding this maximum, set the env var VLLM_ALLOW_LONG_MAX_MODEL_LEN=1.",
        INFEASIBLE,
        {"max_model_len": 65536, "max_position_embeddings": 32768},
    ),
    Text(
        "async_scheduling",
        "ValueError: Currently, async scheduling is only supported with EAGLE/MTP/Draft Model/NGram GPU/DSpark/DFlash kind of speculative decoding",
        INFEASIBLE,
    ),
    Text(
        "async_scheduling", "ValueError: `ray` does not support async scheduling yet.", INFEASIBLE
    ),
    Text(
        "prefix_match_unit",
        "ValueError: Invalid prefix_match_unit=48; with a single KV cache group, prefix-cache hits land on the block size (16). Unset it or set it to 16.",
        INFEASIBLE,
        {"prefix_match_unit": 48},
    ),
)

QUANTIZATION = (
    Text(
        "dtype_for_quantization",
        "ValueError: torch.bfloat16 is not supported for quantization method awq. Supported dtypes: [torch.float16]",
        INFEASIBLE,
        {"dtype": "bfloat16", "quantization": "awq", "supported_dtypes": "torch.float16"},
    ),
    Text(
        "device_too_old_for_quantization",
        "ValueError: The quantization method fp8 is not supported for the current GPU. Minimum capability: 75. Current capability: 70.",
        INFEASIBLE,
        {"quantization": "fp8", "min_capability": 75, "capability": 70},
    ),
    Text(
        "device_too_old_for_quantization",
        "ValueError: The quantization method moe_wna16 + awq is not supported for the current GPU. Minimum capability: 75. Current capability: 61.",
        INFEASIBLE,
        {"quantization": "moe_wna16 + awq"},
    ),
    Text(
        "quantization_not_on_platform",
        "ValueError: modelopt quantization is currently not supported in cpu.",
        INFEASIBLE,
        {"quantization": "modelopt", "platform": "cpu"},
    ),
    Text(
        "quantization_mismatch",
        "  Value error, Quantization method specified in the model config (gptq) does not match the quantization method specified in the `quantization` argument (awq). [type=value_error, input_value=1, input_type=int]",
        INFEASIBLE,
        {"checkpoint": "gptq", "quantization": "awq"},
    ),
    Text(
        "unknown_quantization",
        "ValueError: Unknown quantization method: bitsandbytes. Must be one of ['awq', 'fp8'].",
        INFEASIBLE,
        {"quantization": "bitsandbytes"},
    ),
    Text("unknown_quantization", "ValueError: Invalid quantization method: gguf", INFEASIBLE),
    Text(
        "no_online_quantization",
        "ValueError: The `fp8` quantization method no longer supports online quantization. Please use `--quantization fp8_per_tensor` instead. See https://docs.vllm.ai/en/stable/features/quantization/online/",
        INFEASIBLE,
        {"quantization": "fp8", "replacement": "fp8_per_tensor"},
    ),
    Text(
        "quantization_config_missing",
        "ValueError: Cannot find the config file for awq",
        INFEASIBLE,
        {"quantization": "awq"},
    ),
    Text(
        "no_quantized_kernel",
        "ValueError: Failed to find a kernel that can implement the WNA16 linear layer. Reasons: ",
        INFEASIBLE,
        {"layer": "WNA16"},
    ),
    Text(
        "no_quantized_kernel",
        "NotImplementedError: No compressed-tensors compatible scheme was found for layer_name='model.layers.0.mlp.down_proj', ",
        INFEASIBLE,
    ),
    Text(
        "not_built_for_cpu",
        "RuntimeError: _C::static_scaled_fp8_quant() expected at most 0 argument(s) but received 4 argument(s).",
        INFEASIBLE,
        {"kernel": "static_scaled_fp8_quant"},
    ),
    Text(
        "not_built_for_cpu",
        "AttributeError: '_OpNamespace' '_C' object has no attribute 'gptq_marlin_repack'",
        INFEASIBLE,
        {"operator": "gptq_marlin_repack"},
    ),
    Text(
        "checkpoint_unsupported",
        "ValueError: Compressed-tensors group/dynamic activation ordering (actorder='group') is no longer supported. Use a checkpoint with static/weight activation ordering or without activation ordering.",
        INFEASIBLE,
    ),
    Text(
        "checkpoint_unsupported",
        "ValueError: Unsupported quantization config: bits=3, sym=True",
        INFEASIBLE,
        {"bits": 3},
    ),
    Text(
        "shard_not_divisible",
        "ValueError: Weight input_size_per_partition = 14784 is not divisible by min_thread_k = 128. Consider reducing tensor_parallel_size or running with --quantization gptq.",
        INFEASIBLE,
        {"partition": 14784, "divisor": 128},
    ),
    Text(
        "shard_not_divisible",
        "ValueError: Weight output_size_per_partition = 1352 is not divisible by  min_thread_n = 64. Consider reducing tensor_parallel_size or running with --quantization gptq.",
        INFEASIBLE,
        {"partition": 1352, "divisor": 64},
    ),
    Text(
        "shard_not_divisible",
        "ValueError: Weight input_size_per_partition=1848 for layer 'model.layers.0.mlp.down_proj' is not divisible by group_size=128. This happens when tensor_parallel_size splits the layer input into shards that are not a whole number of quant groups.",
        INFEASIBLE,
        {"partition": 1848, "divisor": 128},
    ),
    Text(
        "shard_not_divisible",
        "ValueError: Weight output_partition_size = 448 is not divisible by weight quantization block_n = 128.",
        INFEASIBLE,
        {"partition": 448, "divisor": 128},
    ),
    Text(
        "shard_not_divisible",
        "ValueError: The input_size of down's weight = 192 is not divisible by weight quantization block_k = 128.",
        INFEASIBLE,
        {"partition": 192, "divisor": 128},
    ),
    Text(
        "shard_not_divisible",
        "ValueError: The output_size of gate's and up's weight = 192 is not divisible by weight quantization block_n = 128.",
        INFEASIBLE,
        {"partition": 192, "divisor": 128},
    ),
    Text(
        "shard_not_divisible",
        "ValueError: CompressedTensors WNA16 MoE: gate+up output channels per TP rank (2 * intermediate_size_per_partition = 1404) must be divisible by packed_factor (8). Use a TP size where 2 * intermediate_size is divisible by 8.",
        INFEASIBLE,
        {"channels": 1404, "packed_factor": 8},
    ),
    Text(
        "shard_not_aligned",
        "ValueError: The input size is not aligned with the quantized weight shape. This can be caused by too large tensor parallel size.",
        INFEASIBLE,
        {"side": "input"},
    ),
    Text("kernel_shape", "RuntimeError: size_k must divisible by BLOCK_SIZE_K", INFEASIBLE),
    Text(
        "size_not_divisible",
        "AssertionError: 151936 is not divisible by 7",
        INFEASIBLE,
        {"size": 151936, "divisor": 7},
    ),
    Text(
        "fp8_on_old_device",
        "ValueError(\"type fp8e4nv not supported in this architecture. The supported fp8 dtypes are ('fp8e4b15', 'fp8e5')\")",
        INFEASIBLE,
    ),
    Text(
        "fp8_on_old_device",
        "ValueError: FP8 KV cache is not supported by the Triton attention backend on NVIDIA A100-SXM4-80GB (compute capability 8.0); native FP8 (fp8e4nv) requires SM89+. Re-run with --kv-cache-dtype bfloat16.",
        INFEASIBLE,
        {"backend": "Triton", "capability": 8.0, "suggested_kv_cache_dtype": "bfloat16"},
    ),
    Text(
        "fp8_on_old_device",
        "ValueError: FP8 KV cache is not supported by the Triton MLA backend on Tesla T4 (compute capability 7.5); native FP8 (fp8e4nv) requires SM89+. Re-run with --kv-cache-dtype float16.",
        INFEASIBLE,
        {"capability": 7.5, "suggested_kv_cache_dtype": "float16"},
    ),
    Text(
        "bfloat16_kv_cache_on_old_device",
        "ValueError: bfloat16 KV cache is not supported on Tesla T4 (compute capability 7.5); bfloat16 requires SM80+. Re-run with --kv-cache-dtype float16.",
        INFEASIBLE,
        {"suggested_kv_cache_dtype": "float16"},
    ),
    Text(
        "fp8_kv_cache_on_cpu",
        "NotImplementedError: FP8 KV cache on CPU requires x86 with AVX-512 or AMX.",
        INFEASIBLE,
    ),
    Text(
        "kv_cache_dtype_with_checkpoint",
        "ValueError: fp8_e5m2 kv-cache is not supported with fp8 checkpoints.",
        INFEASIBLE,
    ),
)

SPECULATIVE = (
    Text(
        "draft_vocabulary",
        "  Value error, Target and draft model should have the same vocabulary size. Target model vocab_size=152064. Draft model vocab_size=151936. Using models with different tokenizers can cause out-of-bounds errors during speculative decoding. [type=value_error, input_value=1, input_type=int]",
        INFEASIBLE,
        {"target_vocab_size": 152064, "draft_vocab_size": 151936},
    ),
    Text(
        "draft_tokens_not_divisible",
        "ValueError: num_speculative_tokens:3 must be divisible by n_predict=2",
        INFEASIBLE,
        {"num_speculative_tokens": 3, "n_predict": 2},
    ),
    Text(
        "draft_incomplete",
        "ValueError: A speculative model was provided, but `num_speculative_tokens` was not provided",
        INFEASIBLE,
    ),
    Text(
        "draft_incomplete",
        "ValueError: num_speculative_tokens must be provided with speculative model unless the draft model config contains an n_predict parameter.",
        INFEASIBLE,
    ),
    Text(
        "prompt_lookup_order",
        "ValueError: prompt_lookup_min=5 must be <= prompt_lookup_max=3",
        INFEASIBLE,
        {"prompt_lookup_min": 5, "prompt_lookup_max": 3},
    ),
    Text(
        "prompt_lookup_missing",
        "ValueError: Either prompt_lookup_max or prompt_lookup_min must be provided when using the ngram method.",
        INFEASIBLE,
    ),
    Text(
        "no_tokens_left_to_schedule",
        "  Value error, max_num_scheduled_tokens is set to -1792 based on the speculative decoding settings, which does not allow any tokens to be scheduled. Increase max_num_batched_tokens to accommodate the additional draft token slots, or decrease num_speculative_tokens.",
        INFEASIBLE,
        {"max_num_scheduled_tokens": -1792},
    ),
    Text(
        "no_slots_left_to_schedule",
        "ValueError: VllmConfig does not have enough slots to schedule a token and support the speculative decoding settings. Got max_num_batched_tokens=16 and num_lookahead_tokens=20",
        INFEASIBLE,
        {"max_num_batched_tokens": 16, "num_lookahead_tokens": 20},
    ),
    Text(
        "no_slots_left_to_schedule",
        "ValueError: VllmConfig does not have enough slots to schedule a token and support the speculative decoding settings. Got max_num_batched_tokens=16 and scheduled_token_delta=20.",
        INFEASIBLE,
        {"scheduled_token_delta": 20},
    ),
    Text(
        "no_graph_sizes_left",
        "ValueError: No valid cudagraph sizes after rounding to multiple of 6 (num_speculative_tokens + 1) please adjust num_speculative_tokens (5) or max_cudagraph_capture_size (4)",
        INFEASIBLE,
        {"multiple": 6},
    ),
    Text(
        "draft_parallel_size",
        "ValueError: speculative_draft_tensor_parallel_size=2 cannot be other value than 1 or target model tensor_parallel_size",
        INFEASIBLE,
        {"draft_tensor_parallel_size": 2},
    ),
    Text(
        "draft_too_long",
        "ValueError: speculative_max_model_len=8192 cannot be larger than draft_max_model_len=4096",
        INFEASIBLE,
        {"speculative_max_model_len": 8192, "highest_max_model_len": 4096},
    ),
    Text(
        "draft_method_unsupported",
        "NotImplementedError: Unsupported speculative method: 'medusah'",
        INFEASIBLE,
        {"method": "medusah"},
    ),
    Text(
        "draft_method_unsupported",
        "RuntimeError: Model does not support EAGLE3 interface but aux_hidden_state_outputs was requested",
        INFEASIBLE,
    ),
    Text(
        "draft_blocks_too_small",
        "ValueError: Multi-module MTP with prefix caching requires scheduler_block_size (=4) >= num_speculative_tokens (=5).",
        INFEASIBLE,
        {"block_size": 4, "num_speculative_tokens": 5},
    ),
)

ATTENTION = (
    Text(
        "attention_backend",
        "ValueError: Selected backend AttentionBackendEnum.FLASHINFER is not valid for this configuration. Reason: ['block_size not supported', 'kv_cache_dtype not supported']",
        INFEASIBLE,
        {"backend": "AttentionBackendEnum.FLASHINFER"},
    ),
    Text(
        "attention_backend",
        "ValueError: No valid attention backend found for cuda with AttentionSelectorConfig(head_size=80, dtype=torch.bfloat16, kv_cache_dtype=fp8, block_size=8). Reasons: {FLASH_ATTN: [kv_cache_dtype not supported], TRITON_ATTN: [block_size not supported]}.",
        INFEASIBLE,
        {
            "reasons": "{FLASH_ATTN: [kv_cache_dtype not supported], TRITON_ATTN: [block_size not supported]}."
        },
    ),
    Text(
        "attention_package_missing",
        "ValueError: FlashInfer backend is not available. Please install the package.",
        INFEASIBLE,
    ),
    Text(
        "block_size",
        "ValueError: Aligned KV cache block size 24 is not supported by attention backend(s): FLASH_ATTN.",
        INFEASIBLE,
        {"block_size": 24},
    ),
    Text(
        "device_too_old_for_dtype",
        "ValueError: Bfloat16 is only supported on GPUs with compute capability of at least 8.0. Your Tesla V100-SXM2-16GB GPU has compute capability 7.0. You can use float16 instead by explicitly setting the `dtype` flag in CLI, for example: --dtype=half.",
        INFEASIBLE,
        {"min_capability": 8.0, "capability": 7.0},
    ),
    Text(
        "graph_mode",
        "ValueError: CUDAGraphMode.FULL is not supported with FlexAttentionMetadataBuilder backend (support:AttentionCGSupport.NEVER) ; please try cudagraph_mode=PIECEWISE, and make sure compilation mode is VLLM_COMPILE",
        INFEASIBLE,
        {"cudagraph_mode": "FULL", "backend": "FlexAttentionMetadataBuilder"},
    ),
    Text(
        "graph_sizes",
        "ValueError: customized max_cudagraph_capture_size(=512) should be consistent with the max value of cudagraph_capture_sizes(=256)",
        INFEASIBLE,
        {"max_cudagraph_capture_size": 512},
    ),
    Text(
        "model_runner",
        "ValueError: Model Runner V2 does not yet support: pipeline parallelism with speculative decoding",
        INFEASIBLE,
        {"runner": 2, "needs": "pipeline parallelism with speculative decoding"},
    ),
)

COMMAND_LINE = (
    Text(
        "unknown_flag",
        "vllm: error: unrecognized arguments: --disable-log-requests",
        INFEASIBLE,
        {"unrecognized_arguments": "--disable-log-requests"},
    ),
    Text(
        "bad_flag_value",
        "api_server.py: error: argument --kv-cache-dtype: invalid choice: 'int8' (choose from 'auto', 'fp8')",
        INFEASIBLE,
        {"argument": "--kv-cache-dtype"},
    ),
    Text(
        "bad_flag_value",
        "vllm serve: error: ambiguous option: --max-num could match --max-num-seqs, --max-num-batched-tokens",
        INFEASIBLE,
    ),
    Text(
        "bad_flag_value",
        "api_server.py: error: a reader of moons needs a telescope",
        INFEASIBLE,
        {"problem": "a reader of moons needs a telescope"},
    ),
    Text(
        "bad_flag_value",
        "api_server.py: error: argument --compilation-config/-cc: 1 validation error for CompilationConfig\n"
        "mode\n"
        "  Input should be 0, 1, 2 or 3 [type=enum, input_value=9, input_type=int]",
        INFEASIBLE,
        {"argument": "--compilation-config/-cc", "fields": ["mode"]},
    ),
    Text(
        "bad_flag_value",
        "vllm serve: error: the following arguments are required: --model",
        INFEASIBLE,
        {"problem": "--model"},
    ),
    Text(
        "flags_exclude_each_other",
        "ValueError: --spec-model and --speculative-config['model'] are mutually exclusive",
        INFEASIBLE,
        {"first": "--spec-model", "second": "--speculative-config['model']"},
    ),
    Text(
        "unknown_variable",
        "ValueError: Unknown vLLM environment variable detected: VLLM_ATTENTION_BACKAND",
        INFEASIBLE,
        {"variable": "VLLM_ATTENTION_BACKAND"},
    ),
)

MACHINE_TEXTS = (
    Text("too_many_files", "OSError: [Errno 24] Zu viele offene Dateien", INFRA),
    Text(
        "too_many_files",
        "RuntimeError: unable to open shared memory object </torch_29919_3696940282_897> in read-write mode: Too many open files (24)",
        INFRA,
    ),
    Text(
        "shared_memory",
        "RuntimeError: unable to allocate shared memory(shm) for file </torch_264_1804289383_0>: No space left on device (28)",
        INFRA,
        MACHINE,
    ),
    Text(
        "shared_memory",
        "ERROR: Unexpected bus error encountered in worker. This might be caused by insufficient shared memory (shm).",
        INFRA,
        MACHINE,
    ),
    Text("shared_memory", "Fatal Python error: Bus error", INFRA, MACHINE),
    Text(
        "shared_memory",
        "gpu1:99:99 [0] NCCL WARN Error while creating shared memory segment /dev/shm/nccl-3D8KmP (size 9637888)",
        INFRA,
        MACHINE,
    ),
    Text(
        "disk_full",
        "OSError: [Errno 28] Auf dem Gerät ist kein Speicherplatz mehr verfügbar: '/cache/vllm/x'",
        INFRA,
        MACHINE,
    ),
    Text(
        "disk_full",
        "RuntimeError: Data processing error: I/O error: No space left on device (os error 28)",
        INFRA,
        MACHINE,
    ),
    Text(
        "read_only", "OSError: [Errno 30] Read-only file system: '/models/.cache'", INFRA, MACHINE
    ),
    Text(
        "permission_denied",
        "PermissionError: [Errno 13] Keine Berechtigung: '/models/qwen/config.json'",
        INFRA,
    ),
    Text(
        "host_out_of_memory",
        "[86423.114563] Out of memory: Killed process 2896 (VLLM::EngineCor) total-vm:93451280kB, anon-rss:61277312kB",
        CAPACITY,
    ),
    Text(
        "host_out_of_memory",
        "Memory cgroup out of memory: Killed process 31337 (VLLM::Worker_TP1) total-vm:1kB",
        CAPACITY,
    ),
    Text(
        "host_out_of_memory",
        "ray.exceptions.OutOfMemoryError: Task was killed due to the node running low on memory.",
        CAPACITY,
    ),
    Text("host_out_of_memory", "OSError: [Errno 12] 无法分配内存", CAPACITY),
    Text(
        "host_out_of_memory",
        "RuntimeError: [enforce fail at alloc_cpu.cpp:124] err == 0. DefaultCPUAllocator: can't allocate memory: you tried to allocate 4000000000 bytes.",
        CAPACITY,
    ),
    Text("too_many_threads", "RuntimeError: can't start new thread", INFRA, MACHINE),
    Text("port_taken", "OSError: [Errno 98] Die Adresse wird bereits verwendet", INFRA),
    Text(
        "port_taken",
        "ERROR:    [Errno 98] error while attempting to bind on address ('0.0.0.0', 8000): address already in use",
        INFRA,
    ),
    Text("illegal_instruction", "Illegal instruction (core dumped)", INFRA, MACHINE),
    Text(
        "no_device",
        "ImportError: libcuda.so.1: cannot open shared object file: No such file or directory",
        INFRA,
        MACHINE,
    ),
    Text("no_device", "RuntimeError: No CUDA GPUs are available", INFRA, MACHINE),
    Text(
        "no_device",
        "RuntimeError: Failed to infer device type, please set the environment variable `VLLM_LOGGING_LEVEL=DEBUG` to turn on verbose logging to help debug the issue.",
        INFRA,
        MACHINE,
    ),
    Text(
        "library_missing",
        "ImportError: libcudart.so.12: cannot open shared object file: No such file or directory",
        INFRA,
        {"library": "libcudart.so.12", **MACHINE},
    ),
    Text(
        "library_mismatch",
        "ImportError: /opt/venv/lib/python3.11/site-packages/vllm/_C.abi3.so: undefined symbol: _ZN3c106ivalue14ConstantString6createENSt7",
        INFRA,
        MACHINE,
    ),
    Text(
        "library_mismatch",
        "RuntimeError: operator torchvision::nms does not exist",
        INFRA,
        MACHINE,
    ),
    Text(
        "library_mismatch",
        "importlib.metadata.PackageNotFoundError: No package metadata was found for vllm",
        INFRA,
        MACHINE,
    ),
    Text("engine_missing", "ModuleNotFoundError: No module named 'vllm'", INFRA, MACHINE),
    Text("engine_missing", "/opt/venv/bin/python: No module named vllm", INFRA, MACHINE),
    Text(
        "driver_too_old",
        "RuntimeError: The NVIDIA driver on your system is too old (found version 12080). Please update your GPU driver by downloading and installing a new version.",
        INFRA,
        {"driver_version": 12080, **MACHINE},
    ),
    Text(
        "driver_too_old",
        "RuntimeError: CUDA error: CUDA driver version is insufficient for CUDA runtime version",
        INFRA,
        MACHINE,
    ),
    Text(
        "device_broken",
        "torch.AcceleratorError: CUDA error: uncorrectable ECC error encountered",
        INFRA,
        MACHINE,
    ),
    Text(
        "device_broken",
        "[ 9112.555123] NVRM: Xid (PCI:0000:65:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.",
        INFRA,
        MACHINE,
    ),
    Text(
        "device_busy",
        "RuntimeError: CUDA error: CUDA-capable device(s) is/are busy or unavailable",
        INFRA,
    ),
    Text(
        "nccl",
        "RuntimeError: NCCL error: unhandled system error (run with NCCL_DEBUG=INFO for details)",
        INFRA,
        {"nccl_error": "unhandled system error"},
    ),
    Text(
        "nccl",
        "torch.distributed.DistBackendError: NCCL error in: /pytorch/torch/csrc/distributed/c10d/NCCLUtils.cpp:133, unhandled cuda error (run with NCCL_DEBUG=INFO for details), NCCL version 2.21.5",
        INFRA,
        {"nccl_error": "unhandled cuda error"},
    ),
    Text(
        "nccl",
        "[rank0]:[E321 02:07:08.408271257 ProcessGroupNCCL.cpp:607] [Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=1580, OpType=ALLREDUCE, NumelIn=466119168, NumelOut=466119168, Timeout(ms)=600000) ran for 600060 milliseconds before timing out.",
        INFRA,
        {"watchdog": "collective operation timeout"},
    ),
    Text(
        "rendezvous",
        "torch.distributed.DistNetworkError: The client socket has timed out after 600000ms while trying to connect to (10.0.0.1, 29500).",
        INFRA,
    ),
)

CHECKPOINT = (
    Text(
        "hub_unreachable",
        "huggingface_hub.errors.LocalEntryNotFoundError: An error happened while trying to locate the file on the Hub and we cannot find the requested files in the local cache.",
        INFRA,
    ),
    Text(
        "hub_unreachable",
        "OSError: We couldn't connect to 'https://huggingface.co' to load the files, and couldn't find them in the cached files.",
        INFRA,
    ),
    Text(
        "hub_busy",
        "huggingface_hub.errors.HfHubHTTPError: 429 Client Error: Too Many Requests for url: https://huggingface.co/api/models/x",
        INFRA,
        {"http_status": 429},
    ),
    Text(
        "model_missing",
        "huggingface_hub.errors.RepositoryNotFoundError: 401 Client Error. (Request ID: Root=1-6545d8b33)",
        INFEASIBLE,
    ),
    Text(
        "model_missing",
        "OSError: qwen/no-such is not a local folder and is not a valid model identifier listed on 'https://huggingface.co/models'",
        INFEASIBLE,
    ),
    Text(
        "model_gated",
        "huggingface_hub.errors.GatedRepoError: 401 Client Error. (Request ID: Root=1-66f4b037)",
        INFRA,
        {},
    ),
    Text(
        "model_gated",
        "OSError: You are trying to access a gated repo.",
        INFRA,
    ),
    Text(
        "model_gated",
        "requests.exceptions.HTTPError: 403 Client Error: Forbidden for url: https://huggingface.co/meta-llama/x/resolve/main/config.json",
        INFRA,
        {"http_status": 403},
    ),
    Text(
        "weights_damaged",
        "safetensors_rust.SafetensorError: Error while deserializing header: HeaderTooLarge",
        INFRA,
    ),
    Text(
        "weights_damaged",
        "safetensors_rust.SafetensorError: Error while deserializing header: incomplete metadata, file not fully covered",
        INFRA,
    ),
    Text(
        "weights_missing",
        "RuntimeError: Cannot find any model weights with `/models/qwen`",
        INFEASIBLE,
    ),
    Text(
        "tokenizer_missing",
        "OSError: Can't load tokenizer for '/models/x'. If you were trying to load it from 'https://huggingface.co/models', make sure you don't have a local directory with the same name.",
        INFEASIBLE,
    ),
    Text(
        "remote_code",
        "  Value error, The repository /models/custom contains custom code which must be executed to correctly load the model. You can inspect the repository content at /models/custom . [type=value_error, input_value=1, input_type=int]",
        INFEASIBLE,
    ),
    Text(
        "remote_code",
        "RuntimeError: Failed to load the model config. If the model is a custom model not yet available in the HuggingFace transformers library, consider setting `trust_remote_code=True` in LLM or using the `--trust-remote-code` flag in the CLI.",
        INFEASIBLE,
    ),
    Text(
        "architecture_unknown",
        "  Value error, The checkpoint you are trying to load has model type `qwen9` but Transformers does not recognize this architecture. This could be because of an issue with the checkpoint, or because your version of Transformers is out of date.",
        INFEASIBLE,
        {"model_type": "qwen9"},
    ),
    Text(
        "architecture_unknown",
        "ValueError: Model architectures ['FrobForCausalLM'] are not supported for now. Supported architectures: dict_keys(['LlamaForCausalLM'])",
        INFEASIBLE,
        {"architectures": "['FrobForCausalLM']"},
    ),
    Text(
        "architecture_not_inspected",
        "ValueError: Model architectures ['FrobForCausalLM'] failed to be inspected. Please check the logs for more details",
        INFEASIBLE,
    ),
    Text(
        "checkpoint_layout",
        "KeyError: 'layers.0.mlp.down_proj.weight_scale'",
        INFEASIBLE,
        {"parameter": "layers.0.mlp.down_proj.weight_scale"},
    ),
    Text(
        "checkpoint_layout",
        "ValueError: There is no module or parameter named 'lm_head.qweight' in Qwen2ForCausalLM.",
        INFEASIBLE,
        {"module": "lm_head.qweight"},
    ),
)

LIFE = (
    Text(
        "compile_cache_corrupt",
        "RuntimeError: vLLM failed to compile the model. The most likely reason for this is that a previous compilation failed, leading to a corrupted compilation artifact. We recommend trying to remove ~/.cache/vllm/torch_compile_cache and try again to see the real issue.",
        INFRA,
    ),
    Text(
        "compile_cache_corrupt",
        "AssertionError: Expected tensors only, but got: <class 'int'>",
        INFRA,
    ),
    Text(
        "compiler_missing",
        "torch._inductor.exc.InductorError: RuntimeError: Failed to find C compiler. Please specify via CC environment variable or set triton.knobs.build.impl.",
        INFRA,
    ),
    Text(
        "compiler_missing",
        "FileNotFoundError: [Errno 2] No such file or directory: 'nvcc'",
        INFRA,
    ),
    Text(
        "kernel_resources",
        "triton.runtime.errors.OutOfResources: out of resource: shared memory, Required: 135168, Hardware limit: 101376. Reducing block sizes or `num_stages` may help.",
        INFEASIBLE,
        {"required": 135168, "limit": 101376},
    ),
    Text(
        "compile_failed",
        "torch._inductor.exc.InductorError: AssertionError: unexpected layout",
        INFEASIBLE,
    ),
    Text(
        "compile_failed",
        "subprocess.CalledProcessError: Command '['/usr/bin/gcc', '/tmp/x/main.c', '-O3', '-shared']' returned non-zero exit status 1.",
        INFEASIBLE,
    ),
    Text(
        "compiler_out_of_memory",
        "nvcc error   : 'cicc' died due to signal 9 (Kill signal)",
        INFRA,
    ),
    Text(
        "compile_failed",
        "triton.runtime.errors.PTXASError: PTXAS error: Internal Triton PTX codegen error",
        INFEASIBLE,
    ),
    Text(
        "no_kernel_for_device",
        "RuntimeError: No supported CUDA architectures found for major versions [10].",
        INFEASIBLE,
    ),
    Text(
        "no_kernel_for_device",
        "RuntimeError: CUDA error: no kernel image is available for execution on the device",
        INFEASIBLE,
    ),
    Text(
        "kernel_fault",
        "torch.AcceleratorError: CUDA error: an illegal memory access was encountered",
        INFEASIBLE,
        {"kernel_fault": "an illegal memory access"},
    ),
    Text(
        "kernel_fault",
        "RuntimeError: CUDA error: device-side assert triggered",
        INFEASIBLE,
        {"kernel_fault": "device-side assert"},
    ),
    Text(
        "engine_not_ready_in_time",
        "TimeoutError: Timed out waiting for engine core processes to start. This is often caused by slow weight loading for large models. Waited 600s (configured by VLLM_ENGINE_READY_TIMEOUT_S).",
        TIMEOUT,
    ),
    Text(
        "worker_silent",
        "TimeoutError: RPC call to sample_tokens timed out.",
        INFRA,
        {"call": "sample_tokens"},
    ),
    Text(
        "ray_too_few_devices",
        "ValueError: The number of required GPUs exceeds the total number of available GPUs in the placement group. Required number of devices: 8. Total number of devices: 4.",
        INFEASIBLE,
    ),
    Text(
        "ray",
        "ValueError: Current node has no GPU available. current_node_resource={'CPU': 8.0}. vLLM engine cannot start without GPU.",
        INFRA,
    ),
    Text(
        "package_missing",
        "ImportError: Arctic Inference is required for suffix decoding. Install via `pip install arctic-inference==0.1.1`.",
        INFEASIBLE,
    ),
    Text(
        "package_missing",
        "ModuleNotFoundError: No module named 'flashinfer'",
        INFEASIBLE,
        {"module": "flashinfer"},
    ),
    Text(
        "versions_do_not_fit",
        "ImportError: cannot import name 'PytorchGELUTanh' from 'transformers.activations' (/opt/venv/lib/python3.11/site-packages/transformers/activations.py)",
        INFRA,
        {"imported": "PytorchGELUTanh"},
    ),
)

LAST_RESORT_TEXTS = (
    Text("not_implemented", "NotImplementedError: Needs a left hand.", INFEASIBLE),
    Text(
        "configuration_refused",
        "pydantic_core._pydantic_core.ValidationError: 1 validation error for CacheConfig\n"
        "gpu_memory_utilization\n"
        "  Input should be less than or equal to 1 [type=less_than_equal, input_value=1.2, input_type=float]\n"
        "    For further information visit https://errors.pydantic.dev/2.12/v/less_than_equal",
        INFEASIBLE,
        {"fields": ["gpu_memory_utilization"], "config": "CacheConfig"},
    ),
    Text("zero_size", "ZeroDivisionError: integer division or modulo by zero", INFEASIBLE),
    Text(
        "refused_by_engine",
        '  File "/opt/venv/lib/python3.11/site-packages/vllm/model_executor/model_loader/__init__.py", line 127, in get_model_loader\n'
        '    raise ValueError(f"Load format `{load_format}` is not supported")\n'
        "ValueError: Load format `gguf` is not supported",
        INFEASIBLE,
    ),
)

TEXTS: tuple[Text, ...] = (
    *MEMORY,
    *PARALLELISM,
    *SCHEDULER,
    *QUANTIZATION,
    *SPECULATIVE,
    *ATTENTION,
    *COMMAND_LINE,
    *MACHINE_TEXTS,
    *CHECKPOINT,
    *LIFE,
)
