"""What each kind of failure proves of other deployments, in one table. Pure.

A row may call a direction worse only if a deployment further in that direction, all else equal,
must fail as well; the reason stands beside it. Where that is not certain, the parameter must be the
same. What a failure leaves to chance (a port, a timeout) has no row and teaches nothing, and so has
what a rule knows only of the one deployment (`not_implemented`, `refused_by_engine`). Refusals
that compare what was asked for with itself stand in `refusals`.

The arithmetic behind the rows on memory, for an engine that sizes its KV cache to fill a share:

    KV cache = share of the device - weights on it - activations of the largest batch - graphs
    left over = device - share of the device

Verdicts that are retried teach nothing, with one exception: see `NCCL`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from sweeper.search.bounds import at_fault
from sweeper.search.bounds.bound import Relation, Rest
from sweeper.search.bounds.refusals import REFUSALS
from sweeper.search.bounds.teaching import Teaching, Worse, for_good, in_memory, only_one

NCCL = "nccl"
"""The rule whose fault is the machine's and yet fences off a part of the space: after launches in a
row whose devices could not talk to each other, only single devices are tried."""
NCCL_IN_A_ROW = 2


def _batch_is_its_own(deployment: Mapping[str, Any]) -> bool:
    """Without chunked prefill the default token batch follows max_model_len, and so do figures."""
    unchunked = deployment.get("enable_chunked_prefill") is False
    return not unchunked or "max_num_batched_tokens" in deployment


LESS, MORE = Relation.AT_MOST, Relation.AT_LEAST

SMALLER_SHARE = Worse(LESS, "the KV cache gets what the share leaves beside the rest")
LARGER_SHARE = Worse(MORE, "the KV cache grows to fill the share, and less is left over beside it")
SHARE_OF_FREE = replace(
    LARGER_SHARE,
    why="what is free is less than this share, whatever it is to be filled with",
    figure="max_gpu_memory_utilization",
)
MORE_SEQS = Worse(MORE, "more sequences need larger sampler buffers and more graphs, never smaller")
MORE_TOKENS = Worse(MORE, "a larger batch has larger activations")
LONGER = Worse(MORE, "a longer sequence needs more KV cache and longer tables, never less")
LONGER_THAN_FITS = replace(
    LONGER,
    why=LONGER.why + "; the engine says itself which length would fit",
    figure="estimated_max_model_len",
    trusted=_batch_is_its_own,
)
MORE_THAN_BLOCKS = Worse(
    MORE, "each sequence takes a block of its own", figure="highest_max_num_seqs"
)
WARMED_UP = "the warm-up runs that many requests at once"
GRAPHS_UP_TO = "graphs are captured for batches up to this size"
FEWER_SHARDS = Worse(
    LESS,
    "each of fewer devices holds more of the weights and of the cache, which outweighs the buffers "
    "they no longer need to talk to each other",
)
MORE_DEVICES = Worse(MORE, "more devices are a superset, the one that failed among them")
COMPARED = "the two are compared with each other"

SHARDS = {"tensor_parallel_size": FEWER_SHARDS, "pipeline_parallel_size": FEWER_SHARDS}
DEVICES = {
    "tensor_parallel_size": MORE_DEVICES,
    "pipeline_parallel_size": MORE_DEVICES,
    "data_parallel_size": MORE_DEVICES,
}
LITTLE_CACHE = {
    "gpu_memory_utilization": SMALLER_SHARE,
    "max_num_seqs": MORE_SEQS,
    "max_num_batched_tokens": MORE_TOKENS,
    **SHARDS,
}
MUCH_IN_USE = {
    "gpu_memory_utilization": LARGER_SHARE,
    "max_num_seqs": MORE_SEQS,
    "max_num_batched_tokens": MORE_TOKENS,
}

TEACHINGS: dict[str, Teaching] = {
    # Memory. "rule/stage" is asked before "rule".
    "no_kv_memory": in_memory(
        "had no room for a KV cache", {**LITTLE_CACHE, "max_model_len": LONGER}
    ),
    "kv_too_small_for_max_model_len": in_memory(
        "had too little KV cache for one request of max_model_len",
        {"max_model_len": LONGER_THAN_FITS, **LITTLE_CACHE},
    ),
    "device_out_of_memory": in_memory("ran out of device memory at start", MUCH_IN_USE),
    # Once the cache is sized, a larger token batch is no longer worse: its activations were set
    # aside, the cache is smaller by them, and what does not use them gains room.
    "device_out_of_memory/graph_capture": in_memory(
        "ran out of device memory while it captured graphs",
        {"gpu_memory_utilization": LARGER_SHARE, "max_num_seqs": Worse(MORE, GRAPHS_UP_TO)},
    ),
    "device_out_of_memory/load": in_memory(
        "ran out of device memory under load",
        {
            "gpu_memory_utilization": LARGER_SHARE,
            "max_num_seqs": Worse(MORE, "the load is the study's, and more of it runs at once"),
        },
    ),
    "warm_up_out_of_memory": in_memory(
        "ran out of device memory in its warm-up",
        {"gpu_memory_utilization": LARGER_SHARE, "max_num_seqs": Worse(MORE, WARMED_UP)},
    ),
    "too_few_state_blocks": in_memory(
        "had fewer state blocks than sequences",
        {"max_num_seqs": MORE_THAN_BLOCKS, "gpu_memory_utilization": SMALLER_SHARE},
    ),
    "device_memory_taken": Teaching(
        "asked for a larger share of the device than is free",
        {"gpu_memory_utilization": SHARE_OF_FREE, **DEVICES},
    ),
    # Compared before anything is loaded, so that nothing else of the deployment enters.
    "host_share_not_free": Teaching(
        "asked for a larger share of the machine's memory than is free",
        {"gpu_memory_utilization": SHARE_OF_FREE, **DEVICES},
    ),
    # Compared with what is left once the weights are there.
    "host_memory_taken": in_memory(
        "asked for a larger share of the machine's memory than is free",
        {"gpu_memory_utilization": SHARE_OF_FREE},
    ),
    "host_out_of_memory": in_memory("ran out of the machine's memory", MUCH_IN_USE),
    "device_memory": in_memory(
        "ran out of device memory",
        {"gpu_memory_utilization": LARGER_SHARE, "max_num_seqs": MORE_SEQS},
    ),
    "host_memory": in_memory("ran out of the machine's memory", {"max_num_seqs": MORE_SEQS}),
    "cache_memory": in_memory(
        "had no room for a KV cache",
        {"gpu_memory_utilization": SMALLER_SHARE, "max_num_batched_tokens": MORE_TOKENS},
    ),
    # Batches and lengths.
    "batched_tokens_below_seqs": Teaching(
        "had a smaller token batch than sequences",
        {
            "max_num_batched_tokens": Worse(LESS, COMPARED),
            "max_num_seqs": Worse(MORE, COMPARED),
        },
    ),
    "batched_tokens_below_length": Teaching(
        "had a smaller token batch than max_model_len, without chunked prefill",
        {
            "max_num_batched_tokens": Worse(LESS, COMPARED),
            "max_model_len": Worse(MORE, COMPARED),
        },
        same=("enable_chunked_prefill",),
    ),
    "longer_than_model": Teaching(
        "asked for longer sequences than the model was made for",
        {"max_model_len": Worse(MORE, "it is compared with the model's own limit")},
        same=("quantization",),
        kept=("speculative",),
    ),
    # Parallelism.
    "heads_not_divisible": Teaching(
        "could not divide the attention heads",
        {
            "tensor_parallel_size": Worse(
                Relation.SAME,
                "how many heads there are is the model's",
                figure="num_heads",
                figure_relation=Relation.NO_DIVISOR_OF,
            )
        },
        kept=("speculative",),
    ),
    "pipeline_unsupported": only_one(
        "showed that the model has no pipeline parallelism",
        "pipeline_parallel_size",
        "the model's code lacks it at every size",
    ),
    "external_data_parallel": only_one(
        "showed that this model has no data parallelism here",
        "data_parallel_size",
        "it is refused at every size",
    ),
    "offline_data_parallel": only_one(
        "showed that this engine has no data parallelism",
        "data_parallel_size",
        "it is refused at every size",
    ),
    "too_few_devices": Teaching("asked for more devices than there are", DEVICES),
    "too_few_numa_nodes": Teaching("asked for more memory nodes than there are", DEVICES),
    NCCL: Teaching(
        f"is the last of {NCCL_IN_A_ROW} or more in a row whose devices could not talk to each "
        "other, which is the machine's fault and no other parameter's",
        {"tensor_parallel_size": Worse(Relation.ABOVE, "one device talks to nobody", value=1)},
        rest=Rest.ANY,
    ),
    # Quantization and precision.
    "unknown_quantization": for_good(
        "used a quantization that the engine does not know", "quantization"
    ),
    "no_online_quantization": for_good(
        "used a quantization that needs a checkpoint made for it", "quantization"
    ),
    "quantization_mismatch": for_good(
        "used another quantization than its checkpoint", "quantization"
    ),
    "checkpoint_unsupported": for_good(
        "used a checkpoint that the engine cannot read", "quantization"
    ),
    "device_too_old_for_quantization": for_good(
        "used a quantization that this device is too old for", "quantization"
    ),
    "quantization_not_on_platform": for_good(
        "used a quantization that this platform does not have", "quantization"
    ),
    "quantization_config_missing": for_good(
        "used a quantization whose configuration its checkpoint lacks", "quantization"
    ),
    "no_quantized_kernel": for_good(
        "used a quantization without a kernel for these layers here",
        "quantization",
        "dtype",
        "tensor_parallel_size",
    ),
    "not_built_for_cpu": for_good(
        "needed a kernel that this build lacks",
        "dtype",
        kept=("quantization", "kv_cache_dtype", "speculative"),
    ),
    "fp8_kv_cache_on_cpu": for_good(
        "used a KV cache that this processor has no kernel for", "kv_cache_dtype"
    ),
    "kv_cache_dtype_with_checkpoint": for_good(
        "used a KV cache precision that its checkpoint does not go with",
        "quantization",
        "kv_cache_dtype",
    ),
    # Which of the two asked for it depends on the attention backend, and that on the rest.
    "fp8_on_old_device": for_good(
        "used a precision that this device does not have",
        "quantization",
        "kv_cache_dtype",
        "dtype",
        "block_size",
        "tensor_parallel_size",
    ),
    "device_too_old_for_dtype": for_good(
        "used a precision that this device is too old for", "dtype", "quantization"
    ),
    "dtype_for_quantization": for_good(
        "used a precision that its quantization does not take", "quantization", "dtype"
    ),
    "shard_not_divisible": for_good(
        "cut quantized weights into shards that its kernels do not take",
        "quantization",
        "tensor_parallel_size",
    ),
    "shard_not_aligned": for_good(
        "cut quantized weights into shards that do not fit their scales",
        "quantization",
        "tensor_parallel_size",
    ),
    "kernel_shape": for_good(
        "cut quantized weights into shards that its kernels do not take",
        "quantization",
        "tensor_parallel_size",
        "dtype",
    ),
    # Drafts.
    "draft_vocabulary": for_good("used a draft model of another vocabulary", "speculative"),
    "draft_method_unsupported": for_good(
        "used a way of drafting that this model or engine does not have", "speculative"
    ),
    "draft_tokens_not_divisible": Teaching(
        "drafted a number of tokens that its draft model does not",
        {
            "num_speculative_tokens": Worse(
                Relation.SAME,
                "the draft model predicts that many at once",
                figure="n_predict",
                figure_relation=Relation.NO_MULTIPLE_OF,
            )
        },
        same=("speculative",),
    ),
    "no_tokens_left_to_schedule": Teaching(
        "had no tokens of its batch left beside the drafts",
        {
            "max_num_batched_tokens": Worse(LESS, "what the drafts take is taken off it"),
            "num_speculative_tokens": Worse(MORE, "each sequence takes that many"),
            "max_num_seqs": Worse(MORE, "each sequence takes its drafts"),
        },
        same=("speculative",),
    ),
    "no_slots_left_to_schedule": Teaching(
        "had no slots of its batch left beside the drafts",
        {
            "max_num_batched_tokens": Worse(LESS, COMPARED),
            "num_speculative_tokens": Worse(MORE, COMPARED),
        },
        same=("speculative", "max_num_seqs"),
    ),
    "no_graph_sizes_left": in_memory(
        "had a batch too small for graphs of its drafts",
        {"max_num_seqs": Worse(LESS, GRAPHS_UP_TO)},
    ),
    **REFUSALS,
    # Flags. The diagnosis names the parameters.
    "unknown_flag": Teaching(
        "set a flag that the engine does not know",
        rest=Rest.ANY,
        blamed=at_fault.unknown_flags,
    ),
    "bad_flag_value": Teaching(
        "gave a flag a value that the engine does not take",
        rest=Rest.ANY,
        blamed=at_fault.refused_value,
    ),
    # No proof for another combination, but what ignores a flag is as a rule the platform; one trial
    # that worked with the same value contradicts the bound.
    "flag_without_effect": Teaching(
        "set a flag that had no effect", blamed=at_fault.without_effect
    ),
}


def teaching_for(rule: str, stage: str) -> Teaching | None:
    """The row of a diagnosis, that of its stage first; None if it teaches nothing of others."""
    return TEACHINGS.get(f"{rule}/{stage}", TEACHINGS.get(rule))
