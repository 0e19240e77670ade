"""What refusals of single values and of pairs prove, rows of the table in `teachings`. Pure.

All of these are checks that compare what was asked for with itself, with the model or with the
build. Each row names everything that the check reads; where it reads more than a study can set
(`graph_mode`, `kernel_resources`, `refused_by_engine`) there is none.
"""

from __future__ import annotations

from sweeper.search.bounds import at_fault
from sweeper.search.bounds.bound import Relation, Rest
from sweeper.search.bounds.teaching import Teaching, Worse, for_good

LESS, MORE = Relation.AT_MOST, Relation.AT_LEAST
COMPARED = "the two are compared with each other"

# What vLLM chooses an attention backend by, beside the model: `AttentionSelectorConfig`. Which
# precision the cache has by default, a quantized checkpoint may tell.
ATTENTION_CHOICE = ("dtype", "kv_cache_dtype", "block_size", "quantization", "tensor_parallel_size")
# Each may bring a checkpoint of its own: quantized weights, or a draft model.
CHECKPOINTS = ("quantization", "speculative")

REFUSALS: dict[str, Teaching] = {
    "configuration_refused": Teaching(
        "gave a parameter a value outside of what the engine takes",
        rest=Rest.ANY,
        blamed=at_fault.refused_fields,
    ),
    "attention_backend": for_good(
        "asked for attention that no backend here computes", *ATTENTION_CHOICE
    ),
    "block_size": for_good("asked for a block size that its attention lacks", *ATTENTION_CHOICE),
    "bfloat16_kv_cache_on_old_device": for_good(
        "used a KV cache precision that this device is too old for", *ATTENTION_CHOICE
    ),
    # The text does not say of which size: another tensor_parallel_size may pass or fail.
    "size_not_divisible": for_good(
        "could not divide a size of the model",
        "tensor_parallel_size",
        "data_parallel_size",
        kept=CHECKPOINTS,
    ),
    "context_parallel": for_good(
        "split the context over devices in a way that this model does not allow",
        "tensor_parallel_size",
        kept=CHECKPOINTS,
    ),
    # The other side of the comparison is a free flag, which must be the same.
    "active_seqs_above_seqs": Teaching(
        "allowed more active sequences than sequences", {"max_num_seqs": Worse(LESS, COMPARED)}
    ),
    "prefill_threshold": Teaching(
        "had a threshold of long prompts above max_model_len",
        {"max_model_len": Worse(LESS, COMPARED)},
    ),
    "batched_tokens_below_item": Teaching(
        "had a smaller token batch than the largest image has tokens",
        {"max_num_batched_tokens": Worse(LESS, COMPARED)},
    ),
    # Drafts.
    "prompt_lookup_order": Teaching(
        "looked for longer pieces of the prompt than it may",
        {"prompt_lookup_min": Worse(MORE, COMPARED), "prompt_lookup_max": Worse(LESS, COMPARED)},
        same=("speculative",),
    ),
    "draft_incomplete": for_good(
        "left out what its way of drafting needs",
        "speculative",
        "num_speculative_tokens",
        kept=(),
    ),
    "draft_blocks_too_small": Teaching(
        "drafted more tokens than a block of its cache holds",
        {"num_speculative_tokens": Worse(MORE, COMPARED)},
        same=("speculative", "enable_prefix_caching", *ATTENTION_CHOICE),
    ),
    # Checkpoints that are not there, or not what the engine reads. A study's own model is in every
    # deployment, so only what brings another checkpoint can be to blame.
    "model_missing": for_good("named a checkpoint that is not there", *CHECKPOINTS, kept=()),
    "weights_missing": for_good("named a checkpoint without weights", *CHECKPOINTS, kept=()),
    "architecture_unknown": for_good(
        "named a model that the engine does not know", *CHECKPOINTS, kept=()
    ),
    "checkpoint_layout": for_good(
        "used a checkpoint of a layout that the engine does not read",
        "tensor_parallel_size",
        "pipeline_parallel_size",
        *CHECKPOINTS,
        kept=(),
    ),
}
