"""vLLM's error texts about drafts: methods, models, counts, and the batch they must fit. Pure."""

from __future__ import annotations

from sweeper.engine.rules import Rule, rule
from sweeper.verdicts import Verdict

INFEASIBLE = Verdict.INFEASIBLE_CONFIG

_NGRAM = "set prompt_lookup_max, and prompt_lookup_min no larger than it"
_SPEC_SLOTS = "raise max_num_batched_tokens, or lower num_speculative_tokens or max_num_seqs"

SPECULATIVE: tuple[Rule, ...] = (
    rule(
        "draft_vocabulary",
        r"Target and draft model should have the same vocabulary size\. Target model "
        r"vocab_size=(?P<target_vocab_size>\d+)\. Draft model vocab_size=(?P<draft_vocab_size>\d+)",
        INFEASIBLE,
        "use a draft model with the target's vocabulary, or speculative=ngram",
        "0.32 and 0.33",
        target_vocab_size=int,
        draft_vocab_size=int,
    ),
    rule(
        "draft_tokens_not_divisible",
        r"num_speculative_tokens: ?(?P<num_speculative_tokens>\d+) must be divisible by "
        r"n_predict=(?P<n_predict>\d+)",
        INFEASIBLE,
        "choose a multiple of n_predict for num_speculative_tokens",
        "0.32",
        num_speculative_tokens=int,
        n_predict=int,
    ),
    rule(
        "draft_incomplete",
        r"A speculative model was provided, but `num_speculative_tokens` was not provided"
        r"|num_speculative_tokens was provided but without speculative model"
        r"|num_speculative_tokens must be provided with speculative model"
        r"|Expected num_speculative_tokens to be greater than zero",
        INFEASIBLE,
        "give speculative, its model where it needs one, and num_speculative_tokens ≥ 1 together",
        "0.32",
    ),
    rule(
        "prompt_lookup_order",
        r"prompt_lookup_min=(?P<prompt_lookup_min>\d+) must be <= "
        r"prompt_lookup_max=(?P<prompt_lookup_max>\d+)",
        INFEASIBLE,
        _NGRAM,
        "0.32",
        prompt_lookup_min=int,
        prompt_lookup_max=int,
    ),
    rule(
        "prompt_lookup_missing",
        r"Either prompt_lookup_max or prompt_lookup_min must be provided",
        INFEASIBLE,
        _NGRAM,
        "0.32",
    ),
    rule(
        "no_tokens_left_to_schedule",
        r"max_num_scheduled_tokens is set to (?P<max_num_scheduled_tokens>-?\d+) based on the "
        r"speculative decoding settings",
        INFEASIBLE,
        _SPEC_SLOTS,
        "0.32 and 0.33",
        max_num_scheduled_tokens=int,
    ),
    rule(
        "no_slots_left_to_schedule",
        r"does not have enough slots to schedule a token and support the speculative decoding "
        r"settings(?:\. Got max_num_batched_tokens=(?P<max_num_batched_tokens>\d+) and "
        r"(?:num_lookahead_tokens=(?P<num_lookahead_tokens>\d+)"
        r"|scheduled_token_delta=(?P<scheduled_token_delta>\d+)))?"
        r"|Consider increasing max_num_batched_tokens or decreasing num_speculative_tokens",
        INFEASIBLE,
        _SPEC_SLOTS,
        "0.32 writes scheduled_token_delta, 0.33 num_lookahead_tokens",
        max_num_batched_tokens=int,
        num_lookahead_tokens=int,
        scheduled_token_delta=int,
    ),
    rule(
        "no_graph_sizes_left",
        r"No valid cudagraph sizes after rounding to multiple of (?P<multiple>\d+)",
        INFEASIBLE,
        "raise max_num_seqs above num_speculative_tokens, or run eager",
        "0.32 and 0.33",
        multiple=int,
    ),
    rule(
        "draft_parallel_size",
        r"draft_tensor_parallel_size=(?P<draft_tensor_parallel_size>\d+) cannot be other value "
        r"than 1 or target model tensor_parallel_size"
        r"|'tensor_parallel_size' is not a valid argument in the speculative_config",
        INFEASIBLE,
        "leave draft_tensor_parallel_size at 1 or at the target's tensor_parallel_size",
        "0.32",
        draft_tensor_parallel_size=int,
    ),
    rule(
        "draft_too_long",
        r"speculative_max_model_len=(?P<speculative_max_model_len>\d+) cannot be larger than "
        r"(?:draft|target)_max_model_len=(?P<highest_max_model_len>\d+)",
        INFEASIBLE,
        "lower speculative max_model_len to the length that the message names",
        "0.32",
        speculative_max_model_len=int,
        highest_max_model_len=int,
    ),
    rule(
        "draft_method_unsupported",
        r"Unsupported speculative method: '(?P<method>\w{1,60})'"
        r"|Unknown speculative decoding method: (?P<unknown_method>\w{1,60})"
        r"|Model does not support EAGLE3 interface"
        r"|\w{1,80} does not support (?P<pipeline_method>\w{1,40}) with pipeline parallelism"
        r"|use_heterogeneous_vocab (?:only works|currently only supports)"
        r"|ngram_gpu speculative decoding requires Triton"
        r"|checkpoint does not contain MTP weights"
        r"|Adaptive verification (?:is not currently compatible|requires)"
        r"|suffix_decoding_\w{1,40}=\S{1,20} must be",
        INFEASIBLE,
        "this model or version cannot draft this way: use speculative=ngram, or leave drafts out",
        "0.32",
        method=str,
        unknown_method=str,
        pipeline_method=str,
    ),
    rule(
        "draft_blocks_too_small",
        r"Multi-module MTP with prefix caching requires scheduler_block_size "
        r"\(=(?P<block_size>\d+)\) >= num_speculative_tokens \(=(?P<num_speculative_tokens>\d+)\)",
        INFEASIBLE,
        "lower num_speculative_tokens to block_size, or leave prefix caching out",
        "0.32",
        block_size=int,
        num_speculative_tokens=int,
    ),
)
